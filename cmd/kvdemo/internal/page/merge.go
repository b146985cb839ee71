// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// shownEntries is how many entries the grid has.
const shownEntries = 20

// merge makes a state of the reports of nodes that are up, and of what was known before.
func (w *watch) merge(at time.Time, up map[uint64]*Node, got map[uint64]answer, paused map[uint64]bool) *State {
	s := &State{AtMs: at.UnixMilli(), Group: w.group, Groups: 1, Links: []LinkState{}, Members: []MemberState{}}
	best := newest(up)
	if best == nil {
		best = newest(w.ledger.last)
	}
	if best != nil {
		s.Cluster, s.Core, s.Groups = best.Cluster, best.Core, best.Groups
	}
	for _, n := range up {
		s.Commit = max(s.Commit, n.Commit)
		if n.Role == "leader" && n.Term > s.Term {
			s.Leader, s.Term = n.ID, n.Term
		}
	}
	if s.Leader == 0 && best != nil { // the leader may not be asked here
		s.Leader, s.Term = best.Leader, best.Term
		if a, asked := got[s.Leader]; asked && a.node == nil {
			s.Leader = 0
		}
	}
	s.Roster = rosterOf(up)
	recent, seconds := w.ledger.window(rateWindow)
	for _, id := range memberIDs(best, got) {
		m := w.member(id, s, best, up[id], got, paused)
		counted := recent[id]
		m.Writes, m.Reads = per(counted.writes.sum(), seconds), per(counted.reads.sum(), seconds)
		for _, n := range counted.sent {
			m.SentPS += per(n, seconds)
		}
		if m.Coding != nil {
			m.Coding.Joined, m.Coding.Pushed = per(counted.joined, seconds), per(counted.pushed, seconds)
		}
		s.WritesPerSecond += m.Writes
		s.ReadsPerSecond += m.Reads
		s.BytesPerSecond += m.SentPS
		s.Members = append(s.Members, m)
		s.Links = append(s.Links, w.links(id, up[id], counted, seconds)...)
	}
	s.Missing = missing(s.Members)
	s.History = append([]Sample{}, w.ledger.history...)
	s.Entries = entriesOf(up)
	s.Latency = w.latency()
	s.Events = w.events.list()
	return s
}

// missing returns how many voters a majority lacks. A voter that nobody asks may be up.
func missing(members []MemberState) int {
	voters, down := 0, 0
	for _, m := range members {
		if m.Vote == "voter" {
			voters++
			if m.State == Down || m.State == Paused {
				down++
			}
		}
	}
	if voters == 0 { // nothing is known yet
		return 0
	}
	return max(0, voters/2+1-(voters-down))
}

// newest returns a node's report with the highest term and, among equal terms, the highest applied index.
func newest(nodes map[uint64]*Node) (best *Node) {
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[id]
		if n.Role == Gateway {
			continue
		}
		if best == nil || n.Term > best.Term || n.Term == best.Term && n.Applied > best.Applied {
			best = n
		}
	}
	return best
}

// memberIDs returns the members, and the nodes that are asked.
func memberIDs(best *Node, got map[uint64]answer) []uint64 {
	ids := slices.Collect(maps.Keys(got))
	if best != nil {
		ids = append(append(ids, best.Voters...), best.Learners...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), MaxMembers)]
}

