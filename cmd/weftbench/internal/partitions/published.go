// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package partitions

import (
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/machines"
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/papers"
	"github.com/weftraft/weft/internal/wire"
)

const (
	messageBytes = 64 // a message, and the header of an entry in the message
	unitBytes    = 4  // a unit's checksum
	askBytes     = 16 // of a request for an entry's units

	// Crossword's leaders send a heartbeat each cycle, and its followers ask each other for units: of all entries but
	// those in the last bytes (gap) of the log.
	cycle = 20 * time.Millisecond
	gap   = 400_000
)

// sets is a group whose leader sends each follower a set of an entry's units, by a published policy. The
// first machine leads, and entries commit in the order of the log.
type sets struct {
	w         *sim
	leader    *machines.Node
	followers []*follower
	policy    papers.SetPolicy
	observer  ecraft.Observer // nil: the policy does not listen
	gossip    bool            // followers get whole payloads, in the end
	round     ecraft.Round
	log       []*entry // log[i] has index i+1
	committed int
}

// entry is an entry of the log, at the leader.
type entry struct {
	size     int
	plan     papers.SetPlan
	sent     []ecraft.Set // by follower
	durable  bool         // at the leader
	answered []bool
	done     func()
}

// follower is what a follower has.
type follower struct {
	*machines.Node
	i         int
	held      []ecraft.Set // by entry
	waits     []int        // requests without an answer, by entry
	arrived   int          // entries in the log
	complete  int          // all entries up to this one are whole
	committed int          // as the leader has said
}

func published(name string, policy func() papers.SetPolicy, gossip bool) Side {
	return Side{name, func(w *sim, first int) (group, error) {
		g := &sets{w: w, policy: policy(), gossip: gossip, round: ecraft.Round{Voters: len(w.Nodes)}}
		g.observer, _ = g.policy.(ecraft.Observer)
		for i, id := range w.ring(first) {
			n := w.Nodes[id-1]
			if i == 0 {
				g.leader = n
				continue
			}
			f := &follower{Node: n, i: i - 1}
			g.followers, g.round.Followers = append(g.followers, f), append(g.round.Followers, ecraft.Member{ID: id, Healthy: true})
			if g.observer != nil {
				g.observer.Joined(id, true, 0)
			}
			if gossip {
				w.After(time.Duration(i)*cycle/time.Duration(len(w.Nodes)), func() { g.ask(f) })
			}
		}
		if g.observer != nil {
			g.observer.Reset(0)
		}
		g.beat()
		return g, nil
	}}
}

func (g *sets) ready() bool { return true }

func (g *sets) put(payload []byte, done func()) {
	g.w.called(g.leader, len(payload), func() {
		g.leader.Work(g.w.Costs.Propose, func() { g.propose(len(payload), done) })
	})
}

func (g *sets) propose(size int, done func()) {
	e := &entry{size: size, sent: make([]ecraft.Set, len(g.followers)), answered: make([]bool, len(g.followers)), done: done}
	g.log = append(g.log, e)
	index := len(g.log)
	g.round.Index, g.round.Now, g.round.Size = uint64(index), g.w.Now(), size
	e.plan = g.policy.AssignSets(&g.round, e.sent)
	g.leader.Log(messageBytes+size, func() { e.durable = true; g.commit() })
	for i, f := range g.followers {
		f.held, f.waits = append(f.held, ecraft.Set{}), append(f.waits, 0)
		bytes := messageBytes + e.bytes(e.sent[i].Len())
		if g.observer != nil {
			g.observer.Sent(f.ID, uint64(index), bytes, g.w.Now())
		}
		g.leader.Call(f.Node, wire.ClassAppend, bytes, func() {
			f.Log(bytes, func() {
				f.arrived++
				g.take(f, index, e.sent[i])
				f.Call(g.leader, wire.ClassControl, messageBytes, func() { g.answer(i, index) })
			})
		})
	}
}

// bytes returns the length of so many units: all units are the payload itself.
func (e *entry) bytes(units int) int {
	if units >= e.plan.D {
		return e.size
	}
	return units * ((e.size+e.plan.D-1)/e.plan.D + unitBytes)
}

