// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/wire"
)

// catchingUp has followers that have missed entries get them within a budget, which all groups of the node share.
//
// An entry is missed if it is committed when the leader comes to send it: the group has gone on without the
// follower. A follower that keeps up is sent each entry before that, so nothing here is about it. A follower
// without which the group commits nothing (needed) takes from no budget, and never waits.
//
// A laggard has windows of the budget. What is sent uses them up, and what is acknowledged goes back. So the
// bytes of all laggards that are under way in the network, or wait at their disks, are within the budget. A
// laggard that acknowledges nothing for a while gives its windows back: what it was sent may be lost, and a disk
// that hangs there must not hold the others' turns. It gets no other window until it answers: the core, which does not know
// where its log ends, would send it the same entries with each heartbeat, and take a turn for them each time.
//
// Invariant: by has no row without a budget.
type catchingUp struct {
	*facts
	kept *retention

	budget *catchup.Budget // nil: none
	free   int64
	ready  func(to uint64, l *laggard) // has go on in a turn of the replica; see waits
	by     map[uint64]*laggard
}

// laggard is a follower that has missed entries.
type laggard struct {
	place *catchup.Place
	// free is how many bytes take from no budget yet.
	free int64
	// Invariant: left + under is what the place holds. left is below 0 by what the last append had beyond the
	// window.
	left, under int64
	waits       bool
	// silent: the laggard had windows, and acknowledged nothing. It gets no others before it answers an append.
	silent bool
	sent   []sentTo // and not acknowledged, ascending
	since  uint64   // tick of the last acknowledgement, or of the window from which nothing was sent yet

	// urgency and needed are as of the tick lookedAt.
	urgency  wire.Urgency
	needed   bool
	lookedAt uint64
}

// sentTo is an append: its last index, and its bytes.
type sentTo struct {
	last  uint64
	bytes int64
}

const (
	// CatchUpFree is how many bytes of missed entries a follower gets without the budget: as many as a piece of a
	// snapshot has.
	CatchUpFree = 256 << 10
	// windowAppends is how many appends are a window.
	windowAppends = 4
	// idleWindows is after how many election timeouts a laggard that acknowledges nothing gives its windows back.
	idleWindows = 2
)

// within has followers catch up within a budget, or without one, and forgets all laggards.
func (c *catchingUp) within(budget *catchup.Budget, free int64, ready func(to uint64, l *laggard)) {
	c.clear()
	c.budget, c.free, c.ready, c.by = budget, free, ready, map[uint64]*laggard{}
}

// MaySend implements raft.Pace.
func (c *catchingUp) MaySend(to, next uint64) bool {
	if c.budget == nil || next > c.state.Commit {
		return true
	}
	l := c.by[to]
	if l == nil {
		return true
	}
	l.lost(next)
	if l.free > 0 || l.left > 0 {
		return true
	}
	if l.lookedAt != c.ticks {
		c.lookAt(to, l)
	}
	return l.needed || !l.silent && c.takeWindow(l, next)
}

// takeWindow asks for a window, and reports whether it is there.
func (c *catchingUp) takeWindow(l *laggard, next uint64) bool {
	window := windowAppends * int64(c.cfg.MaxAppendBytes)
	if l.waits = !c.budget.Ask(l.place, l.urgency, c.kept.behind(next), l.left+l.under+window); !l.waits {
		l.left += window
		if l.under == 0 {
			l.since = c.ticks
		}
	}
	return !l.waits
}

// Sent implements raft.Pace.
func (c *catchingUp) Sent(to, first, last uint64, bytes int) {
	if c.budget == nil || first > c.state.Commit {
		return
	}
	l := c.by[to]
	if l == nil {
		l = &laggard{free: c.free, lookedAt: c.ticks - 1}
		l.place = &catchup.Place{Direction: catchup.Sending, Ready: func() { c.ready(to, l) }}
		c.by[to] = l
	}
	switch {
	case l.free > 0:
		l.free -= int64(bytes)
	case l.left > 0:
		l.left -= int64(bytes)
		l.under += int64(bytes)
		l.sent = append(l.sent, sentTo{last, int64(bytes)})
	}
	if last >= c.state.Commit && l.left > 0 { // nothing else is missed
		c.budget.Give(l.place, l.left)
		l.left = 0
	}
}

// lost takes back what the core is about to send again, from index next on.
func (l *laggard) lost(next uint64) {
	for n := len(l.sent) - 1; n >= 0 && l.sent[n].last >= next; n-- {
		l.left += l.sent[n].bytes
		l.under -= l.sent[n].bytes
		l.sent = l.sent[:n]
	}
}

// waits reports whether a laggard waits for a window. When the window has come, the core is to ask again, and finds it
// there.
func (c *catchingUp) waits(to uint64, l *laggard) bool { return c.by[to] == l && l.waits }

// acked gives back what a laggard has acknowledged.
func (c *catchingUp) acked(m *pb.Message) {
	l := c.by[m.GetFrom()]
	if l == nil || m.GetType() != pb.MsgAppResp {
		return
	}
	if l.silent = false; m.GetReject() {
		return
	}
	var bytes int64
	for len(l.sent) > 0 && l.sent[0].last <= m.GetIndex() {
		bytes += l.sent[0].bytes
		l.sent = l.sent[1:]
	}
	if bytes == 0 {
		return
	}
	l.since = c.ticks
	l.under -= bytes
	over := min(bytes, max(-l.left, 0))
	l.left += over
	c.budget.Give(l.place, bytes-over)
}

// lookAt finds out how urgent a laggard is. The others count that could vote for what is committed.
func (c *catchingUp) lookAt(to uint64, l *laggard) {
	_, progress := c.core.Members()
	var complete []uint64
	for id, p := range progress {
		other := c.by[id]
		switch {
		case id == c.cfg.ID && c.stalled == nil,
			p.State == tracker.StateReplicate && p.Match+c.cfg.MaxPromoteLag >= c.state.Commit && (other == nil || other.free > 0) && c.reachable(id):
			complete = append(complete, id)
		}
	}
	l.urgency, l.needed = urgency(c.host.conf, to, complete)
	l.lookedAt = c.ticks
}

// tick forgets laggards that have caught up, and has those give back that do not get on.
func (c *catchingUp) tick() {
	if len(c.by) == 0 {
		return
	}
	_, progress := c.core.Members()
	for _, id := range slices.Sorted(maps.Keys(c.by)) {
		l := c.by[id]
		p, ok := progress[id]
		switch {
		case !ok, p.State == tracker.StateReplicate && p.Next > c.state.Commit && len(l.sent) == 0:
			c.leave(id)
			delete(c.by, id)
		case !c.reachable(id):
			c.leave(id)
		case l.left+l.under > 0 && c.ticks-l.since > uint64(idleWindows*c.cfg.ElectionTick):
			c.leave(id)
			l.silent = true
		}
	}
}

// leave has a follower give all back, and wait no more.
func (c *catchingUp) leave(id uint64) {
	if l := c.by[id]; l != nil {
		c.budget.Leave(l.place)
		l.left, l.under, l.sent, l.waits = 0, 0, nil, false
	}
}

// clear forgets all laggards.
func (c *catchingUp) clear() {
	for _, id := range slices.Sorted(maps.Keys(c.by)) {
		c.leave(id)
	}
	clear(c.by)
}
