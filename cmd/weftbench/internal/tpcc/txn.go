// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/internal/wire"
)

// txn is a transaction under way.
type txn struct {
	w     *sim
	id    uint64
	kind  int
	home  *ranged
	begun time.Duration
	parts []*part
	// more, unless nil, returns locks of the home range that depend on rows.
	more func(t *txn) []want
	// evaluate reads rows, and writes batches.
	evaluate func(t *txn)
	batches  []*batch
	answer   func()
}

// part is a transaction's part in a range.
type part struct {
	r     *ranged
	wants []want
}

// want adds a lock.
func (t *txn) want(w int, k string, exclusive bool) {
	r := t.w.rangeOf(w)
	i := slices.IndexFunc(t.parts, func(p *part) bool { return p.r == r })
	if i < 0 {
		i = len(t.parts)
		t.parts = append(t.parts, &part{r: r})
	}
	p := t.parts[i]
	if at := slices.IndexFunc(p.wants, func(x want) bool { return x.key == k }); at >= 0 {
		p.wants[at].exclusive = p.wants[at].exclusive || exclusive
		return
	}
	p.wants = append(p.wants, want{k, exclusive})
}

// read returns a row of the leader's state. The row must be there.
func (t *txn) read(k string) row {
	r, ok := t.find(k)
	if !ok {
		table, w, d, id := parts(k)
		t.w.Fail("a transaction finds no row of table %d: %d, %d, %d", table, w, d, id)
		return row{n: make([]int64, 5)}
	}
	return r
}

func (t *txn) find(k string) (row, bool) {
	_, w, _, _ := parts(k)
	v := t.w.rangeOf(w).leader.state.get(k)
	if v == nil {
		return row{}, false
	}
	return decode(v), true
}

// put writes a row.
func (t *txn) put(k string, text []byte, n ...int64) { t.batch(k).put(k, row{n, text}.encode()) }

func (t *txn) delete(k string) { t.batch(k).put(k, nil) }

func (t *txn) batch(k string) *batch {
	_, w, _, _ := parts(k)
	r := t.w.rangeOf(w)
	for _, b := range t.batches {
		if b.r == r {
			return b
		}
	}
	b := &batch{r: r}
	t.batches = append(t.batches, b)
	return b
}

// start begins a transaction at the home range's leader.
func (t *txn) start() {
	t.w.active++
	slices.SortFunc(t.parts, func(a, b *part) int { return int(a.r.id) - int(b.r.id) })
	for _, p := range t.parts {
		slices.SortFunc(p.wants, func(a, b want) int { return strings.Compare(a.key, b.key) })
	}
	t.home.leader.Node.Work(t.w.Costs.RPC, func() { t.lock(0) })
}

// The bytes of a request for a lock or of an answer, beside rows.
const askBytes = 64

// lock takes the locks of a range, and goes on to the next.
func (t *txn) lock(i int) {
	if i == len(t.parts) {
		t.locked()
		return
	}
	p, rows := t.parts[i], 0
	t.visit(p.r, askBytes+keyLen*len(p.wants), func(done func()) {
		p.r.locks.all(p.wants, func() {
			for _, w := range p.wants {
				rows += len(p.r.leader.state.get(w.key))
			}
			done()
		})
	}, func() int { return askBytes + rows }, func() { t.lock(i + 1) })
}

// visit works at a range's leader, and comes back to the home range's.
func (t *txn) visit(r *ranged, bytes int, do func(done func()), back func() int, then func()) {
	from, to := t.home.leader.Node, r.leader.Node
	if from == to {
		do(then)
		return
	}
	from.Call(to, wire.ClassAppend, bytes, func() { do(func() { to.Call(from, wire.ClassAppend, back(), then) }) })
}

func short() int { return askBytes }

// locked evaluates, and writes.
func (t *txn) locked() {
	if t.more != nil {
		wants := t.more(t)
		t.more = nil
		i := slices.IndexFunc(t.parts, func(p *part) bool { return p.r == t.home })
		t.parts[i].wants = append(t.parts[i].wants, wants...)
		t.home.locks.all(wants, t.locked)
		return
	}
	t.evaluate(t)
	bytes := 0
	for _, b := range t.batches {
		bytes += len(b.puts)
	}
	if len(t.batches) > 1 {
		t.put(key(records, t.home.first, 0, int(t.id), 0), nil, int64(len(t.batches)))
	}
	slices.SortFunc(t.batches, func(a, b *batch) int { return int(a.r.id) - int(b.r.id) })
	t.home.leader.Node.Work(costs.PerKiB(bytes, t.w.Costs.CallKiB), func() { t.prepare(0) })
}

// prepare has the other ranges keep their intents, and then commits at home.
func (t *txn) prepare(i int) {
	if i == len(t.batches) {
		if home := t.of(t.home); home != nil {
			t.home.leader.propose(command(write, t.id, home.puts), t.committed)
		} else {
			t.committed()
		}
		return
	}
	b, next := t.batches[i], func() { t.prepare(i + 1) }
	if b.r == t.home {
		next()
		return
	}
	c := command(intent, t.id, b.puts)
	t.visit(b.r, askBytes+len(c), func(done func()) { b.r.leader.propose(c, done) }, short, next)
}

func (t *txn) of(r *ranged) *batch {
	for _, b := range t.batches {
		if b.r == r {
			return b
		}
	}
	return nil
}

// committed answers the client, and has intents become rows.
func (t *txn) committed() {
	t.w.After(clientDelay, t.answer)
	left := len(t.parts)
	ended := func() {
		if left--; left == 0 {
			t.w.active--
		}
	}
	for _, p := range t.parts {
		free := func() { p.r.locks.free(p.wants) }
		switch {
		case p.r == t.home:
			free()
			ended()
		case t.of(p.r) == nil:
			t.visit(p.r, askBytes, func(done func()) { free(); done() }, short, ended)
		default:
			c := command(commit, t.id, nil)
			t.visit(p.r, askBytes, func(done func()) { p.r.leader.propose(c, func() { free(); done() }) }, short, ended)
		}
	}
}
