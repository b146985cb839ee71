// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/weftraft/weft/rafttest/internal/mutate"

// table is the bugs. Each takes out one rule of leases, or one that somebody might
// think he can do without. When code moves or changes its words, its mutants change too.
var table = []bug{
	// A lease on two clocks.
	{"L1", "a lease counts from when its answer arrives", "leases/grantee.go",
		edit("	p.holding = holding{until: at.after(d)", "	p.holding = holding{until: max(at, n.latest).after(d)"), nil, ""},
	{"L2", "nothing is taken off for drift", "leases/grantee.go",
		edit("min(a.For, n.cfg.Lease) - n.delta", "min(a.For, n.cfg.Lease)"), nil, ""},
	{"L3", "the grantee counts ticks", "leases/work.go", countTicks, []mutate.Change{{File: "leases/grantee.go", Edits: [][2]string{
		{"	n.nextSlot(p).set(n.counter, now)", "	n.nextSlot(p).set(n.counter, byTicks(n))"},
		{"bool {\n	now = n.at(now)\n", "bool {\n	now = byTicks(n)\n"},
	}}}, ""},
	{"L3", "the grantor counts ticks", "leases/work.go",
		[][2]string{{countTicks[0][0], countTicks[0][1] + "	for _, p := range n.peers {\n		if ticksLeft[p] -= n.cfg.Heartbeat / 2; ticksLeft[p] <= 0 {\n			p.promise.until = min(p.promise.until, n.latest)\n		}\n	}\n"},
			{countTicks[1][0], "var ticksLeft = map[*peer]time.Duration{}\n\n" + countTicks[1][1]}, {"package leases\n", "package leases\n\nimport \"time\"\n"}},
		[]mutate.Change{{File: "leases/grantor.go", Edits: [][2]string{
			{"	p.promise = promise{until", "	ticksLeft[p] = max(ticksLeft[p], d)\n	p.promise = promise{until"},
		}}}, ""},
	{"L3", "stability is looked at by a cached clock", "leases/node.go",
		edit("func (n *Node) at(now Instant) Instant { return max(n.latest, now) }", "func (n *Node) at(now Instant) Instant { return n.latest }"), nil, ""},
	{"L4", "nonces begin anew after a restart", "leases/node.go",
		edit("	cfg = cfg.withDefaults()\n	n := &Node", "	cfg = cfg.withDefaults()\n	cfg.Boot = 1\n	n := &Node"), nil, ""},
	{"L5", "a confirmation ends a newer grant", "leases/grantor.go",
		edit("	if x.Boot == p.promise.nonce.Boot && x.Counter >= p.promise.nonce.Counter {", "	if x.Boot == p.promise.nonce.Boot {"), nil, ""},
	{"L6", "requests are granted while a promise is waited for", "leases/grantor.go",
		edit("	case n.pending() != nil && n.pending().shrinks(r, p.id):\n		return false\n", ""), nil, "TestDeadResponderHoldsAWriteUpOnce"},

	// Restarts.
	{"L7", "no quarantine", "leases/node.go",
		edit("until: n.latest.after(cfg.Quarantine), term", "term"), nil, ""},
	{"L8", "the newest roster is not asked for after a restart", "leases/node.go",
		edit("term: s.Term, asking: true}", "term: s.Term}"), nil, "TestRestartedNodeAdoptsNoOlderRoster"},
	{"L9", "lease messages leave before the term is on disk", "leases/adopt.go",
		edit("now >= n.recall.until && n.durable >= n.term", "now >= n.recall.until"), nil, "TestNothingIsSaidBeforeTheTermIsDurable"},

	// Promises.
	{"L10", "promises end with the term", "leases/node.go",
		edit("			p.holding, p.follow, p.noted", "			p.promise = promise{}\n			p.holding, p.follow, p.noted"), nil, ""},
	{"L10", "votes do not heed promises", "leases/sim_raft_test.go",
		edit("	if !m.lease.MayVote(now, from) {", "	if !transfer && false {"), nil, ""},
	{"L10", "forced votes do not heed promises", "leases/sim_raft_test.go",
		edit("	if !m.lease.MayVote(now, from) {", "	if !transfer && !m.lease.MayVote(now, from) {"), nil, ""},
	{"L10", "a node campaigns with promises out", "leases/sim_raft_test.go",
		edit("|| m.leads || !m.lease.MayCampaign(now) {", "|| m.leads {"), nil, ""},
	{"L11", "a roster is adopted at once", "leases/adopt.go",
		edit("|| slices.ContainsFunc(n.peers, func(p *peer) bool { return n.waitsFor(now, p) }) {", "|| slices.Contains(n.peers, nil) {"), nil, ""},

	// Rosters.
	{"L12", "no barrier", "leases/lead.go",
		edit("				b = n.last\n", "				b = 0\n"), nil, ""},
	{"L12", "a responder that was out keeps its barrier", "leases/lead.go", [][2]string{
		{"				b = n.last\n", "				if was, ok := n.leading.barriers[id]; ok {\n					b = was\n				} else {\n					b = n.last\n					n.leading.barriers[id] = b\n				}\n"},
		{"type leading struct {\n", "type leading struct {\n	barriers map[NodeID]Index\n"},
		{"&leading{first: first, ", "&leading{barriers: map[NodeID]Index{}, first: first, "},
	}, nil, ""},
	{"L13", "only the newest roster's responders are waited for", "leases/write.go",
		edit("		if !n.isSuperseded(r) {\n			upTo", "		if r == n.rosters.newest() {\n			upTo"), nil, ""},
	{"L14", "a learner counts itself", "leases/grantee.go",
		edit("	return n.members.majority(func(v NodeID) bool { return n.boundTo(now, v, test) })",
			"	yes := 0\n	if n.boundTo(now, n.cfg.ID, test) {\n		yes++\n	}\n	for _, v := range n.members.Incoming {\n		if v != n.cfg.ID && n.boundTo(now, v, test) {\n			yes++\n		}\n	}\n	return yes > len(n.members.Incoming)/2"), nil, ""},
	{"L15", "the configuration changes with a roster in use", "leases/write.go",
		edit("func (n *Node) MayChange() bool { return n.leading == nil || n.namesNobody() }", "func (n *Node) MayChange() bool { return true }"),
		[]mutate.Change{{File: "leases/lead.go", Edits: [][2]string{
			{"n.applied >= l.settled && !l.changing && !l.handing", "!l.handing"},
			{"		r.ID.Seq = last.ID.Seq + 1\n", "		r.ID.Seq, r.Voters = last.ID.Seq+1, last.Voters\n"},
		}}}, "TestConfigurationWaitsUntilNobodyIsNamed"},

	// Notes.
	{"L16", "notes of a majority are enough", "leases/notes.go",
		edit("		to = n.heldTo(r, to, held)\n", "		_ = r\n"), nil, ""},
	{"L16", "only the newest roster's responders count for a release", "leases/notes.go",
		edit("	for _, r := range list {\n		to = n.heldTo(r, to, held)", "	for _, r := range list[len(list)-1:] {\n		to = n.heldTo(r, to, held)"), nil, ""},
	{"L16", "responders of keys that this node does not serve do not count", "leases/notes.go",
		edit("	for _, r := range list {\n		to = n.heldTo(r, to, held)", "	for _, r := range list {\n		r = &Roster{Spans: slices.DeleteFunc(slices.Clone(r.Spans), func(a Assignment) bool { _, ok := a.barrier(n.cfg.ID); return !ok })}\n		to = n.heldTo(r, to, held)"), nil, ""},
	{"L17", "the leader's note goes out before its append is durable", "leases/sim_raft_test.go",
		[][2]string{
			{"	x, to := m.lease.OwnNote(min(m.durable, m.matched))\n", "	x, to := m.lease.OwnNote(min(m.durable, m.matched))\n	if m.leads {\n		x.Index = m.last()\n	}\n"},
			{"	m.vouch(func() {})\n	m.broadcast()\n", "	m.vouch(func() {})\n	m.broadcast()\n	m.sendNotes()\n"},
		}, nil, ""},
	{"L17", "a release does not need the leader's note", "leases/notes.go",
		edit("	to := min(q.UpTo, q.Durable, n.notes.under(newest.ID.Seq))", "	to := min(q.UpTo, q.Durable)"), nil, ""},
	{"L17", "the roster that the leader's note names does not matter", "leases/notes.go",
		edit("n.notes.under(newest.ID.Seq))", "n.notes.under(newest.ID.Seq+1000))"), nil, ""},
	{"L18", "notes of another term count", "leases/notes.go",
		edit("	case x.Term != n.term:\n		return nil // the log of another term may differ from the one its sender held\n", ""), nil, "TestNotesOfAnotherTermDoNotCount"},
	{"L19", "the leader reads at its commit index although notes are on", "leases/reads.go",
		edit("n.cfg.Notes && l != nil {", "n.cfg.Notes && l != nil && n.last == 0 {"), nil, ""},
}

// countTicks makes a node of leases count its ticks, of which there are two in a heartbeat.
var countTicks = [][2]string{
	{"func (n *Node) Tick(now Instant) {\n	now = n.advance(now)\n", "func (n *Node) Tick(now Instant) {\n	now = n.advance(now)\n	ticked[n]++\n"},
	{"// Poll does what", "var ticked = map[*Node]Instant{}\n\nfunc byTicks(n *Node) Instant { return ticked[n] * Instant(n.cfg.Heartbeat/2) }\n\n// Poll does what"},
}

// edit is the one edit of most mutants.
func edit(old, now string) [][2]string { return [][2]string{{old, now}} }
