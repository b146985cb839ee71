// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"math"
	"time"

	"github.com/weftraft/weft/internal/world"
)

// Kind is a transaction of the specification.
type Kind int

// The transactions, in the order of the specification.
const (
	NewOrder Kind = iota
	Payment
	OrderStatus
	Delivery
	StockLevel
	Kinds // how many there are
)

// String returns the name.
func (k Kind) String() string {
	return [...]string{"New-Order", "Payment", "Order-Status", "Delivery", "Stock-Level"}[k]
}

// share of transactions in percent, and times as specified (clauses 5.2.3 to 5.2.5).
var specified = [Kinds]struct {
	share         int
	keying, think time.Duration
}{{45, 18 * time.Second, 12 * time.Second}, {43, 3 * time.Second, 12 * time.Second}, {4, 2 * time.Second, 10 * time.Second},
	{4, 2 * time.Second, 5 * time.Second}, {4, 2 * time.Second, 5 * time.Second}}

// terminal is a user, who works for one warehouse.
type terminal struct {
	r         *run
	warehouse int64
	draws     world.Draws
}

// pick draws the next transaction's kind.
func (t *terminal) pick() Kind {
	x := t.draws.IntN(100)
	for k := range Kinds {
		if x -= specified[k].share; x < 0 {
			return k
		}
	}
	return StockLevel
}

// next begins a transaction, after the times of a user, if the run has these.
func (t *terminal) next() {
	if t.r.stopped {
		return
	}
	k := t.pick()
	if !t.r.Thinks {
		t.begin(k)
		return
	}
	s := specified[k]
	think := time.Duration(-math.Log(1-t.draws.Float64()) * float64(s.think))
	t.r.after(min(think, 10*s.think)+s.keying, func() { t.begin(k) })
}

func (t *terminal) begin(k Kind) {
	if t.r.stopped {
		return
	}
	x := &txn{terminal: t, kind: k, id: t.r.number(), home: t.r.rangeOf(t.warehouse), begun: t.r.now()}
	t.r.open++
	t.r.after(t.r.Delay, func() { x.run() })
}

// uniform draws a number from 0 to n-1, skewed one that is not even (clause 2.1.6).
func (t *terminal) uniform(n int) int64 { return int64(t.draws.IntN(n)) }

func (t *terminal) skewed(a, n int) int64 {
	return int64((t.draws.IntN(a+1) | t.draws.IntN(n)) % n)
}

// other draws another warehouse, if there is one.
func (t *terminal) other() int64 {
	if t.r.warehouses == 1 {
		return t.warehouse
	}
	return (t.warehouse + 1 + t.uniform(t.r.warehouses-1)) % int64(t.r.warehouses)
}
