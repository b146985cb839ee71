// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"slices"
	"time"
)

// txn is a transaction under way.
type txn struct {
	*terminal
	kind  Kind
	id    uint64
	home  *keyRange
	parts []*part // by range
	begun time.Duration
}

// part is what a transaction does in a range.
type part struct {
	at     *keyRange
	keys   []string // locked
	writes []write
}

// part returns the transaction's part in the range of a warehouse.
func (x *txn) part(warehouse int64) *part {
	at := x.r.rangeOf(warehouse)
	i, found := slices.BinarySearchFunc(x.parts, at.id, func(p *part, id int) int { return p.at.id - id })
	if !found {
		x.parts = slices.Insert(x.parts, i, &part{at: at})
	}
	return x.parts[i]
}

// lock says that a key is to be locked.
func (x *txn) lock(table string, w int64, rest ...int64) {
	p := x.part(w)
	k := key(table, append([]int64{w}, rest...)...)
	if i, found := slices.BinarySearch(p.keys, k); !found {
		p.keys = slices.Insert(p.keys, i, k)
	}
}

// read returns a row, at the leader of its range.
func (x *txn) read(table string, w int64, rest ...int64) []int64 {
	at := x.r.rangeOf(w)
	k := key(table, append([]int64{w}, rest...)...)
	for _, p := range x.parts { // what this transaction has written
		for _, mine := range slices.Backward(p.writes) {
			if mine.key == k {
				return numbers(mine.value)
			}
		}
	}
	return at.leading().get(k)
}

// put writes a row, or removes it if value is nil.
func (x *txn) put(value []byte, table string, w int64, rest ...int64) {
	p := x.part(w)
	p.writes = append(p.writes, write{key(table, append([]int64{w}, rest...)...), value})
}

// run begins the transaction at its home.
func (x *txn) run() {
	switch x.kind {
	case NewOrder:
		x.newOrder()
	case Payment:
		x.payment()
	case Delivery:
		x.delivery()
	case OrderStatus:
		x.orderStatus()
	default:
		x.stockLevel()
	}
}

// newOrder is clause 2.4.
func (x *txn) newOrder() {
	w, d, c := x.warehouse, x.uniform(districts), x.skewed(customers/3, customers)
	type line struct{ item, supplier, quantity int64 }
	var lines []line
	for range 5 + x.draws.IntN(11) {
		l := line{x.skewed(items/12, items), w, 1 + x.uniform(10)}
		if x.draws.IntN(100) == 0 {
			l.supplier = x.other()
		}
		lines = append(lines, l)
		x.lock("s", l.supplier, l.item)
	}
	unknownItem := x.draws.IntN(100) == 0 // it is rolled back
	x.lock("dn", w, d)
	x.locked(func() {
		if unknownItem {
			x.abort()
			return
		}
		o, remote := x.read("dn", w, d)[0], int64(0)
		for i, l := range lines {
			s := x.read("s", l.supplier, l.item)
			if s[0] -= l.quantity; s[0] < 10 {
				s[0] += 91
			}
			s[1] += l.quantity
			s[2]++
			if l.supplier != w {
				s[3]++
				remote++
			}
			x.put(row(x.r.Text*stockText, s...), "s", l.supplier, l.item)
			x.put(row(x.r.Text*lineText, l.item, l.supplier, l.quantity, l.quantity*price(l.item), 0), "ol", w, d, o, int64(i))
		}
		x.put(row(0, o+1), "dn", w, d)
		x.put(row(0, c, 0, int64(len(lines)), remote), "o", w, d, o)
		x.put(row(0), "no", w, d, o)
		x.put(row(0, o), "cl", w, d, c)
		x.commit()
	})
}

// price of an item, 1.00 to 100.00.
func price(item int64) int64 { return 100 + item*7919%9901 }

// payment is clause 2.5.
func (x *txn) payment() {
	w, d := x.warehouse, x.uniform(districts)
	cw, cd, c, amount := w, d, x.skewed(customers/3, customers), 100+x.uniform(499_901)
	if x.draws.IntN(100) < 15 {
		cw, cd = x.other(), x.uniform(districts)
	}
	x.lock("wy", w)
	x.lock("dy", w, d)
	x.lock("c", cw, cd, c)
	x.locked(func() {
		x.put(row(0, x.read("wy", w)[0]+amount), "wy", w)
		x.put(row(0, x.read("dy", w, d)[0]+amount), "dy", w, d)
		r := x.read("c", cw, cd, c)
		r[0], r[1], r[2] = r[0]-amount, r[1]+amount, r[2]+1
		x.put(row(x.r.Text*customerText, r...), "c", cw, cd, c)
		x.put(row(x.r.Text*historyText, amount, cw, cd, c), "h", w, d, int64(x.id))
		x.commit()
	})
}

// delivery is clause 2.7, all districts in one transaction.
func (x *txn) delivery() {
	w, carrier := x.warehouse, 1+x.uniform(10)
	for d := range int64(districts) {
		x.lock("dd", w, d)
	}
	x.locked(func() {
		type due struct{ d, o, c int64 }
		var all []due
		for d := range int64(districts) {
			if o := x.read("dd", w, d)[0]; o < x.read("dn", w, d)[0] {
				all = append(all, due{d, o, x.read("o", w, d, o)[0]})
			}
		}
		p := x.part(w)
		first := len(p.keys)
		for _, it := range all {
			p.keys = append(p.keys, key("c", w, it.d, it.c))
		}
		slices.Sort(p.keys[first:])
		p.at.locks.take(p.keys[first:], func() {
			for _, it := range all {
				order := x.read("o", w, it.d, it.o)
				order[1] = carrier
				sum := int64(0)
				for i := range order[2] {
					l := x.read("ol", w, it.d, it.o, i)
					l[4] = 1
					sum += l[3]
					x.put(row(x.r.Text*lineText, l...), "ol", w, it.d, it.o, i)
				}
				c := x.read("c", w, it.d, it.c)
				c[0], c[3] = c[0]+sum, c[3]+1
				x.put(row(x.r.Text*customerText, c...), "c", w, it.d, it.c)
				x.put(row(0, order...), "o", w, it.d, it.o)
				x.put(nil, "no", w, it.d, it.o)
				x.put(row(0, it.o+1), "dd", w, it.d)
			}
			x.commit()
		})
	})
}

// orderStatus is clause 2.6: a read of one instant at the leader.
func (x *txn) orderStatus() {
	w, d, c := x.warehouse, x.uniform(districts), x.skewed(customers/3, customers)
	if last := x.read("cl", w, d, c); last != nil {
		for i := range x.read("o", w, d, last[0])[2] {
			x.read("ol", w, d, last[0], i)
		}
	}
	x.done(true)
}

// stockLevel is clause 2.8: a read of one instant at the leader.
func (x *txn) stockLevel() {
	w, d, low := x.warehouse, x.uniform(districts), 10+x.uniform(11)
	next, below := x.read("dn", w, d)[0], map[int64]bool{}
	for o := max(0, next-20); o < next; o++ {
		for i := range x.read("o", w, d, o)[2] {
			if item := x.read("ol", w, d, o, i)[0]; x.read("s", w, item)[0] < low {
				below[item] = true
			}
		}
	}
	x.done(true)
}
