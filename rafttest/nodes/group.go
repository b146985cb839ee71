// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
	"github.com/weftraft/weft/rawnode/session"
)

// group is a Raft group as seen by the simulator from outside: the nodes told
// to be members, and the entries applied by the replicas.
type group struct {
	w        *sim
	id       uint64
	founders []uint64
	told     [maxNodes + 1]bool // nodes with a member, now or earlier
	retired  [maxNodes + 1]bool // and were removed; their ids are not used again

	// applied is the entries as first applied by any replica; all others must
	// do the same.
	applied []appliedCommand
	tries   map[uint32]fate // by attempt
	effects map[uint32]bool // operations in effect
	fresh   freshness
	last    map[session.ID]uint64
	leaders map[uint64]leadership // by term
	// repeated has, by context, where changes stand first that a leader has appended
	// again.
	repeated map[string]uint64
	// view is the disks of all nodes, and committed the highest commit index of any member.
	view      holdings.View
	committed uint64
	// lastLeader and changes count changes of the leader.
	lastLeader uint64
	changes    int
	// lastWrite is when a client had the result of a write, gap the longest time
	// between two of these.
	lastWrite, gap time.Duration
}

type appliedCommand struct {
	attempt uint32
	answer  answer
}

// fate is the known outcome of a try.
type fate uint8

const (
	refused fate = 1 << iota
	applied
)

type leadership struct{ node, life uint64 }

func newGroup(w *sim, id uint64) *group {
	g := &group{w: w, id: id, tries: map[uint32]fate{}, effects: map[uint32]bool{}, fresh: freshness{places: map[uint32]uint64{}}, last: map[session.ID]uint64{}, leaders: map[uint64]leadership{}, repeated: map[string]uint64{}}
	g.view.Disks = make([]holdings.Disk, maxNodes+1)
	if w.plan.coding.on {
		g.view.Truth = holdings.NewTruth(0)
	}
	for n := uint64(1); n <= uint64(w.plan.voters); n++ {
		g.founders = append(g.founders, n)
		g.told[n] = true
	}
	return g
}

func (g *group) knows(node uint64) bool { return g.told[node] && !g.retired[node] }

func (g *group) founder(node uint64) bool { return slices.Contains(g.founders, node) }

// elected notes a leader.
func (g *group) elected(n *node, term uint64) {
	g.w.reach.Elections++
	g.w.tell(n.id, "leads group %d in term %d", g.id, term)
	me := leadership{n.id, n.life}
	if other, ok := g.leaders[term]; ok && other != me {
		g.w.fail(electionSafety, "group %d, term %d: %+v and %+v lead", g.id, term, other, me)
	}
	g.leaders[term] = me
	g.countFullVoters(n)
	if g.lastLeader != n.id {
		g.lastLeader = n.id
		g.changes++
		g.w.reach.LeaderChanges++
	}
}

// countFullVoters counts a leader that follows a dead leader, and needed the vote
// of a node without room for the last election timeout.
func (g *group) countFullVoters(n *node) {
	w := g.w
	if former := w.node(g.lastLeader); former == nil || former.up || w.plan.noCheckQuorum {
		return
	}
	_, most := holdings.Majority(n.members[g.id].conf().GetVoters(), func(id uint64) bool {
		d := &w.node(id).disk
		return w.node(id).up && (d.stalled == nil || w.Now()-d.stalledAt < electionTime)
	})
	if !most {
		w.reach.ElectedByFull++
	}
}

// took notes a command that a replica has applied as its count-th.
func (g *group) took(n *node, count uint64, c command, a answer) {
	switch {
	case count <= uint64(len(g.applied)):
		if first := g.applied[count-1]; first.attempt != c.attempt || first.answer != a {
			g.w.fail(sameCommands, "group %d, command %d: %v applies try %d with %+v, others applied try %d with %+v",
				g.id, count, n, c.attempt, a, first.attempt, first.answer)
		}
		return
	case count > uint64(len(g.applied))+1:
		g.w.fail(sameCommands, "group %d: %v applies command %d, when %d were ever applied", g.id, n, count, len(g.applied))
		return
	}
	g.applied = append(g.applied, appliedCommand{c.attempt, a})
	g.w.reach.Commands++
	switch was := g.tries[c.attempt]; {
	case was&applied != 0:
		g.w.fail(atMostOnce, "group %d: try %d of operation %d is applied twice", g.id, c.attempt, c.op)
	case was&refused != 0:
		g.w.fail(verdicts, "group %d: try %d of operation %d was refused, and is applied", g.id, c.attempt, c.op)
	}
	g.tries[c.attempt] |= applied
	if a.verdict == session.Repeated {
		g.w.reach.Repeated++
	}
	if c.verb == verbOpen || a.verdict != session.Fresh {
		return
	}
	if g.effects[c.op] {
		g.w.fail(atMostOnce, "group %d: operation %d takes effect twice", g.id, c.op)
	}
	g.effects[c.op] = true
	g.fresh.places[c.op] = count
	if c.seq <= g.last[c.session] {
		g.w.fail(sessionOrder, "group %d, session %d: command %d takes effect after %d", g.id, c.session, c.seq, g.last[c.session])
	}
	g.last[c.session] = c.seq
}

// wasRefused notes that a try was said to have no effect, ever.
func (g *group) wasRefused(n fmt.Stringer, attempt uint32) {
	if g.tries[attempt]&applied != 0 {
		g.w.fail(verdicts, "group %d: %v refuses try %d, which is applied", g.id, n, attempt)
	}
	g.tries[attempt] |= refused
}

// wrote notes that a client has the result of a write.
func (g *group) wrote() {
	g.gap = max(g.gap, g.w.Now()-g.lastWrite)
	g.lastWrite = g.w.Now()
}

// leading returns the member that leads the highest term of a group, or nil.
func (g *group) leading() (best *member) {
	term := uint64(0)
	for _, n := range g.w.nodes {
		m := n.members[g.id]
		if !n.up || m == nil || m.core == nil {
			continue
		}
		if st := m.core.State(); st.Role == raft.StateLeader && st.Term > term {
			best, term = m, st.Term
		}
	}
	return best
}

// membersOf returns the members of a configuration that run.
func (g *group) membersOf(conf *pb.ConfState) (running []*member) {
	for _, n := range g.w.nodes {
		if m := n.members[g.id]; m != nil && n.up && members.Has(conf, n.id) {
			running = append(running, m)
		}
	}
	return running
}

// freshness is the knowledge of a group's acknowledged writes: how many commands are at
// least in a state with all of them.
type freshness struct {
	places map[uint32]uint64 // of operations in effect
	acked  [storeKeys]uint64 // by key
	// steps are the times at which the highest of all rose.
	steps []ackedStep
}

type ackedStep struct {
	at    time.Duration
	count uint64
}

// acknowledged notes that a client has the result of a write.
func (f *freshness) acknowledged(at time.Duration, op *operation) {
	place := f.places[op.id]
	f.acked[op.key] = max(f.acked[op.key], place)
	if n := len(f.steps); n == 0 || place > f.steps[n-1].count {
		f.steps = append(f.steps, ackedStep{at, place})
	}
}

// before returns how many commands are at least in a state with all writes
// acknowledged by a time.
func (f *freshness) before(at time.Duration) uint64 {
	for i := len(f.steps) - 1; i >= 0; i-- {
		if f.steps[i].at <= at {
			return f.steps[i].count
		}
	}
	return 0
}
