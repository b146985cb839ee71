// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/encoded"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// Now implements world.Surroundings, as the methods below do.
func (m *member) Now() time.Duration { return m.n.w.Now() }

// Work gives the processor a task.
func (m *member) Work(t world.Task) { m.n.cpu.Add(t) }

// Later plans a call at the process.
func (m *member) Later(d time.Duration, happen func()) { m.n.after(d, happen) }

// TurnBegins makes room for inputs: a turn has taken those that waited.
func (m *member) TurnBegins() time.Duration {
	m.atDoor.calls, m.atDoor.bytes = 0, 0
	m.bytes = [wire.NumClasses]int{}
	m.unblock()
	return m.n.w.plan.costs.Turn
}

// Flushed publishes the permits of a turn. A replica that is out of service is a
// finding, unless its log is damaged.
func (m *member) Flushed(err error) (goOn bool) {
	m.publish()
	if err != nil && !m.n.metDamage(err) {
		m.n.w.fail(noFailure, "%v, group %d is out of service: %v", m.n, m.g.id, err)
	}
	return err == nil
}

// publish shows readers what the leases permit after a turn, before anything of the turn
// leaves.
func (m *member) publish() {
	if m.n.w.opts.Bug != latePermit {
		m.local.Publish(m.r)
	}
}

// TurnEnds looks at what has become of the replica.
func (m *member) TurnEnds() {
	status := m.r.Brief()
	if status.Role == raft.StateLeader && m.role != raft.StateLeader {
		m.g.elected(m.n, status.Term)
		m.n.w.faults.meets(m, momentElected)
	}
	m.role = status.Role
	m.gauges(&status)
	m.looksAtCommit(&status)
	m.countNames()
	m.n.w.reach.AppendsJoined += status.Counters.JoinedAppends - m.joined
	m.joined = status.Counters.JoinedAppends
}

// countNames counts what a member did with names in a turn.
func (m *member) countNames() {
	c, was, w := m.r.NameCounts(), m.names, &m.n.w.reach
	m.names = c
	w.Named += c.Named - was.Named
	w.NamesFilled += c.Filled - was.Filled
	w.NamesGone += c.Gone - was.Gone
	w.NamePauses += c.Pauses - was.Pauses
	w.NamesJoined += c.Joined - was.Joined
	w.NamesLacked += c.Lacks - was.Lacks
	w.NamesLate += c.Late - was.Late
	w.NamesGivenUp += c.GivenUp - was.GivenUp
	w.FillsLate += c.FillsLate - was.FillsLate
	w.RelayedBytes += c.Relayed - was.Relayed
	if m.n.w.plan.naming.zones == 0 {
		w.ReadersRelayed += c.Relayed - was.Relayed
	}
	w.NameRuns += c.Runs - was.Runs
	w.RelaysWanted += c.Wants - was.Wants
	w.RelaysOverdue += c.Overdue - was.Overdue
	w.RelaysPassed += c.Passed - was.Passed
	w.RelaysHadNot += c.NotHad - was.NotHad
}

// sends checks an append that leaves, with all its entries: a leader's log has them one behind the other, also if the append is joined.
func (m *member) sends(app *pb.Message) {
	if app.GetType() != pb.MsgApp {
		return
	}
	index, term := app.GetIndex(), app.GetLogTerm()
	for _, e := range app.Entries {
		if e.GetIndex() != index+1 || e.GetTerm() < term || e.GetTerm() > app.GetTerm() {
			m.n.w.fail(onePlace, "group %d: %v, leader of term %d, sends entry %d of term %d behind entry %d of term %d",
				m.g.id, m.n, app.GetTerm(), e.GetIndex(), e.GetTerm(), index, term)
			return
		}
		index, term = e.GetIndex(), e.GetTerm()
	}
}

// Send is the send stage: encoding and writing take time.
func (m *member) Send(messages []wire.Message) {
	c := &m.n.w.plan.costs
	var cost time.Duration
	for _, msg := range messages {
		if b, ok := msg.RaftBody(); ok {
			m.sending(b.Message)
			m.sends(b.Message)
		}
		cost += c.Sent + per(msg.Size(), c.WireKiB)
	}
	m.n.cpu.Add(func() (time.Duration, func()) {
		return cost, func() {
			for _, msg := range messages {
				m.n.egress.send(msg)
			}
		}
	})
}

// sending tells of moments that messages show.
func (m *member) sending(msg *pb.Message) {
	switch msg.GetType() {
	case pb.MsgTimeoutNow:
		m.n.w.faults.meets(m, momentTransfer)
	case raft.MsgLeases:
		m.n.w.faults.meets(m, momentLeased)
	}
}

// Append gives work to the log.
func (m *member) Append(a *replica.Append) {
	m.appends(a.Write.Entries)
	m.commits.logged(a.Write.Entries)
	m.writes++
	m.unstored.hand(m.writes, a.Write)
	number := m.writes
	c := &m.n.w.plan.costs
	var cost time.Duration
	for _, e := range a.Write.Entries {
		cost += c.Entry + per(encoded.Size(e), c.LogKiB)
	}
	m.n.cpu.Add(func() (time.Duration, func()) {
		return cost, func() { m.n.disk.put(logWork{m: m, append: a, number: number}) }
	})
}

// appends checks the entries that a member is about to write: they stand one behind the
// other, and a leader's behind its last.
func (m *member) appends(ents []*pb.Entry) {
	st := m.core.State()
	for i, e := range ents {
		index, term := e.GetIndex(), e.GetTerm()
		if i > 0 && (index != ents[i-1].GetIndex()+1 || term < ents[i-1].GetTerm()) {
			m.n.w.fail(onePlace, "group %d: %v is to write entry %d of term %d behind entry %d of term %d", m.g.id, m.n, index, term, ents[i-1].GetIndex(), ents[i-1].GetTerm())
			return
		}
		if st.Role != raft.StateLeader || term != st.Term {
			continue
		}
		if m.own.term == term && index != m.own.index+1 {
			m.n.w.fail(onePlace, "group %d: %v, leader of term %d, appends entry %d; its last was %d", m.g.id, m.n, term, index, m.own.index)
			return
		}
		m.own.term, m.own.index = term, index
	}
	if slices.ContainsFunc(ents, func(e *pb.Entry) bool { return e.GetType() != pb.EntryNormal }) {
		m.n.w.faults.meets(m, momentAppended)
	}
}

// Compact gives work to the log.
func (m *member) Compact(c *replica.Compact) {
	m.drops(c)
	m.n.cpu.Add(func() (time.Duration, func()) { return 0, func() { m.n.disk.put(logWork{m: m, compact: c}) } })
}

// drops checks what a log is about to drop, and the state that takes its place (rule E4).
func (m *member) drops(c *replica.Compact) {
	index := c.Snapshot.GetIndex()
	if n, _ := m.unstored.upTo(index); n > 0 {
		m.n.w.fail(nothingLost, "%v, group %d: the log is to begin at index %d, and has not stored %d entries before", m.n, m.g.id, index, n)
	}
}