// member describes a node.
func (w *watch) member(id uint64, s *State, best, now *Node, got map[uint64]answer, paused map[uint64]bool) MemberState {
	m := MemberState{ID: id, Vote: voteOf(best, id), State: Up}
	a, asked := got[id]
	switch {
	case !asked:
		m.State = Unasked
	case now == nil && paused[id]:
		m.State = Paused
	case now == nil:
		m.State, m.Why = Down, Text(a.err.Error())
	}
	if best != nil {
		m.Address, m.LogLost = best.Addresses[id], slices.Contains(best.LostLogs, id)
	}
	if s.Roster != nil {
		m.Named = slices.ContainsFunc(s.Roster.Named, func(p Span) bool { return slices.Contains(p.Nodes, id) })
	}
	n := now
	if n == nil {
		n = w.ledger.last[id]
	}
	if n == nil {
		return m
	}
	m.Role, m.Term, m.Commit, m.Applied, m.Behind = n.Role, n.Term, n.Commit, n.Applied, growth(n.Applied, s.Commit)
	m.Stalled, m.UptimeMs, m.PID, m.Served = n.Stalled, n.UptimeMs, n.PID, n.Served
	m.Weight, m.SyncUs = n.Weight, n.SyncUs
	m.Answers = now != nil && n.Leases != nil && n.Leases.Stable
	if c := n.Coding; c != nil {
		m.Coding = &GossipState{
			// By the commit index that the node knew at the moment of its report: others were
			// asked a little earlier or later.
			Policy: c.Policy, Active: c.Active, Lag: growth(c.Completed, n.Commit), Memory: c.Memory, StuckAt: c.StuckAt,
		}
		late, _ := w.ledger.window(latencyWindow)
		if t := late[id]; t.delayed > 0 {
			ms := float64(t.delay) / float64(t.delayed) / 1e3
			m.Coding.DelayMs = &ms
		}
	}
	return m
}

func voteOf(best *Node, id uint64) string {
	switch {
	case best != nil && slices.Contains(best.Voters, id):
		return "voter"
	case best != nil && slices.Contains(best.Learners, id):
		return "learner"
	}
	return "none"
}

// rosterOf returns the newest roster.
func rosterOf(nodes map[uint64]*Node) (r *Roster) {
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		l := nodes[id].Leases
		if l != nil && (r == nil || l.Term > r.Term || l.Term == r.Term && l.Roster > r.Number) {
			r = &Roster{Term: l.Term, Number: l.Roster, Retired: l.Retired, Named: l.Named}
		}
	}
	return r
}

// links describes the traffic from a node. The totals of a node that is down stay.
func (w *watch) links(id uint64, now *Node, counted totals, seconds float64) (links []LinkState) {
	n := now
	if n == nil {
		n = w.ledger.last[id]
	}
	if n == nil {
		return nil
	}
	for _, l := range n.Links {
		s := LinkState{From: id, To: l.Peer, PerSecond: per(counted.sent[l.Peer], seconds), Total: w.ledger.sums[id].sent[l.Peer], Shape: l.Shape}
		if now != nil {
			s.Connected, s.Queued = l.Connected, l.Queued
		}
		links = append(links, s)
	}
	return links
}

// entriesOf brings together what nodes say of the same entries. Where nodes differ about
// the term of an index, the entry of the highest term is shown.
func entriesOf(nodes map[uint64]*Node) []EntryState {
	byIndex := map[uint64]*EntryState{}
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		for _, e := range nodes[id].Entries {
			s := byIndex[e.Index]
			if s == nil || e.Term > s.Term {
				s = &EntryState{Index: e.Index, Term: e.Term, Bytes: e.Bytes, D: e.D, Encoder: e.Encoder}
				byIndex[e.Index] = s
			}
			if e.Term == s.Term && e.D == s.D {
				s.Cells = append(s.Cells, Cell{Node: id, Own: e.Own, Missing: e.Missing})
			}
		}
	}
	all := []EntryState{}
	for _, s := range byIndex {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b EntryState) int { return cmp.Compare(b.Index, a.Index) })
	return all[:min(len(all), shownEntries)]
}

// latency adds up the calls at all nodes.
func (w *watch) latency() Latency {
	counted, seconds := w.ledger.window(latencyWindow)
	l := Latency{Seconds: seconds}
	for _, b := range bounds {
		l.BoundsMs = append(l.BoundsMs, milliseconds(b))
	}
	for _, t := range counted {
		l.Writes.add(t.writes)
		l.Reads.add(t.reads)
	}
	l.WriteP50, l.WriteP99 = l.Writes.quantileMs(0.5), l.Writes.quantileMs(0.99)
	l.ReadP50, l.ReadP99 = l.Reads.quantileMs(0.5), l.Reads.quantileMs(0.99)
	return l
}
