// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
)

// txn is a transaction under way.
type txn struct {
	w     *load
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
	get      func(key string) []byte // rows of the home range, while more and evaluate run
	locked   map[string][]byte       // rows of other ranges
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

// read returns a row. The row must be there.
func (t *txn) read(k string) row {
	r, ok := t.find(k)
	if !ok {
		table, w, d, id := parts(k)
		t.w.Fail("a transaction finds no row of table %d: %d, %d, %d", table, w, d, id)
		return row{n: make([]int64, 5)}
	}
	return r
}

// find looks for a row of the home range, or for one of another range that is locked.
func (t *txn) find(k string) (row, bool) {
	_, w, _, _ := parts(k)
	get := t.get
	if t.w.rangeOf(w) != t.home {
		get = func(k string) []byte { return t.locked[k] }
	}
	v := get(k)
	if v == nil {
		return row{}, false
	}
	r, err := decode(v)
	if err != nil {
		t.w.Fail("a row of table %d: %w", k[0], err)
	}
	return r, err == nil
}

// put writes a row.
func (t *txn) put(k string, text []byte, n ...int64) { t.batch(k).put(k, row{n, text}.encode()) }

func (t *txn) delete(k string) { t.batch(k).put(k, nil) }

func (t *txn) batch(k string) *batch {
	_, w, _, _ := parts(k)
	r := t.w.rangeOf(w)
	b := t.of(r)
	if b == nil {
		b = &batch{r: r}
		t.batches = append(t.batches, b)
	}
	return b
}

// start begins a transaction at the home range's leader.
func (t *txn) start() {
	slices.SortFunc(t.parts, func(a, b *part) int { return int(a.r.id) - int(b.r.id) })
	for _, p := range t.parts {
		slices.SortFunc(p.wants, func(a, b want) int { return strings.Compare(a.key, b.key) })
	}
	t.w.work(t.home, costs.Fitted.RPC, func() { t.lock(0) })
}

// lock takes the locks of a range, and goes on to the next.
func (t *txn) lock(i int) {
	if i == len(t.parts) {
		t.run()
		return
	}
	p, next := t.parts[i], func() { t.lock(i + 1) }
	if p.r == t.home {
		t.home.lock(t.id, p.wants, next)
		return
	}
	t.w.visit(t.home, p.r, request{kind: lockRows, txn: t.id, wants: p.wants}, func(rows [][]byte) {
		for i, w := range p.wants {
			t.locked[w.key] = rows[i]
		}
		next()
	})
}

// run evaluates, and writes.
func (t *txn) run() {
	if t.more != nil {
		var wants []want
		t.look(func() { wants = t.more(t) })
		t.more = nil
		t.home.lock(t.id, wants, t.run)
		return
	}
	t.look(func() { t.evaluate(t) })
	bytes := 0
	for _, b := range t.batches {
		bytes += len(b.puts)
	}
	if len(t.batches) > 1 {
		t.put(key(records, t.home.first, 0, int(t.id), 0), nil, int64(len(t.batches)))
	}
	slices.SortFunc(t.batches, func(a, b *batch) int { return int(a.r.id) - int(b.r.id) })
	t.w.work(t.home, costs.PerKiB(bytes, costs.Fitted.CallKiB), func() { t.prepare(0) })
}

// look does something that reads rows of the home range.
func (t *txn) look(do func()) {
	t.home.lead.view(func(get func(string) []byte) {
		t.get = get
		do()
	})
}

// prepare has the other ranges keep their intents, and then commits at home.
func (t *txn) prepare(i int) {
	if i == len(t.batches) {
		if home := t.of(t.home); home != nil {
			t.w.propose(t.home, command(write, t.id, home.puts), t.committed)
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
	t.w.visit(t.home, b.r, request{kind: intent, txn: t.id, puts: b.puts}, func([][]byte) { next() })
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
		switch {
		case p.r == t.home:
			p.r.free(t.id)
			ended()
		case t.of(p.r) == nil:
			t.w.visit(t.home, p.r, request{kind: letGo, txn: t.id}, func([][]byte) { ended() })
		default:
			t.w.visit(t.home, p.r, request{kind: commit, txn: t.id}, func([][]byte) { ended() })
		}
	}
}
