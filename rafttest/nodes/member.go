// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// member is one group at one node in one life of its process: the real
// replica.Replica on the real log, with the simulator in the place of the
// goroutines, the clock, and the network.
type member struct {
	n     *node
	g     *group
	life  uint64
	r     *replica.Replica
	drive *world.Drive
	core  replica.Core
	log   *storage.Group
	role  raft.StateType               // when last looked at
	own   struct{ term, index uint64 } // the last entry appended as a leader

	commits commits

	bytes    [wire.NumClasses]int // of messages that wait for a turn
	blocking []func()             // connections that wait for room for their messages
	ticking  bool                 // a tick waits for a turn

	// atDoor are calls, and bytes of their commands, that the loop has not come
	// to.
	atDoor struct{ calls, bytes int }

	calls    map[replica.Call]pendingCall
	nextCall replica.Call

	local *replica.LocalReads // nil without leases
	reads uint64

	state   *store
	applied uint64 // index of the state
	host    []byte // the replica's durable state beside the log
	keeping bool   // a copy of the state is on its way to the disk

	unstored unstored // entries handed to the log
	writes   uint64   // handed to the log
	names    replica.NameCounts
	joined   uint64 // appends to readers, as of the last count
}

// keptState is a state machine's own storage, as found at a start.
type keptState struct {
	index   uint64
	host    []byte
	encoded []byte
}

func newMember(n *node, g *group) (*member, error) {
	p := &n.w.plan
	m := &member{n: n, g: g, life: n.life, calls: map[replica.Call]pendingCall{}}
	kept := n.kept[g.id]
	var err error
	if kept.index > 0 {
		m.state, err = decodeStore(kept.encoded, p.sessions)
		m.applied, m.host = kept.index, kept.host
	} else {
		m.state, err = newStore(p.sessions)
	}
	if err != nil {
		return nil, fmt.Errorf("load the state: %w", err)
	}
	m.state.noTable = n.w.opts.Bug == noSessions
	if m.log, err = n.disk.engine.Group(g.id); err != nil {
		return nil, err
	}
	if err = m.looksBack(kept); err != nil {
		return nil, err
	}
	cfg := m.config(kept)
	w, err := replica.PrepareLog(cfg)
	if err == nil && w != nil && (n.w.opts.Bug != stateAhead || kept.index == 0) {
		err = m.writeNow(*w)
	}
	if err == nil {
		err = m.found(w)
	}
	if err == nil {
		m.r, err = replica.New(cfg)
	}
	if err == nil {
		m.drive = world.NewDrive(m.r, m, world.DriveOptions{
			Group: g.id, ID: n.id, Life: n.life, Patience: 5 * electionTime, Fetches: n.w.plan.fetching(n.id), FetchCounts: &n.w.fetched,
		})
		m.catchesUp()
		_ = m.r.Stalled(n.disk.stalled)
		m.local = m.localReads(cfg)
	}
	return m, err
}

// found takes the log as it is at the start, after the write that has begun the log anew, if there was one.
func (m *member) found(anew *storage.Write) error {
	h := m.g.heldBy(m.n)
	var err error
	switch {
	case m.n.disk.damage == nil:
		err = h.found(m.log)
	case anew != nil: // the log before the damage counts, as an operator repairs the files, and then this write
		err = h.durable(*anew)
	}
	if err != nil {
		return err
	}
	m.commits.logged(h.entries)
	return nil
}

// writeNow begins a log.
func (m *member) writeNow(w storage.Write) error {
	if err := m.log.Append(w, nil); err != nil {
		return err
	}
	for {
		if more, err := m.n.disk.engine.Step(); err != nil || !more {
			return err
		}
	}
}

// unblock lets connections go on that waited for room.
func (m *member) unblock() {
	waiting := m.blocking
	m.blocking = nil
	for _, again := range waiting {
		again()
	}
}

// receive takes a message from a connection. The result is false if there is no
// room for the message now.
func (m *member) receive(msg wire.Message) bool {
	w := m.n.w
	class, size := msg.Class(), msg.Size()
	if m.bytes[class] >= w.plan.receiveBytes && w.opts.Bug != noInboxBudget {
		if class != wire.ClassControl {
			return false
		}
		w.reach.InboxDrops++
		return true
	}
	c := &w.plan.costs
	m.bytes[class] += size
	m.drive.Post(c.Received+c.Message+per(size, c.WireKiB+c.LoopKiB), func(*replica.Replica) { m.message(msg) })
	return true
}

// message hands a message to the replica.
func (m *member) message(msg wire.Message) {
	w := m.n.w
	if p, ok := msg.Body.(wire.Proposal); ok && w.opts.Bug == termIgnored {
		p.Term = m.core.State().Term
		msg.Body = p
	}
	if err := m.drive.Deliver(msg); err != nil {
		w.fail(noFailure, "%v refuses a message of node %d: %v", m.n, msg.From, err)
	}
	w.faults.delivered(m, msg)
}

// ticked lets a tick pass. A tick still waiting for the loop swallows the next.
func (m *member) ticked() {
	if !m.ticking {
		m.ticking = true
		m.drive.Post(0, func(r *replica.Replica) {
			m.ticking = false
			m.passTick(r)
			r.Tick(m.n.w.Now())
		})
	}
	m.drive.Expire()
	m.keep()
}

// pendingCall is an unfinished call.
type pendingCall struct {
	deadline time.Duration
	end      func(replica.Done)
}

// here reports whether the member still runs.
func (m *member) here() bool { return m.n.up && m.n.life == m.life && !m.drive.Stopped() }

// conf returns the members that the replica goes by.
func (m *member) conf() *pb.ConfState { return m.r.Members() }

// looksBack compares the log found by a start with what the last process had applied, and with the
// state that survived (rule E3).
func (m *member) looksBack(kept keptState) error {
	last, err := m.log.LastIndex()
	if err != nil {
		return err
	}
	r := &m.n.w.reach
	if m.n.had[m.g.id] > last {
		r.LogsBehind++
	}
	if kept.index > last {
		r.StatesAheadOfLogs++
	}
	return nil
}

// keep writes a copy of the state to the disk now and then, in its own files.
func (m *member) keep() {
	n, w := m.n, m.n.w
	if m.keeping || m.applied < n.kept[m.g.id].index+w.plan.keepEvery || n.disk.Full() {
		return
	}
	m.keeping = true
	kept := keptState{index: m.applied, host: m.host, encoded: m.state.encode()}
	durable := func() {
		m.keeping = false
		m.drive.Post(0, func(r *replica.Replica) { r.Durable(kept.index) })
	}
	life := n.life
	n.disk.Do(n.disk.takes(m.state.size(), true), func() {
		if n.life != life || !n.up {
			return
		}
		if w.opts.Bug == applyAgain {
			kept.encoded = m.state.encode() // by now the state has more in it
		}
		if kept.index > n.kept[m.g.id].index { // else a snapshot was restored meanwhile
			n.kept[m.g.id] = kept
		}
		w.reach.StatesKept++
		n.bound(durable)()
	})
}

// passTick is the part of a tick that is about reads between turns.
func (m *member) passTick(r *replica.Replica) {
	m.local.Settle(r)
	if m.n.w.opts.Bug == latePermit {
		m.local.Publish(r)
	}
}
