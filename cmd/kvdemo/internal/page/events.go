// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kinds of events.
const (
	EventNode     = "node"
	eventElection = "election"
	eventMember   = "member"
	eventRoster   = "roster"
	eventSnapshot = "snapshot"
	eventStall    = "stall"
	EventCommand  = "command"
)

// events are what happened in a group.
type events struct {
	mu     sync.Mutex
	number uint64
	all    []Event // oldest first, at most maxEvents

	// As compared last. Only compare uses them.
	members map[uint64]string
	down    map[uint64]bool
	term    uint64
	lost    bool // no leader is known
	roster  string
	stalled map[uint64]bool
}

func (e *events) add(at time.Time, kind, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.number++
	e.all = append(e.all, Event{Number: e.number, AtMs: at.UnixMilli(), Kind: kind, Text: Text(text)})
	if len(e.all) > maxEvents {
		e.all = slices.Delete(e.all, 0, len(e.all)-maxEvents)
	}
}

// list returns the events, newest first.
func (e *events) list() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.Clone(e.all)
	slices.Reverse(all)
	return append([]Event{}, all...)
}

// view is the figures that are compared with those of the look before.
type view struct {
	first  bool
	up     map[uint64]*Node
	known  map[uint64]*Node // from earlier reports
	got    map[uint64]answer
	paused map[uint64]bool
}

// silent reports whether a node was asked and does not answer, but for one that is paused.
func (v view) silent(id uint64) bool { return v.got[id].err != nil && !v.paused[id] }

// compare adds the events that differences between reports tell of. The first reports
// are what differences are counted from.
func (e *events) compare(at time.Time, v view) {
	if v.first {
		e.members, e.down, e.stalled = map[uint64]string{}, map[uint64]bool{}, map[uint64]bool{}
	}
	say := func(kind, format string, args ...any) {
		if !v.first {
			e.add(at, kind, fmt.Sprintf(format, args...))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.got)) {
		e.compareNode(id, v, say)
	}
	e.compareLeader(v, say)
	e.compareMembers(v, say)
	if r := rosterOf(v.up); r != nil {
		if now := r.String(); now != e.roster && now != "" {
			say(eventRoster, "roster %d of term %d: %s", r.Number, r.Term, now)
			e.roster = now
		}
	}
}

// compareNode compares one node's figures: answers or silence, snapshots, stalls.
func (e *events) compareNode(id uint64, v view, say func(kind, format string, args ...any)) {
	now, before := v.up[id], v.known[id]
	if now == nil {
		if !e.down[id] && !v.paused[id] {
			say(EventNode, "node %d does not answer", id)
			e.down[id] = true
		}
		return
	}
	switch restarted := before != nil && before.PID != now.PID; {
	case restarted:
		say(EventNode, "node %d was started again, process %d", id, now.PID)
		before = nil
	case e.down[id]:
		say(EventNode, "node %d answers", id)
	}
	delete(e.down, id)
	if before == nil {
		before = &Node{}
	}
	for _, c := range []struct {
		before, now uint64
		text        string
	}{
		{before.Sent, now.Sent, "node %d has sent a snapshot"},
		{before.Taken, now.Taken, "node %d has installed a snapshot"},
		{before.Failed, now.Failed, "a snapshot from node %d has failed"},
	} {
		if growth(c.before, c.now) > 0 {
			say(eventSnapshot, c.text, id)
		}
	}
	switch {
	case now.Stalled != "" && !e.stalled[id]:
		say(eventStall, "node %d cannot write: %s", id, now.Stalled)
		e.stalled[id] = true
	case now.Stalled == "" && e.stalled[id]:
		say(eventStall, "node %d writes again", id)
		delete(e.stalled, id)
	case now.Stalled == "" && growth(before.Stalls, now.Stalls) > 0:
		say(eventStall, "node %d could not write for a moment", id)
	}
}

// compareLeader is about elections.
func (e *events) compareLeader(v view, say func(kind, format string, args ...any)) {
	leader, term := uint64(0), e.term
	for _, n := range v.up {
		if n.Leader == 0 || v.silent(n.Leader) {
			continue
		}
		if n.Term > term || n.Term == term && leader == 0 {
			leader, term = n.Leader, n.Term
		}
	}
	switch {
	case leader != 0 && term > e.term:
		say(eventElection, "node %d leads in term %d", leader, term)
		e.term, e.lost = term, false
	case leader != 0:
		if e.lost {
			say(eventElection, "node %d leads on in term %d", leader, term)
		}
		e.lost = false
	case !e.lost && len(v.up) > 0:
		say(eventElection, "no leader is known")
		e.lost = true
	}
}

// compareMembers is about who is a member.
func (e *events) compareMembers(v view, say func(kind, format string, args ...any)) {
	best := newest(v.up)
	if best == nil || len(best.Voters) == 0 {
		return
	}
	now := map[uint64]string{}
	for _, id := range best.Learners {
		now[id] = "learner"
	}
	for _, id := range best.Voters {
		now[id] = "voter"
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if was := e.members[id]; was != now[id] {
			say(eventMember, "node %d is a %s", id, now[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.members)) {
		if now[id] == "" {
			say(eventMember, "node %d was removed", id)
		}
	}
	e.members = now
}

// String says which nodes answer reads.
func (r *Roster) String() string {
	if r.Retired {
		return "leases are switched off"
	}
	var parts []string
	for _, s := range r.Named {
		var nodes []string
		for _, id := range s.Nodes {
			nodes = append(nodes, fmt.Sprint(id))
		}
		keys := "all keys"
		if s.From != "" || s.To != "" {
			keys = fmt.Sprintf("keys %s to %s", cmp.Or(s.From, "the first"), cmp.Or(s.To, "the last"))
		}
		parts = append(parts, fmt.Sprintf("nodes %s answer reads of %s", strings.Join(nodes, " "), keys))
	}
	if len(parts) == 0 {
		return "only the leader answers reads"
	}
	return strings.Join(parts, "; ")
}
