// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// world is a group whose entries are all committed, and whose members complete
// them by gossip alone: over links that lose, delay and reorder, with members
// that die, restart with empty memory, compact their logs at different times,
// and one whose units may be wrong for a while.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	tick    int
	nodes   []*node
	log     []*entry // log[i] has index i+1
	commit  uint64
	leader  uint64
	loss    float64
	liar    uint64
	flight  []letter
	reached counts
}

// counts is what a run reached.
type counts struct{ early, asks, stuck, resumed, lies, restarts, deferred, completed int }

// letter is a message on its way.
type letter struct {
	at       int
	from, to uint64
	id       ecraft.ID
	data     []byte
	ask      bool
	answer   bool
}

// node is a member. Its log is what the world's says, from first to last.
type node struct {
	*world
	id                   uint64
	alive                bool
	first, last, applied uint64
	budget, gap          int
	store                *Store
	puller               *Puller
	pushes               *Deferred
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), loss: 0.2}
	voters := 3 + w.rng.IntN(7)
	members := voters + w.rng.IntN(3)
	if w.rng.IntN(3) == 0 {
		w.liar = uint64(1 + w.rng.IntN(members))
	}
	for i := range 10 + w.rng.IntN(30) {
		w.log = append(w.log, w.entry(uint64(i+1), voters, members))
	}
	for id := range members {
		n := &node{world: w, id: uint64(id + 1), first: 1, gap: w.rng.IntN(2) * 3000, budget: []int{1000, 20000, 1 << 20}[w.rng.IntN(3)]}
		n.start()
		w.nodes = append(w.nodes, n)
	}
	w.leader = 1
	return w
}

// entry makes an entry of one of several leaders, at some level or none.
func (w *world) entry(index uint64, voters, members int) *entry {
	encoder := uint64(1 + w.rng.IntN(min(3, voters)))
	layout := ecraft.NewLayout(voters, members-1)
	units := make([]uint8, layout.Slots)
	even := uint8(layout.UnitsAt(1 + w.rng.IntN(ecraft.Levels(voters))))
	for i := range units {
		units[i] = even
		if index%4 == 0 {
			units[i] = uint8(w.rng.IntN(layout.D + 1))
		}
	}
	e := newEntry(at(index), 1+w.rng.IntN(2000), layout.D, units...)
	e.h.Encoder, e.h.Members = encoder, nil
	for id := range uint64(members) {
		if id+1 != encoder {
			e.h.Members = append(e.h.Members, id+1)
		}
	}
	require.NoError(w.t, e.h.Validate())
	return e
}

// start starts a node with nothing in memory.
func (n *node) start() {
	n.alive = true
	n.store = NewStore(n.id, n.budget)
	n.puller = NewPuller(n.id, PullerOptions{Batch: 8000, Timeout: 2 + n.rng.IntN(4)})
	n.pushes = NewDeferred(n.gap, 2)
	var ids []uint64
	for i := range n.log[0].h.Slots + 1 {
		ids = append(ids, uint64(i+1))
	}
	n.puller.SetMembers(ids)
	n.store.Applied(n.applied)
	n.expect(n.applied + 1)
}

// whole reports whether the log of the node has the payload of an entry.
func (n *node) whole(e *entry) bool { return n.stored(e) && e.h.BaseOf(n.id) == e.h.D }

func (n *node) stored(e *entry) bool { return e.Index >= n.first && e.Index <= n.last }

// expect tells the store of entries of the log, until it has no room.
func (n *node) expect(from uint64) {
	for i := from; i <= n.last; i++ {
		if e := n.log[i-1]; !n.whole(e) {
			n.store.Expect(e.ID, e.h, e.base(n.id))
			if !n.store.Known(e.ID) {
				return
			}
		}
	}
}

// appendSome stores some more entries, durably, and so owes pushes for them.
func (n *node) appendSome() {
	for range n.rng.IntN(4) {
		if n.last == uint64(len(n.log)) {
			return
		}
		n.last++
		e := n.log[n.last-1]
		n.commit = max(n.commit, n.last)
		if !n.whole(e) {
			n.store.Expect(e.ID, e.h, e.base(n.id))
		}
		n.pushes.Add(e.ID, len(e.payload), n.tick)
	}
}

// payload returns what the node can produce of an entry.
func (n *node) payload(e *entry) []byte {
	if n.whole(e) {
		return e.payload
	}
	return n.store.Payload(e.ID)
}

func (n *node) step() {
	n.appendSome()
	for {
		id, ok := n.pushes.Next(n.commit, n.tick)
		if !ok {
			break
		}
		n.push(n.log[id.Index-1])
	}
	n.reached.deferred += len(n.pushes.queue)
	if from, ok := n.store.Forgot(); ok {
		n.reached.resumed++
		n.expect(from)
	}
	for n.applied < min(n.commit, n.last) && n.payload(n.log[n.applied]) != nil {
		require.Equal(n.t, n.log[n.applied].payload, n.payload(n.log[n.applied]), "node %d, index %d", n.id, n.applied+1)
		n.applied++
		n.store.Applied(n.applied)
		n.reached.completed++
	}
	for _, ask := range n.puller.Plan(n.tick, n.store.Lacking(n.commit, 64, nil), n.leader, nil) {
		require.NotEqual(n.t, n.id, ask.To)
		for _, want := range ask.Wants {
			n.reached.asks++
			n.send(letter{to: ask.To, id: want.ID, data: AppendAsk(nil, want), ask: true})
		}
	}
	require.LessOrEqual(n.t, n.puller.onOrder, 8000+2000)
	require.NoError(n.t, n.store.Check())
}

