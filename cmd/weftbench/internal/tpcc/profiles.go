// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"slices"
	"strings"
)

// The kinds of transactions.
const (
	newOrder = iota
	payment
	orderStatus
	delivery
	stockLevel
	kinds
)

// kindNames are the names of the kinds.
var kindNames = [kinds]string{"New-Order", "Payment", "Order-Status", "Delivery", "Stock-Level"}

// line is a line of a new order.
type line struct{ item, supply, quantity int }

// nurand is the draw of clause 2.1.6, whose first bound is scaled with the table.
func (x *terminal) nurand(n int) int {
	a := 1
	for a*8 < n {
		a = a*2 + 1
	}
	return ((x.draws.IntN(a+1) | x.draws.IntN(n)) + 7) % n
}

// another draws another warehouse, if there is one.
func (x *terminal) another() int {
	n := x.w.scale.warehouses
	if n == 1 {
		return x.warehouse
	}
	return (x.warehouse + 1 + x.draws.IntN(n-1)) % n
}

// newOrder is clause 2.4.
func (x *terminal) newOrder(t *txn) {
	w, d, c := x.warehouse, x.draws.IntN(perWarehouse), x.nurand(x.w.scale.customers)
	unknown := x.draws.Chance(0.01)
	lines := make([]line, x.draws.Between(5, 15))
	for i := range lines {
		l := line{x.nurand(x.w.scale.items), w, x.draws.Between(1, 10)}
		for slices.ContainsFunc(lines[:i], func(o line) bool { return o.item == l.item }) {
			l.item = (l.item + 1) % x.w.scale.items
		}
		if x.draws.Chance(0.01) {
			l.supply = x.another()
		}
		lines[i] = l
		t.want(l.supply, key(stocks, l.supply, 0, l.item, 0), true)
	}
	t.want(w, key(warehouses, w, 0, 0, 0), false)
	t.want(w, key(districts, w, d, 0, 0), true)
	t.want(w, key(customers, w, d, c, 0), false)
	t.evaluate = func(t *txn) {
		if !unknown {
			t.order(w, d, c, lines)
		}
	}
}

func (t *txn) order(w, d, c int, lines []line) {
	dk := key(districts, w, d, 0, 0)
	dist := t.read(dk)
	o := int(dist.n[dNext])
	dist.n[dNext]++
	t.put(dk, dist.text, dist.n...)
	t.put(key(orders, w, d, o, 0), nil, int64(c), int64(t.begun), 0, int64(len(lines)))
	t.put(key(newOrders, w, d, o, 0), nil, 1)
	t.put(key(lastOrders, w, d, c, 0), nil, int64(o))
	for i, l := range lines {
		sk := key(stocks, l.supply, 0, l.item, 0)
		s, quantity := t.read(sk), int64(l.quantity)
		if s.n[sQuantity] -= quantity; s.n[sQuantity] < 10 {
			s.n[sQuantity] += 91
		}
		s.n[sYTD] += quantity
		s.n[sOrders]++
		if l.supply != w {
			s.n[sRemote]++
		}
		t.put(sk, s.text, s.n...)
		part := distText * t.w.scale.text
		t.put(key(orderLines, w, d, o, i), s.text[d*part:(d+1)*part], int64(l.item), int64(l.supply), quantity, quantity*price(l.item), 0)
	}
}

// payment is clause 2.5. With so few customers every last name is of one customer.
func (x *terminal) payment(t *txn) {
	w, d := x.warehouse, x.draws.IntN(perWarehouse)
	cw, cd := w, d
	if x.draws.Chance(0.15) {
		cw, cd = x.another(), x.draws.IntN(perWarehouse)
	}
	c, amount := x.nurand(x.w.scale.customers), int64(x.draws.Between(100, 500_000))
	t.want(w, key(warehouses, w, 0, 0, 0), true)
	t.want(w, key(districts, w, d, 0, 0), true)
	t.want(cw, key(customers, cw, cd, c, 0), true)
	t.evaluate = func(t *txn) {
		for _, k := range []string{key(warehouses, w, 0, 0, 0), key(districts, w, d, 0, 0)} {
			r := t.read(k)
			r.n[0] += amount // wYTD, dYTD
			t.put(k, r.text, r.n...)
		}
		ck := key(customers, cw, cd, c, 0)
		r := t.read(ck)
		r.n[cBalance] -= amount
		r.n[cPaid] += amount
		r.n[cPayments]++
		if r.n[cBadCredit] > 0 {
			data := len(r.text) - customerData*t.w.scale.text
			note := row{n: []int64{int64(c), int64(cd), int64(cw), int64(d), int64(w), amount}}.encode()
			r.text = slices.Concat(r.text[:data], note, r.text[data:])[:len(r.text)]
		}
		t.put(ck, r.text, r.n...)
		names := t.read(key(districts, w, d, 0, 0)).text[:historyText*t.w.scale.text]
		t.put(key(histories, w, d, int(t.id), 0), names, amount, int64(cw), int64(cd), int64(c))
	}
}