func (g *sets) answer(i, index int) {
	if g.observer != nil {
		g.observer.Acked(g.followers[i].ID, uint64(index), 0, g.w.Now())
	}
	g.log[index-1].answered[i] = true
	g.commit()
}

// commit answers the clients of entries that enough servers have.
func (g *sets) commit() {
	for g.committed < len(g.log) {
		e := g.log[g.committed]
		if !e.durable || !e.plan.Commits(e.sent, e.answered) {
			return
		}
		g.committed++
		g.leader.Work(g.w.Costs.Apply+costs.PerKiB(e.size, g.w.Costs.LogKiB), e.done)
	}
}

// beat sends heartbeats, which tell followers what is committed.
func (g *sets) beat() {
	g.w.After(cycle, g.beat)
	for _, f := range g.followers {
		if g.observer != nil {
			g.observer.HeartbeatSent(f.ID, g.w.Now())
		}
		committed := g.committed
		g.leader.Call(f.Node, wire.ClassControl, messageBytes, func() {
			f.committed = max(f.committed, committed)
			f.Call(g.leader, wire.ClassControl, messageBytes, func() {
				if g.observer != nil {
					g.observer.HeartbeatAnswered(f.ID, g.w.Now())
				}
			})
		})
	}
}

// take gives a follower units of an entry.
func (g *sets) take(f *follower, index int, units ecraft.Set) {
	f.held[index-1] = f.held[index-1].Union(units)
	for f.complete < len(f.held) && f.held[f.complete].Len() >= g.log[f.complete].plan.D {
		e := g.log[f.complete]
		f.complete++
		f.Work(g.w.Costs.Apply+costs.PerKiB(e.size, g.w.Costs.LogKiB), func() {})
	}
}

// request is an entry of which a follower asks a peer for units.
type request struct {
	index int
	units ecraft.Set
}

// ask asks peers for the units that a follower lacks of committed entries, all those of a peer in one
// message. After the load no entries follow, and the gap is closed.
func (g *sets) ask(f *follower) {
	g.w.After(cycle, func() { g.ask(f) })
	last, skip := f.arrived, gap
	if g.w.ending {
		skip = 0
	}
	for ; last > 0 && skip > 0; last-- {
		skip -= g.log[last-1].size
	}
	asked := make([][]request, len(g.followers))
	for index := f.complete + 1; index <= min(last, f.committed); index++ {
		e := g.log[index-1]
		expected := f.held[index-1]
		for k := 1; k < len(g.followers) && expected.Len() < e.plan.D && f.waits[index-1] == 0; k++ {
			peer := (f.i + k) % len(g.followers)
			r := request{index: index}
			for u := range len(g.w.Nodes) {
				if e.sent[peer].Has(u) && !expected.Has(u) && expected.Len() < e.plan.D {
					r.units.Add(u)
					expected.Add(u)
				}
			}
			if r.units.Len() > 0 {
				asked[peer] = append(asked[peer], r)
			}
		}
		for _, list := range asked {
			if n := len(list); n > 0 && list[n-1].index == index {
				f.waits[index-1]++
			}
		}
	}
	for i, list := range asked {
		if peer := g.followers[i]; len(list) > 0 {
			f.Call(peer.Node, wire.ClassControl, messageBytes+askBytes*len(list), func() { g.tell(peer, f, list) })
		}
	}
}

// tell sends a follower what it has asked for, as far as the peer has it.
func (g *sets) tell(peer, f *follower, list []request) {
	bytes := messageBytes
	for i := range list {
		r := &list[i]
		held := ecraft.Set{}
		for u := range len(g.w.Nodes) {
			if r.units.Has(u) && peer.held[r.index-1].Has(u) {
				held.Add(u)
			}
		}
		r.units = held
		bytes += askBytes + g.log[r.index-1].bytes(held.Len())
	}
	peer.Call(f.Node, wire.ClassBackground, bytes, func() {
		for _, r := range list {
			f.waits[r.index-1]--
			g.take(f, r.index, r.units)
		}
	})
}

func (g *sets) whole() bool {
	return !slices.ContainsFunc(g.followers, func(f *follower) bool { return f.arrived < len(g.log) || g.gossip && f.complete < len(g.log) })
}