func (n *node) push(e *entry) {
	for _, p := range Targets(e.h, n.id, 7, Peers{Reader: nobody}, nil) {
		strip := e.units(n.id, 0, p.Count)
		n.send(letter{to: p.Peer, id: e.ID, data: AppendUnits(nil, n.lie(e, strip)...)})
	}
}

// lie changes what the liar sends. Checksums are right.
func (n *node) lie(e *entry, strips ...ecraft.Strip) []ecraft.Strip {
	if n.id == n.liar {
		for i, s := range strips {
			strips[i] = e.lie(e.h.Members[s.Slot], s.First, s.Count)
		}
	}
	return strips
}

func (n *node) send(m letter) {
	m.from = n.id
	m.at = n.tick + n.rng.IntN(3)
	if n.rng.Float64() >= n.loss {
		n.flight = append(n.flight, m)
	}
	if n.rng.Float64() < n.loss/2 { // twice, or damaged
		m.data = append([]byte(nil), m.data...)
		m.data[n.rng.IntN(len(m.data))] ^= byte(n.rng.IntN(2))
		n.flight = append(n.flight, m)
	}
}

// receive handles a message as a member would.
func (n *node) receive(m letter) {
	e := n.log[m.id.Index-1]
	if m.ask {
		want, err := ParseAsk(m.id, m.data)
		if err != nil {
			return
		}
		var answer []ecraft.Strip
		switch {
		case n.payload(e) != nil:
			answer = n.lie(e, Answer(e.h, n.id, m.from, want, nil, e.word)...)
		case n.stored(e):
			answer = n.lie(e, Answer(e.h, n.id, m.from, want, []ecraft.Strip{e.base(n.id)}, nil)...)
		}
		n.send(letter{to: m.from, id: m.id, data: AppendUnits(nil, answer...), answer: true})
		return
	}
	strips, err := ParseUnits(m.data)
	if err != nil {
		return
	}
	for _, strip := range strips {
		_, _ = n.store.Add(m.id, m.from, strip) // the counters are looked at in the end
	}
	if m.answer {
		n.puller.Answered(m.from, m.id)
	} else {
		n.puller.Heard(m.from)
	}
}

// run runs a number of ticks.
func (w *world) run(ticks int) {
	for range ticks {
		w.tick++
		var later []letter
		due := w.flight
		w.flight = nil
		for _, m := range due {
			if m.at > w.tick {
				later = append(later, m)
			} else if n := w.nodes[m.to-1]; n.alive {
				n.receive(m)
			}
		}
		w.flight = append(w.flight, later...)
		for _, n := range w.nodes {
			if n.alive {
				n.step()
			}
		}
	}
}

// disturb kills, restarts and compacts, and lets another lead.
func (w *world) disturb() {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	switch w.rng.IntN(4) {
	case 0:
		n.alive = false
	case 1:
		n.count()
		w.reached.restarts++
		n.start()
	case 2:
		if n.applied > 0 && w.rng.IntN(3) == 0 {
			n.first = max(n.first, 1+n.rng.Uint64N(n.applied))
		}
	case 3:
		w.leader = n.id
	}
}

// count adds up what the node's memory has counted.
func (n *node) count() {
	n.reached.early += n.store.counts.early
	n.reached.lies += n.store.counts.wrong
}

// obtainable reports whether the honest members that are alive have enough for
// a node to complete an entry.
func (w *world) obtainable(n *node, e *entry) bool {
	units := 0
	for _, o := range w.nodes {
		switch {
		case !o.alive || o.id == w.liar && o != n:
		case o != n && o.payload(e) != nil:
			return true
		case o.stored(e):
			units += e.h.BaseOf(o.id)
		}
	}
	return units >= e.h.D
}

// Whatever happens, in the end everybody has applied everything, or is stuck at
// an entry of which the honest members that are left have too few units.
func TestEverybodyCompletes(t *testing.T) {
	var total counts
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runWorld(t, seed, &total) })
	}
	t.Logf("reached: %+v", total)
	for name, n := range map[string]int{"early": total.early, "asks": total.asks, "stuck": total.stuck, "resumed": total.resumed,
		"lies": total.lies, "restarts": total.restarts, "deferred": total.deferred, "completed": total.completed} {
		require.Positive(t, n, name)
	}
}

func runWorld(t *testing.T, seed uint64, total *counts) {
	w := newWorld(t, seed)
	for range 10 + w.rng.IntN(20) {
		w.run(1 + w.rng.IntN(5))
		w.disturb()
	}
	w.loss, w.liar = 0, 0
	for _, n := range w.nodes {
		if !n.alive && w.rng.IntN(2) == 0 {
			n.start()
		}
	}
	for n := w.nodes[w.leader-1]; !n.alive; n = w.nodes[w.leader-1] {
		n.start()
	}
	w.run(400)
	for _, n := range w.nodes {
		if !n.alive {
			continue
		}
		n.count()
		require.Equal(t, uint64(len(w.log)), n.last)
		index, stuck := n.puller.Stuck()
		if n.applied == n.last {
			require.False(t, stuck)
			continue
		}
		w.reached.stuck++
		e := w.log[n.applied]
		require.False(t, w.obtainable(n, e), "node %d does not get index %d, which is to be had", n.id, e.Index)
		require.True(t, stuck, "node %d cannot have index %d and does not say so", n.id, e.Index)
		require.Equal(t, e.Index, index)
	}
	total.early += w.reached.early
	total.asks += w.reached.asks
	total.stuck += w.reached.stuck
	total.resumed += w.reached.resumed
	total.lies += w.reached.lies
	total.restarts += w.reached.restarts
	total.deferred += w.reached.deferred
	total.completed += w.reached.completed
}
