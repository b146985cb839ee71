// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import "github.com/weftraft/weft/internal/world"

// opening is what each customer has paid before the beginning, in cents.
const opening = 1000

// load returns the rows of warehouses at the beginning, which replicas share: a row is replaced, and never changed.
func load(warehouses []int64, text int, d world.Draws) map[string][]byte {
	rows := map[string][]byte{}
	for _, w := range warehouses {
		rows[key("wy", w)] = row(0, districts*customers*opening)
		stock := row(text*stockText, 0, 0, 0, 0)
		for i := range int64(items) {
			rows[key("s", w, i)] = stock
		}
		for n := range int64(districts) {
			rows[key("dy", w, n)] = row(0, customers*opening)
			rows[key("dn", w, n)] = row(0, firstOrders)
			rows[key("dd", w, n)] = row(0, firstOrders-firstPending)
			customer := row(text*customerText, -opening, opening, 1, 0)
			for c := range int64(customers) {
				rows[key("c", w, n, c)] = customer
				rows[key("h", w, n, -c-1)] = row(text*historyText, opening, w, n, c)
			}
			for o := range int64(firstOrders) {
				loadOrder(rows, w, n, o, text, d)
			}
		}
	}
	return rows
}

// loadOrder adds an order of the customer with the same number.
func loadOrder(rows map[string][]byte, w, n, o int64, text int, d world.Draws) {
	pending := o >= firstOrders-firstPending
	lines, carrier, delivered := int64(5+d.IntN(11)), int64(1+d.IntN(10)), int64(1)
	if pending {
		carrier, delivered = 0, 0
		rows[key("no", w, n, o)] = row(0)
	}
	rows[key("o", w, n, o)] = row(0, o, carrier, lines, 0)
	rows[key("cl", w, n, o)] = row(0, o)
	for i := range lines {
		amount := int64(0) // of what is delivered, as specified
		if pending {
			amount = int64(1 + d.IntN(999_999))
		}
		rows[key("ol", w, n, o, i)] = row(text*lineText, int64(d.IntN(items)), w, 5, amount, delivered)
	}
}