// orderStatus is clause 2.6.
func (x *terminal) orderStatus(t *txn) {
	w, d, c := x.warehouse, x.draws.IntN(perWarehouse), x.nurand(x.w.scale.customers)
	t.want(w, key(districts, w, d, 0, 0), false)
	t.want(w, key(customers, w, d, c, 0), false)
	t.evaluate = func(t *txn) {
		t.read(key(customers, w, d, c, 0))
		o := int(t.read(key(lastOrders, w, d, c, 0)).n[0])
		for i := range int(t.read(key(orders, w, d, o, 0)).n[oLines]) {
			t.read(key(orderLines, w, d, o, i))
		}
	}
}

// delivery is clause 2.7: the oldest open order of each district, in one transaction.
func (x *terminal) delivery(t *txn) {
	w, carrier := x.warehouse, int64(x.draws.Between(1, 10))
	for d := range perWarehouse {
		t.want(w, key(districts, w, d, 0, 0), true)
	}
	t.want(w, key(warehouses, w, 0, 0, 0), false)
	var oldest [perWarehouse]int
	t.more = func(t *txn) (wants []want) {
		for d := range perWarehouse {
			oldest[d] = t.oldest(w, d)
			if oldest[d] >= 0 {
				c := int(t.read(key(orders, w, d, oldest[d], 0)).n[oCustomer])
				wants = append(wants, want{key(customers, w, d, c, 0), true})
			}
		}
		slices.SortFunc(wants, func(a, b want) int { return strings.Compare(a.key, b.key) })
		return wants
	}
	t.evaluate = func(t *txn) {
		for d, o := range oldest {
			if o >= 0 {
				t.deliver(w, d, o, carrier)
			}
		}
	}
}

// oldest returns the oldest open order of a district, or -1. The leader remembers where it looked last.
func (t *txn) oldest(w, d int) int {
	next := int(t.read(key(districts, w, d, 0, 0)).n[dNext])
	for o := t.home.looked[[2]int{w, d}]; o < next; o++ {
		if _, ok := t.find(key(newOrders, w, d, o, 0)); ok {
			t.home.looked[[2]int{w, d}] = o
			return o
		}
	}
	return -1
}

func (t *txn) deliver(w, d, o int, carrier int64) {
	t.delete(key(newOrders, w, d, o, 0))
	order := t.read(key(orders, w, d, o, 0))
	order.n[oCarrier] = carrier
	t.put(key(orders, w, d, o, 0), order.text, order.n...)
	sum := int64(0)
	for i := range int(order.n[oLines]) {
		k := key(orderLines, w, d, o, i)
		l := t.read(k)
		l.n[olDelivered] = int64(t.begun) + 1
		sum += l.n[olAmount]
		t.put(k, l.text, l.n...)
	}
	k := key(customers, w, d, int(order.n[oCustomer]), 0)
	c := t.read(k)
	c.n[cBalance] += sum
	c.n[cDeliveries]++
	t.put(k, c.text, c.n...)
}

// stockLevel is clause 2.8, whose stocks may be of different moments.
func (x *terminal) stockLevel(t *txn) {
	w, d := x.warehouse, x.district
	t.want(w, key(districts, w, d, 0, 0), false)
	t.evaluate = func(t *txn) {
		next := int(t.read(key(districts, w, d, 0, 0)).n[dNext])
		for o := max(next-20, 0); o < next; o++ {
			for i := range int(t.read(key(orders, w, d, o, 0)).n[oLines]) {
				t.read(key(stocks, w, 0, int(t.read(key(orderLines, w, d, o, i)).n[olItem]), 0))
			}
		}
	}
}
