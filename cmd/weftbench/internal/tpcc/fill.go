// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import "github.com/weftraft/weft/internal/world"

// perWarehouse is the number of districts of a warehouse.
const perWarehouse = 10

// The lengths of a row's text, as specified: all columns of text together.
const (
	warehouseText = 10 + 20 + 20 + 20 + 2 + 9
	customerText  = 16 + 2 + 16 + 20 + 20 + 20 + 2 + 9 + 16 + 2 + customerData
	customerData  = 500
	distText      = 24 // of a stock's district, and of an order line
	stockText     = perWarehouse*distText + 50
	historyText   = 24
)

// scale is the size of the tables.
type scale struct {
	warehouses, customers, items int
	text                         int // times as long as specified
}

// fill returns the rows of some warehouses at the beginning, as clause 4.3.3 has them, with fewer
// customers, orders and items.
func (sc scale) fill(seed uint64, first, n int) map[string][]byte {
	d, base := world.NewDraws(seed, 1<<32+uint64(first)), map[string][]byte{}
	noise := make([]byte, 1<<16)
	for i := range noise {
		noise[i] = 'a' + byte(d.IntN(26))
	}
	text := func(n int) []byte {
		n *= sc.text
		at := d.IntN(len(noise) - n)
		return noise[at : at+n]
	}
	put := func(k string, text []byte, n ...int64) { base[k] = row{n, text}.encode() }
	for w := first; w < first+n; w++ {
		put(key(warehouses, w, 0, 0, 0), text(warehouseText), int64(perWarehouse*sc.customers*firstPayment), int64(d.IntN(2001)))
		for i := range sc.items {
			put(key(stocks, w, 0, i, 0), text(stockText), int64(d.Between(10, 100)), 0, 0, 0)
		}
		for dist := range perWarehouse {
			put(key(districts, w, dist, 0, 0), text(warehouseText), int64(sc.customers*firstPayment), int64(d.IntN(2001)), int64(sc.customers))
			for o, c := range d.Perm(sc.customers) {
				bad := int64(0)
				if d.Chance(0.1) {
					bad = 1
				}
				put(key(customers, w, dist, c, 0), text(customerText), -firstPayment, firstPayment, 1, 0, bad)
				put(key(histories, w, dist, c, 0), text(historyText), firstPayment, int64(w), int64(dist), int64(c))
				put(key(lastOrders, w, dist, c, 0), nil, int64(o))
				sc.order(d, put, text, w, dist, o, c)
			}
		}
	}
	return base
}

// firstPayment is the amount of each customer's first payment, in cents.
const firstPayment = 1000

// order adds an order: the last three tenths are not delivered.
func (sc scale) order(d world.Draws, put func(string, []byte, ...int64), text func(int) []byte, w, dist, o, c int) {
	lines, carrier := d.Between(5, 15), int64(0)
	open := o >= sc.customers*7/10
	if open {
		put(key(newOrders, w, dist, o, 0), nil, 1)
	} else {
		carrier = int64(d.Between(1, 10))
	}
	put(key(orders, w, dist, o, 0), nil, int64(c), 0, carrier, int64(lines))
	for l := range lines {
		amount, delivered := int64(0), int64(1)
		if open {
			amount, delivered = int64(d.Between(1, 999999)), 0
		}
		put(key(orderLines, w, dist, o, l), text(distText), int64(d.IntN(sc.items)), int64(w), 5, amount, delivered)
	}
}

// price is the price of an item, in cents. Nobody writes items, and every node has them.
func price(item int) int64 { return 100 + int64(item)*7919%9901 }
