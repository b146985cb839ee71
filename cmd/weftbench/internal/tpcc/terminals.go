// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"time"

	"github.com/weftraft/weft/internal/world"
)

// clientDelay is the way between a terminal and its leader.
const clientDelay = 250 * time.Microsecond

// keying and thinking are the times of clause 5.2.5.7, by kind.
var (
	keying   = [kinds]time.Duration{18 * time.Second, 3 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}
	thinking = [kinds]time.Duration{12 * time.Second, 12 * time.Second, 10 * time.Second, 5 * time.Second, 5 * time.Second}
)

// terminal is a closed loop. Its transactions are drawn from a deck of cards, as clause 5.2.4.2 allows.
type terminal struct {
	w                   *load
	warehouse, district int
	draws               world.Draws
	deck                []int
}

// card draws the next kind.
func (x *terminal) card() int {
	if len(x.deck) == 0 {
		for kind, n := range [kinds]int{10, 10, 1, 1, 1} {
			for range n {
				x.deck = append(x.deck, kind)
			}
		}
		x.draws.Shuffle(len(x.deck), func(i, j int) { x.deck[i], x.deck[j] = x.deck[j], x.deck[i] })
	}
	kind := x.deck[0]
	x.deck = x.deck[1:]
	return kind
}

// next begins a transaction, unless the run ends.
func (x *terminal) next() {
	if x.w.ending {
		return
	}
	kind, wait := x.card(), time.Duration(0)
	if x.w.plan.Think {
		wait = keying[kind]
	}
	x.w.After(wait, func() {
		if !x.w.ending {
			x.begin(kind)
		}
	})
}

func (x *terminal) begin(kind int) {
	x.w.active++
	x.w.last += x.w.step
	t := &txn{w: x.w, id: x.w.last, kind: kind, home: x.w.rangeOf(x.warehouse), begun: x.w.Now(), locked: map[string][]byte{}}
	[kinds]func(*txn){x.newOrder, x.payment, x.orderStatus, x.delivery, x.stockLevel}[kind](t)
	t.answer = func() {
		x.w.done(t)
		wait := time.Duration(0)
		if x.w.plan.Think {
			wait = min(x.draws.Wait(thinking[kind]), 10*thinking[kind])
		}
		x.w.After(wait, x.next)
	}
	x.w.After(clientDelay, t.start)
}

// firstTxn is above the numbers of the first histories.
const firstTxn = 1 << 20
