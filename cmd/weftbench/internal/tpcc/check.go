// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
)

// errInconsistent is matched by all that check finds.
var errInconsistent = errors.New("not consistent")

// check compares the replicas of each range, and checks the conditions of clause 3.3.2 on the state of
// each: number i of each range's replicas are checked together, because payments and order lines
// name rows of other ranges. The result is the number of replicas checked.
func check(sc scale, ranges [][]*kept) (replicas int, err error) {
	for i, all := range ranges {
		for j, s := range all {
			if err := s.equal(all[0]); err != nil {
				return 0, fmt.Errorf("range %d, replica %d beside the first: %w", i+1, j+1, err)
			}
		}
	}
	for i := 0; ; i++ {
		s, any := newSums(sc), false
		for _, all := range ranges {
			at := min(i, len(all)-1) // ranges with a node that is down have fewer
			if i == at {
				any = true
				replicas++
			}
			if err := all[at].each(s.add); err != nil {
				return 0, err
			}
		}
		if !any {
			return replicas, nil
		}
		if err := s.holds(); err != nil {
			return 0, fmt.Errorf("replicas %d: %w", i+1, err)
		}
	}
}

// kept is what a replica has applied.
type kept struct {
	memory
	commands int
}

// equal compares what two replicas have applied.
func (s *kept) equal(o *kept) error {
	for k := range s.own {
		if k[0] == intents {
			return fmt.Errorf("%w: an intent is left", errInconsistent)
		}
	}
	if s.commands != o.commands || !maps.EqualFunc(s.own, o.own, bytes.Equal) {
		return fmt.Errorf("%w: the rows differ", errInconsistent)
	}
	return nil
}

// each visits all rows.
func (s *kept) each(visit func(k string, r row)) (err error) {
	one := func(k string, v []byte) {
		r, damaged := decode(v)
		if err = errors.Join(err, damaged); damaged == nil {
			visit(k, r)
		}
	}
	for k, v := range s.base {
		if _, changed := s.own[k]; !changed {
			one(k, v)
		}
	}
	for k, v := range s.own {
		if v != nil {
			one(k, v)
		}
	}
	return err
}

// sums is what the conditions compare.
type sums struct {
	scale
	w      []warehouseSums
	d      []districtSums
	c      []customerSums
	orders map[[3]int]*orderSums
}

type warehouseSums struct{ ytd, ofDistricts, ofHistories, stocks, sold int64 }

type districtSums struct {
	ytd, ofHistories     int64
	next, last           int
	open, oldest, newest int
	lines, counted       int64
}

type customerSums struct{ balance, delivered, paid, ytd int64 }

type orderSums struct {
	there, open, carried         bool
	customer                     int
	lines, counted, deliveredToo int64
	amount                       int64
}

func newSums(sc scale) *sums {
	n := sc.warehouses * perWarehouse
	s := &sums{scale: sc, w: make([]warehouseSums, sc.warehouses), d: make([]districtSums, n), c: make([]customerSums, n*sc.customers), orders: map[[3]int]*orderSums{}}
	for i := range s.d {
		s.d[i].oldest, s.d[i].newest, s.d[i].last = 1<<30, -1, -1
	}
	return s
}

func (s *sums) order(w, d, o int) *orderSums {
	x := s.orders[[3]int{w, d, o}]
	if x == nil {
		x = &orderSums{}
		s.orders[[3]int{w, d, o}] = x
	}
	return x
}

func (s *sums) customer(w, d, c int) *customerSums {
	return &s.c[(w*perWarehouse+d)*s.customers+c]
}

// add adds a row.
func (s *sums) add(k string, r row) {
	table, w, d, id := parts(k)
	dist := &s.d[w*perWarehouse+d]
	switch table {
	case warehouses:
		s.w[w].ytd = r.n[wYTD]
	case districts:
		s.w[w].ofDistricts += r.n[dYTD]
		dist.ytd, dist.next = r.n[dYTD], int(r.n[dNext])
	case customers:
		c := s.customer(w, d, id)
		c.balance, c.ytd = r.n[cBalance], r.n[cPaid]
	case stocks:
		s.w[w].stocks += r.n[sYTD]
	case histories:
		s.w[w].ofHistories += r.n[hAmount]
		dist.ofHistories += r.n[hAmount]
		s.customer(int(r.n[hCustomerWarehouse]), int(r.n[hCustomerDistrict]), int(r.n[hCustomer])).paid += r.n[hAmount]
	case newOrders:
		dist.open++
		dist.oldest, dist.newest = min(dist.oldest, id), max(dist.newest, id)
		s.order(w, d, id).open = true
	case orders:
		dist.last = max(dist.last, id)
		dist.lines += r.n[oLines]
		o := s.order(w, d, id)
		o.there, o.carried, o.customer, o.lines = true, r.n[oCarrier] != 0, int(r.n[oCustomer]), r.n[oLines]
	case orderLines:
		dist.counted++
		o := s.order(w, d, id)
		o.counted++
		if r.n[olDelivered] != 0 {
			o.deliveredToo++
			o.amount += r.n[olAmount]
		}
		if id >= s.customers { // not of the first orders
			s.w[r.n[olSupply]].sold += r.n[olQuantity]
		}
	}
}

// holds checks the conditions 1 to 10 and 12 of the specification, and that stocks have what was ordered.
func (s *sums) holds() error {
	var errs []error
	want := func(condition string, holds bool, at ...int) {
		if !holds && len(errs) < 5 {
			errs = append(errs, fmt.Errorf("%w: condition %s, at %v", errInconsistent, condition, at))
		}
	}
	for i, w := range s.w {
		want("1: W_YTD is the sum of D_YTD", w.ytd == w.ofDistricts, i)
		want("8: W_YTD is the sum of H_AMOUNT", w.ytd == w.ofHistories, i)
		want("of stocks: S_YTD is the sum of OL_QUANTITY", w.stocks == w.sold, i)
	}
	for at, o := range s.orders {
		w, d := at[0], at[1]
		want("5: an order has a carrier unless it is new", o.there && o.carried != o.open, at[:]...)
		want("6: O_OL_CNT is the number of lines", o.lines == o.counted, at[:]...)
		want("7: lines have a delivery date if the order has a carrier", o.carried && o.deliveredToo == o.counted || !o.carried && o.deliveredToo == 0, at[:]...)
		s.customer(w, d, o.customer).delivered += o.amount
	}
	for i, d := range s.d {
		w, no := i/perWarehouse, i%perWarehouse
		want("2: D_NEXT_O_ID follows the last order and the last new order", d.next == d.last+1 && (d.open == 0 || d.newest == d.last), w, no)
		want("3: new orders have no gap", d.open == 0 || d.newest-d.oldest+1 == d.open, w, no)
		want("4: O_OL_CNT sums to the number of lines", d.lines == d.counted, w, no)
		want("9: D_YTD is the sum of H_AMOUNT", d.ytd == d.ofHistories, w, no)
	}
	for i, c := range s.c {
		want("10: C_BALANCE is delivered amounts less payments", c.balance == c.delivered-c.paid, i)
		want("12: C_BALANCE and C_YTD_PAYMENT sum to delivered amounts", c.balance+c.ytd == c.delivered, i)
	}
	return errors.Join(errs...)
}
