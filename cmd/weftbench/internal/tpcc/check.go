// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"bytes"
	"errors"
	"fmt"
)

// check holds all replicas to the consistency conditions of clause 3.3.2 (1 to 10, and 12), and to each other.
func (r *run) check() error {
	for node := range Replicas {
		var errs []error
		v := &view{paid: map[string]int64{}, delivered: map[string]int64{}, ordered: map[string]int64{}}
		for _, k := range r.ranges {
			at := node
			if !k.c.Alive(uint64(at) + 1) {
				at = int(k.leader) - 1 // for the sums over ranges
			}
			v.add(k.replicas[at])
			errs = append(errs, same(k, k.replicas[at], at))
		}
		if err := errors.Join(append(errs, v.check(node))...); err != nil {
			return err // the other replicas would say the same, mostly
		}
	}
	return nil
}

// same compares a replica with the leader's.
func same(k *keyRange, p *replica, node int) error {
	lead := k.leading()
	if len(p.rows) != len(lead.rows) || len(p.intents) != len(lead.intents) {
		return fmt.Errorf("range %d: node %d has %d rows and %d intents, and the leader %d and %d", k.id, node+1, len(p.rows), len(p.intents), len(lead.rows), len(lead.intents))
	}
	for name, value := range lead.rows {
		if !bytes.Equal(value, p.rows[name]) {
			return fmt.Errorf("range %d: node %d and the leader differ at %s", k.id, node+1, name)
		}
	}
	return nil
}

// district is what the rows of a district say.
type district struct {
	ytd, next                       int64
	orders, maxOrder                int64
	pending, minPending, maxPending int64
	lines, wantLines                int64
	paid                            int64
}

// view is all ranges, each at one of its replicas.
type view struct {
	errs       []error
	replicas   []*replica
	districts  map[string]*district
	warehouses map[string]int64 // ytd
	paid       map[string]int64 // by customer: history
	delivered  map[string]int64 // by customer: amounts of lines
	ordered    map[string]int64 // by stock row: quantity
}

func (v *view) add(p *replica) { v.replicas = append(v.replicas, p) }

func (v *view) wrong(format string, args ...any) {
	if len(v.errs) < 5 {
		v.errs = append(v.errs, fmt.Errorf(format, args...))
	}
}

func (v *view) district(of []int64) *district {
	k := key("d", of[:2]...)
	if v.districts[k] == nil {
		v.districts[k] = &district{maxOrder: -1, maxPending: -1}
	}
	return v.districts[k]
}

// check sums up all rows, and compares.
func (v *view) check(node int) error {
	v.districts, v.warehouses = map[string]*district{}, map[string]int64{}
	for _, p := range v.replicas {
		if len(p.intents) > 0 {
			v.wrong("%d transactions are not resolved", len(p.intents))
		}
		for name := range p.rows {
			v.sum(p, name)
		}
	}
	paid := map[string]int64{} // by warehouse: districts
	history := map[string]int64{}
	for name, d := range v.districts {
		_, of := columns(name)
		w := key("wy", of[0])
		paid[w] += d.ytd
		history[w] += d.paid
		if d.next-1 != d.maxOrder || d.pending > 0 && d.next-1 != d.maxPending {
			v.wrong("condition 2: %s: next order %d, last order %d, last new order %d", name, d.next, d.maxOrder, d.maxPending)
		}
		if d.pending > 0 && d.maxPending-d.minPending+1 != d.pending {
			v.wrong("condition 3: %s: %d new orders from %d to %d", name, d.pending, d.minPending, d.maxPending)
		}
		if d.lines != d.wantLines {
			v.wrong("condition 4: %s: %d lines, and orders say %d", name, d.lines, d.wantLines)
		}
		if d.ytd != d.paid {
			v.wrong("condition 9: %s: %d paid, and its history says %d", name, d.ytd, d.paid)
		}
	}
	for w, ytd := range v.warehouses {
		if ytd != paid[w] || ytd != history[w] {
			v.wrong("conditions 1 and 8: %s: %d paid, districts say %d, and the history %d", w, ytd, paid[w], history[w])
		}
	}
	for _, p := range v.replicas {
		for name := range p.rows {
			v.compare(p, name)
		}
	}
	if len(v.errs) > 0 {
		return fmt.Errorf("replicas %d: %w", node+1, errors.Join(v.errs...))
	}
	return nil
}

// sum takes a row.
func (v *view) sum(p *replica, name string) {
	table, of := columns(name)
	n := p.get(name)
	switch table {
	case "wy":
		v.warehouses[name] = n[0]
	case "dy":
		v.district(of).ytd = n[0]
	case "dn":
		v.district(of).next = n[0]
	case "h":
		v.district(of).paid += n[0]
		v.paid[key("c", n[1], n[2], n[3])] += n[0]
	case "o":
		d := v.district(of)
		d.orders++
		d.maxOrder = max(d.maxOrder, of[2])
		d.wantLines += n[2]
	case "no":
		d := v.district(of)
		if d.pending == 0 || of[2] < d.minPending {
			d.minPending = of[2]
		}
		d.pending++
		d.maxPending = max(d.maxPending, of[2])
	case "ol":
		v.district(of).lines++
		if of[2] >= firstOrders {
			v.ordered[key("s", n[1], n[0])] += n[2]
		}
		if n[4] > 0 {
			v.delivered[key("c", of[0], of[1], p.get(key("o", of[:3]...))[0])] += n[3]
		}
	}
}

// compare holds a row to others.
func (v *view) compare(p *replica, name string) {
	table, of := columns(name)
	n := p.get(name)
	switch table {
	case "o":
		if _, pending := p.rows[key("no", of...)]; pending != (n[1] == 0) {
			v.wrong("condition 5: %s: carrier %d, and a new order: %v", name, n[1], pending)
		}
		for i := range n[2] + 1 {
			line := p.get(key("ol", append(of, i)...))
			if (line != nil) != (i < n[2]) {
				v.wrong("condition 6: %s: want %d lines, and line %d: %v", name, n[2], i, line)
			} else if line != nil && (line[4] == 0) != (n[1] == 0) {
				v.wrong("condition 7: %s: carrier %d, and line %d is delivered: %d", name, n[1], i, line[4])
			}
		}
	case "c":
		if n[0] != v.delivered[name]-v.paid[name] {
			v.wrong("condition 10: %s: balance %d, delivered %d, history %d", name, n[0], v.delivered[name], v.paid[name])
		}
		if n[0]+n[1] != v.delivered[name] {
			v.wrong("condition 12: %s: balance %d, paid %d, delivered %d", name, n[0], n[1], v.delivered[name])
		}
	case "s":
		if n[1] != v.ordered[name] {
			v.wrong("%s: %d ordered, and the lines say %d", name, n[1], v.ordered[name])
		}
	}
}
