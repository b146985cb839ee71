// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"flag"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

// leaseBug takes out a rule of leases: texts that occur once each in a file are replaced.
type leaseBug struct {
	// rule is the number that the rule has in the package's documentation.
	rule  string
	what  string
	file  string
	edits [][2]string
	more  []mutate.Change
	// by is the test that must find the bug; empty: seeds must find it. If what begins with "in
	// Raft", the test is in package raft, and the seeds are of TestLeased; if what begins with
	// "in Host", the test is in the package of the file. Else the seeds are of TestClusters.
	by string
}

var (
	fresh = flag.Bool("fresh", false, "of leases: look at what clients see only, and not at the other invariants")
	all   = flag.Bool("all-by-seeds", false, "of leases: look for every bug with seeds, also for those that a test is made for")
)

// leaseSeeds is the number of seeds that must find a bug of leases.
func leaseSeeds() int { return cmp.Or(*seeds, 4000) }

// leaseMutants returns the bugs of leases in the order of the rules.
func leaseMutants() (list []mutate.Mutant) {
	inOrder := slices.Concat(leased, leasedInRaft)
	slices.SortStableFunc(inOrder, func(a, b leaseBug) int { return cmp.Compare(a.number(), b.number()) })
	for _, b := range inOrder {
		if *all && !strings.HasPrefix(b.what, "in Host") {
			b.by = ""
		}
		tests, flags := "leases", []string{"-test.run=^" + b.by + "$", "-test.timeout=5m"}
		inRaft := strings.HasPrefix(b.what, "in Raft")
		switch {
		case inRaft && b.by == "":
			tests, flags = "rafttest", []string{"-test.run=^TestLeased$", "-test.timeout=20m",
				fmt.Sprintf("-leased-seeds=%d", leaseSeeds()), fmt.Sprintf("-leased-first=%d", *first), "-stop=1"}
		case inRaft:
			tests = "raft"
		case strings.HasPrefix(b.what, "in Host"):
			tests = path.Dir(b.file)
		case b.by == "":
			flags = []string{"-test.run=^TestClusters$", "-test.timeout=20m", "-test.cpu=1",
				fmt.Sprintf("-lease-seeds=%d", leaseSeeds()), fmt.Sprintf("-lease-first=%d", *first), "-lease-count=false"}
			if *fresh {
				flags = append(flags, "-lease-only=Fresh")
			}
		}
		list = append(list, mutate.Mutant{What: b.rule + ": " + b.what, File: b.file, Edits: b.edits, More: b.more, Tests: tests,
			Stages: [][]string{flags}, Verdict: b.verdict})
	}
	return list
}

// number is that of the rule.
func (b leaseBug) number() int {
	n, err := strconv.Atoi(strings.TrimPrefix(b.rule, "L"))
	if err != nil {
		panic(err) // the table is wrong
	}
	return n
}

// verdict reads from the output of a failed run what found the bug.
func (b leaseBug) verdict(out string, _ []string) mutate.Finding {
	f := mutate.Finding{By: b.by, Detail: "it fails"}
	if m := foundSeed.FindStringSubmatch(out); m != nil {
		f.Detail = m[2]
		if b.by == "" {
			f.By = fmt.Sprintf("seed %s of %d", m[1], leaseSeeds())
		}
		return f
	}
	if b.by == "" || strings.Contains(out, "panic: test timed out") {
		f.Err = fmt.Errorf("the tests failed without naming an invariant: %s", out[max(0, len(out)-400):])
	}
	return f
}

// leased is the bugs of leases. Each bug takes out one rule of leases, or a line of code that looks as
// if it could go. When code moves or changes its words, the mutants of the code change, too.
var leased = []leaseBug{
	// Reads by permits.
	{"L27", "a permit has no end", "leases/permit.go",
		edit("x.span.Start > at || now >= x.until {", "x.span.Start > at {"), nil, ""},
	{"L27", "a permit ends with the last lease of a majority", "leases/voters.go",
		edit("return ends[(len(ends)-1)/2]", "if slices.Contains(ends[(len(ends)-1)/2:], 0) {\n			return 0\n		}\n		return ends[len(ends)-1]"), nil, ""},
	{"L27", "a permit stops at the commit index", "leases/permit.go",
		edit("last: n.last, floor: n.applied", "last: n.committed, floor: n.applied"), nil, ""},
	{"L27", "the permit stays when entries follow that touch other keys", "leases/permit.go",
		edit("p.last == o.last && p.version == o.version &&", "len(p.touches.list) > 0 &&"), nil, ""},
	{"L27", "in Host, the permit follows what the turn sends", "rawnode/loop.go",
		edit("	h.local.Publish(r)\n	h.dispatch(out)\n", "	h.dispatch(out)\n	h.local.Publish(r)\n"), nil, "TestNothingLeavesAHostBeforeItsPermit"},
	{"L27", "in Host, the clock is read before the permit is loaded", "internal/replica/local_reads.go", [][2]string{
		{"	permit := l.permit.Load()\n	if permit == nil", "	now := leases.InstantOf(l.clock.Now())\n	permit := l.permit.Load()\n	if permit == nil"},
		{"	now := leases.InstantOf(l.clock.Now())\n	index,", "	index,"},
	}, nil, "TestReadLoadsItsPermitBeforeItReadsTheClock"},
	{"L27", "in Host, reads go by the clock as of the last turn", "internal/replica/local_reads.go", [][2]string{
		{"	closed  atomic.Bool\n", "	closed  atomic.Bool\n	turned  atomic.Int64\n"},
		{"	former := l.permit.Load()\n", "	l.turned.Store(int64(leases.InstantOf(l.clock.Now())))\n	former := l.permit.Load()\n"},
		{"	now := leases.InstantOf(l.clock.Now())\n", "	now := leases.Instant(l.turned.Load())\n"},
	}, nil, "TestLocalReadsEndWithTheLease"},
	{"L27", "in Host, a read does not wait for the state machine", "internal/replica/local_reads.go",
		edit("if !ok || uint64(index) > l.applied.Load() {", "if !ok {"), nil, "TestLocalReadWaitsForTheStateMachine"},
	{"L27", "in Host, a host that ends goes on answering", "internal/replica/local_reads.go",
		edit("if l == nil || l.closed.Load() {", "if l == nil {"), nil, "TestClosedLocalReadsAnswerNothing"},
	{"L27", "in Host, a host out of service goes on answering", "internal/replica/local_reads.go",
		edit("if r.err != nil || r.leasing.core == nil {", "if r.leasing.core == nil {"), nil, "TestPermitGoesInTheTurnThatEndsTheLease"},
	{"L27", "a permit for some keys is one for all", "leases/permit.go",
		edit("if x.span.Start > at || now", "if now"), nil, ""},
	// A lease on two clocks.
	{"L1", "a lease counts from when its answer arrives", "leases/grantee.go",
		edit("	p.holding = holding{until: at.after(d)", "	p.holding = holding{until: max(at, n.latest).after(d)"), nil, ""},
	{"L2", "nothing is taken off for drift", "leases/grantee.go",
		edit("min(a.For, n.cfg.Lease) - n.cfg.delta(p.clock)", "min(a.For, n.cfg.Lease)"), nil, ""},
	{"L2", "a lease longer than this node's own setting counts whole", "leases/grantee.go",
		edit("min(a.For, n.cfg.Lease) - n.cfg.delta(p.clock)", "a.For - n.cfg.delta(p.clock)"), nil, ""},
	{"L3", "the grantee counts ticks", "leases/work.go", countTicks, []mutate.Change{{File: "leases/grantee.go", Edits: [][2]string{
		{"counter: n.counter, at: now}", "counter: n.counter, at: byTicks(n)}"},
		{"bool {\n	now = n.at(now)\n", "bool {\n	now = byTicks(n)\n"},
	}}}, ""},
	{"L3", "the grantor counts ticks", "leases/work.go",
		[][2]string{{countTicks[0][0], countTicks[0][1] + "	for _, p := range n.peers {\n		if ticksLeft[p] -= n.cfg.Heartbeat / 2; ticksLeft[p] <= 0 {\n			p.promise.until = min(p.promise.until, n.latest)\n		}\n	}\n"},
			{countTicks[1][0], "var ticksLeft = map[*peer]time.Duration{}\n\n" + countTicks[1][1]}},
		[]mutate.Change{{File: "leases/grantor.go", Edits: [][2]string{
			{"	p.promise = promise{until", "	ticksLeft[p] = max(ticksLeft[p], d)\n	p.promise = promise{until"},
		}}}, ""},
	{"L3", "stability is looked at by a cached clock", "leases/node.go",
		edit("func (n *Node) at(now Instant) Instant { return max(n.latest, now) }", "func (n *Node) at(now Instant) Instant { return n.latest }"), nil, ""},
	{"L28", "a leader with an unfit clock reads by its lease", "leases/grantee.go", edit("	if n.aside {\n", "	if false {\n"), nil, "TestLeaderStandsAsideAndLeads"},
	{"L28", "a node with an unfit clock grants leases", "leases/grantor.go", edit("case n.aside || r == nil", "case r == nil"), nil, "TestResponderStandsAsideWhileItsClockIsUnfit"},
	{"L28", "promises by an unfit clock end when that says", "leases/aside.go", edit("		n.restart.until = max(n.restart.until, now.after(2*n.cfg.Quarantine))\n", ""), nil, "TestNodeThatStandsAsideHoldsItsPromisesForLonger"},
	{"L29", "a lease counts over the voters in force", "leases/voters.go",
		edit("	for _, ids := range m.Coming {\n		until", "	for _, ids := range m.Coming[:0] {\n		until"), nil, "TestLeaseCountsOverEverySetThatCounts"},
	{"L30", "each gap between ticks is a pause", "leases/detector.go",
		edit("	return first\n", "	return first || now > 0\n"), nil, "TestDeadResponderIsRemovedByALeaderWithLateTicks"},
	{"L31", "each node goes by the bound of its own clock", "leases/config.go",
		edit("time.Duration(max(c.DriftPPM, peer.DriftPPM))", "time.Duration(c.DriftPPM)"), nil, "TestWorseClockCountsForBoth"},
	{"L32", "leases are retired when a majority has heard of it", "leases/control.go",
		edit("	return n.leading != nil && n.rosters.newest().Retired && n.isQuiet() && !", "	return n.leading != nil && n.rosters.newest().Retired && n.isQuiet() || n.leading != nil && n.cfg.ID == 0 && !"), nil, "TestRetiredLeasesStayOffUnderTheNextLeader"},
	{"L35", "the lease of a member that has left counts", "leases/node.go",
		edit("			p.holding, p.sent = holding{}, [maxSent]sentRequest{}\n", "			_ = p\n"), nil, "TestLeaseOfAMemberThatLeftDoesNotCount"},
	{"L35", "an answer counts of a member that has left since", "leases/node.go",
		edit("			p.holding, p.sent = holding{}, [maxSent]sentRequest{}\n", "			p.holding = holding{}\n"), nil, "TestLeaseOfAMemberThatLeftDoesNotCount"},
	{"L35", "the lease of a member that has left counts if the log has it come back", "leases/node.go",
		edit("before.has(p.id)", "before.has(0)"), nil, "TestLeaseOfAMemberThatLeftDoesNotCount"},
	{"L35", "leases outlive a snapshot", "leases/node.go",
		edit("	n.last, n.committed = i, i\n	n.GiveUp()\n", "	n.last, n.committed = i, i\n"), nil, "TestLeaseOfAMemberThatLeftDoesNotCount"},
	{"L20", "a note beyond the last index there is counts for entry 0", "leases/touches.go",
		edit("	if after >= upTo {", "	if after > upTo && after < 1 {"), nil, "TestNoteBeyondEveryLogReleasesWhatOthersHold"},
	{"L4", "nonces begin anew after a restart", "leases/node.go",
		edit("	cfg = cfg.withDefaults()\n	n := &Node", "	cfg = cfg.withDefaults()\n	cfg.Boot = 1\n	n := &Node"), nil, ""},
	{"L8", "a confirmation ends a newer grant", "leases/grantor.go",
		edit("	if x.Boot == p.promise.nonce.Boot && x.Counter >= p.promise.nonce.Counter {", "	if x.Boot == p.promise.nonce.Boot {"), nil, ""},
	{"L7", "requests are granted while a promise is waited for", "leases/grantor.go",
		edit("	case n.pending() != nil && n.pending().shrinks(r, p.id):\n		return false\n", ""), nil, "TestDeadResponderHoldsAWriteUpOnce"},

	{"L8", "answers to revoked requests count", "leases/grantee.go",
		edit("a.For == 0 || a.Nonce.Counter <= p.floor ||", "a.For == 0 ||"), nil, ""},
	{"L8", "promises to two runs of a node stand side by side", "leases/grantor.go",
		edit("		return !p.binds(now)\n", "		return true\n"), nil, "TestTwoRunsOfANodeHoldNoPromisesSideBySide"},
	{"L24", "promises outlive the patience of their grantor", "leases/grantor.go",
		edit("	return min(n.cfg.Lease, heard.after(n.cfg.ElectionTimeout).since(now))", "	return n.cfg.Lease"), nil, "TestPromisesEndWithPatience"},

	// Restarts.
	{"L9", "no quarantine", "leases/node.go",
		edit("until: n.latest.after(cfg.Quarantine), term", "term"), nil, ""},
	{"L9", "the quarantine is that of the lease as it is now", "leases/node.go",
		edit("n.latest.after(cfg.Quarantine)", "n.latest.after(cfg.Lease)"), nil, ""},
	{"L10", "the newest roster is not asked for after a restart", "leases/node.go",
		edit("term: s.Term, asking: true}", "term: s.Term}"), nil, "TestRestartedNodeAdoptsNoOlderRoster"},
	{"L10", "older rosters are adopted although the leader has named a newer one", "leases/adopt.go",
		edit("	if n.restart.term == n.term && r.ID.Seq < n.restart.least {\n		return false\n	}\n", ""), nil, "TestRestartedNodeWaitsForTheNewestRoster"},
	{"L10", "a node whose clock allows no lease does not hear which roster is the newest", "leases/work.go",
		edit("	if n.leading != nil {\n		m.Answer = Answer{}\n	} else {", "	if m.Answer = (Answer{}); true {"), nil, "TestRestartedNodeWhoseClockAllowsNoLeaseAdopts"},
	{"L31", "a leader grants a lease that cannot be renewed in time", "leases/grantor.go",
		edit("	return lasts && p.promise", "	return (lasts || !lasts) && p.promise"), nil, "TestLeaderAnswersAClockThatAllowsNoLease"},
	{"L25", "all rosters in use travel, however long they are", "leases/work.go",
		edit("bytes > maxAnnouncement && len(list) > 0", "bytes > maxAnnouncement && len(list) > MaxRosters"), nil, "TestBurstOfWishesIsAnnounced"},
	{"L11", "lease messages leave before the term is on disk", "leases/adopt.go",
		edit("now >= n.restart.until && n.durable >= n.term", "now >= n.restart.until"), nil, "TestNothingIsSaidBeforeTheTermIsDurable"},

	// Promises.
	{"L5", "promises end with the term", "leases/node.go",
		edit("			p.holding, p.follow, p.noted", "			p.promise = promise{}\n			p.holding, p.follow, p.noted"), nil, ""},
	{"L5", "votes do not heed promises", "leases/sim_raft_test.go",
		edit("	if !m.lease.MayVote(now, from) {", "	if !transfer && false {"), nil, ""},
	{"L5", "forced votes do not heed promises", "leases/sim_raft_test.go",
		edit("	if !m.lease.MayVote(now, from) {", "	if !transfer && !m.lease.MayVote(now, from) {"), nil, "TestVotesAtTheLeadersWishHeedPromises"},
	{"L5", "a node campaigns with promises out", "leases/sim_raft_test.go",
		edit("|| m.leads || !m.lease.MayCampaign(now) {", "|| m.leads {"), nil, "TestNodeWithPromisesOutDoesNotCampaign"},
	{"L6", "a roster is adopted at once", "leases/adopt.go",
		edit("&& !slices.ContainsFunc(n.peers, func(p *peer) bool { return r.waitsFor(now, p) }):", ":"), nil, ""},

	// Rosters.
	{"L13", "no barrier", "leases/lead.go",
		edit("				b = n.last\n", "				b = 0\n"), nil, ""},
	{"L13", "a responder that was out keeps its barrier", "leases/lead.go", [][2]string{
		{"				b = n.last\n", "				if was, ok := n.leading.barriers[id]; ok {\n					b = was\n				} else {\n					b = n.last\n					n.leading.barriers[id] = b\n				}\n"},
		{"type leading struct {\n", "type leading struct {\n	barriers map[NodeID]Index\n"},
		{"&leading{first: first, ", "&leading{barriers: map[NodeID]Index{}, first: first, "},
	}, nil, ""},
	{"L14", "only the newest roster's responders are waited for", "leases/write.go",
		edit("		if !n.isSuperseded(r) {\n			upTo", "		if r == n.rosters.newest() {\n			upTo"), nil, ""},
	{"L12", "a learner counts itself", "leases/grantee.go",
		[][2]string{
			{"import \"math\"", "import (\n\"math\"\n\"slices\"\n)"},
			{"	return n.members.majorityUntil(func(v NodeID) Instant { return n.boundUntil(v, test) })",
				"	ends := []Instant{n.boundUntil(n.cfg.ID, test)}\n	for _, v := range n.members.Incoming {\n		if v != n.cfg.ID {\n			ends = append(ends, n.boundUntil(v, test))\n		}\n	}\n	slices.Sort(ends)\n	return ends[len(ends)-1-len(n.members.Incoming)/2]"},
		}, nil, ""},
	{"L17", "the configuration changes with a roster in use", "leases/write.go",
		edit("func (n *Node) MayChange() bool { return n.leading == nil || n.namesNobody() }", "func (n *Node) MayChange() bool { return true }"),
		[]mutate.Change{{File: "leases/lead.go", Edits: [][2]string{
			{"n.applied >= l.settled && !l.changing && !l.handing", "!l.handing"},
			{"		r.ID.Seq = last.ID.Seq + 1\n", "		r.ID.Seq, r.Voters = last.ID.Seq+1, last.Voters\n"},
		}}}, "TestConfigurationWaitsUntilNobodyIsNamed"},

	{"L12", "leases on any roster of the term count", "leases/grantee.go",
		edit("	if l := n.leading; l != nil {\n		if n.isOff", "	if newest := n.rosters.newest(); newest != nil && test(newest) {\n		test = func(*Roster) bool { return true }\n	}\n	if l := n.leading; l != nil {\n		if n.isOff"), nil, ""},
	{"L12", "leases on a roster of another configuration count", "leases/grantee.go",
		edit("		if r == nil || !r.Voters.equal(n.members.Voters) {", "		if r == nil {"),
		[]mutate.Change{
			{File: "leases/write.go", Edits: edit("func (n *Node) MayChange() bool { return n.leading == nil || n.namesNobody() }", "func (n *Node) MayChange() bool { return true }")},
			{File: "leases/lead.go", Edits: edit("n.applied >= l.settled && !l.changing && !l.handing", "!l.handing")},
			{File: "leases/roster.go", Edits: edit("ok || is > was || !r.Voters.equal(old.Voters) {", "ok || is > was {")},
		}, "TestConfigurationWaitsUntilNobodyIsNamed"},
	{"L15", "a roster is superseded when it is made known", "leases/write.go",
		edit("		return p != nil && p.follow.adopted > r.ID.Seq", "		return p != nil && p.follow.known > r.ID.Seq"), nil, ""},
	{"L14", "as many acknowledgements as responders are enough", "leases/write.go",
		edit("			if lacks, ok", "			if n.acked(upTo) > len(n.members.Incoming)/2+1 {\n				continue\n			}\n			if lacks, ok"),
		[]mutate.Change{{File: "leases/control.go", Edits: edit("// SetWanted says", "func (n *Node) acked(i Index) int {\n	k := 1\n	for _, p := range n.peers {\n		if p.follow.match >= i {\n			k++\n		}\n	}\n	return k\n}\n\n// SetWanted says")}}, "TestCommitsAwaitRespondersByName"},
	{"L16", "responders are removed if they are not heard of, and not if they acknowledge nothing", "leases/detector.go",
		[][2]string{{"	case waits:\n		return &n.counts.Stuck\n	case n.falters(now, p):\n		return &n.counts.Faltered\n", ""}, {"	_, waits := n.isWaitedFor(now, p, n.cfg.Fail)\n	switch {", "	switch {"}}, nil, "TestDeadResponderHoldsAWriteUpOnce"},
	{"L16", "responders are removed if they acknowledge nothing, and not if they are silent", "leases/detector.go",
		edit("	case n.isSilent(now, &p.follow):\n		return &n.counts.Silent\n", ""), nil, "TestSilentResponderIsRemovedFromAnIdleGroup"},
	{"L16", "a responder that stands still for less than Fail is forgiven each time", "leases/detector.go",
		edit("	case n.falters(now, p):\n		return &n.counts.Faltered\n", ""), nil, "TestWritesWaitForFewerAndFewerFaltersOfAResponder"},
	{"L16", "falters are forgiven again after each removal", "leases/detector.go",
		edit("	return f.backoff > 0 || f.falters > forgiven", "	return f.falters > forgiven"), nil, "TestWritesWaitForFewerAndFewerFaltersOfAResponder"},
	{"L16", "a responder that was removed once never is as good as new", "leases/detector.go",
		edit("			f.backoff = 0\n", "			f.backoff = max(f.backoff, 0)\n"), nil, "TestWritesWaitForFewerAndFewerFaltersOfAResponder"},
	{"L16", "falters count however long ago they were", "leases/detector.go",
		edit("		f.falters = 0\n", "		f.falters = max(f.falters, 0)\n"), nil, "TestRareFaltersRemoveNobody"},
	{"L16", "a write that a majority lacks counts against the responder", "leases/detector.go",
		edit("	f.late = waits && n.members.majority(func(v NodeID) bool { return v == n.cfg.ID || n.peer(v).follow.match >= i })\n", "	f.late = waits && i > 0\n"), nil, "TestWaitsForTheMajorityAreNoFaltersOfAResponder"},
	{"L16", "silence counts for a responder that has to keep up before it returns", "leases/detector.go",
		edit("f.shown(p.follow.answered) >= f.backoff", "now.since(f.since) >= f.backoff"), nil, "TestFalteringResponderIsNotNamedInItsSilence"},
	{"L33", "a responder that limps stays", "leases/detector.go",
		edit("	case p.follow.pace.slow >= limpWindows:\n		return &n.counts.Limped\n", ""), nil, "TestResponderThatLimpsIsLeftOutUntilItIsWell"},
	{"L33", "a responder returns although it limps", "leases/detector.go",
		edit(" || p.follow.pace.slow > wellWindows:", ":"), nil, "TestResponderThatLimpsIsLeftOutUntilItIsWell"},
	{"L33", "slow windows are never forgotten", "leases/pace.go",
		edit("			a.slow = max(a.slow-1, 0)\n", "			a.slow = max(a.slow, 0)\n"), nil, "TestResponderThatLimpsIsLeftOutUntilItIsWell"},
	{"L33", "a single slow window is limping", "leases/pace.go",
		edit("limpWindows, wellWindows = 6, 2\n", "limpWindows, wellWindows = 1, 0\n"), nil, "TestHiccupsOfAResponderRemoveNobody"},
	{"L33", "the lag of a responder is compared with the quorum's, wherever the responder is", "leases/pace.go",
		edit("max(lag, a.trip()+work)", "max(lag, work)"), nil, "TestFarResponderStays"},
	{"L33", "the lag of a responder is compared with its distance, however slow the quorum is", "leases/pace.go",
		edit("should := max(lag, a.trip()+work)", "should := a.trip() + min(work, lag, 1)"), nil, "TestMajorityThatIsSlowRemovesNobody"},
	{"L33", "the way to a responder is what it was last", "leases/pace.go",
		edit("	a.best = shorter(a.best, max(trip, 1))\n", "	a.best = max(trip, 1)\n"), nil, "TestLinkThatStaysSlowIsALongerLink"},
	{"L33", "the shortest way counts without end", "leases/pace.go",
		edit("a.period == 0 || now.since(a.period) >= tripFails*fail {", "a.period == 0 {"), nil, "TestLinkThatStaysSlowIsALongerLink"},
	{"L33", "members answer the leader when they ask by themselves", "leases/grantor.go",
		edit("	if n.leading == nil && p.id == n.leader || now", "	if now"), nil, "TestDistancesAreKnownWhateverThePhaseOfAMember"},
	{"L33", "a window that showed that a responder limps counts until somebody writes", "leases/pace.go",
		edit("a.count < windowLags && lasted < windowFails*fail:", "a.count < windowLags:"), nil, "TestResponderThatLimpedReturnsToAnIdleGroup"},
	{"L33", "a responder that limps again and again is left out for no longer", "leases/detector.go",
		edit("backoff: min(max(2*f.backoff, n.cfg.Fail), maxBackoff*n.cfg.Fail)}", "backoff: n.cfg.Fail}"), nil, "TestResponderThatLimpsInTurnsDoesNotFlap"},
	{"L34", "the former leader is named at once", "leases/lead.go",
		edit("			p.follow.fit.backoff = n.cfg.Fail // rule L34\n", "			p.follow.fit.backoff = 0\n"), nil, "TestFormerLeaderThatIsSlowIsNotNamed"},
	{"L34", "a new leader does not know how near the others were", "leases/lead.go",
		edit("return follow{pace: pace{trips: f.pace.trips}}", "return follow{}"), nil, "TestFormerLeaderThatIsSlowIsNotNamed"},
	{"L34", "answers wait for heartbeats, but for those to the leader", "leases/grantor.go",
		edit(" || now.since(p.prompt) >= promptFails*n.cfg.Fail {", " {"), nil, "TestRespondersKnowHowFarAwayOthersAre"},
	{"L18", "a responder reads at its commit index", "leases/reads.go",
		edit("n.lastOf(spans, n.last)", "n.lastOf(spans, n.committed)"), nil, ""},
	{"L18", "a responder reads at the last entry of other keys", "leases/touches.go",
		edit("		if at == 0 || t.list[at-1].index != i || span.overlapsAny(t.list[at-1].spans) {\n			return i\n", "		if at == 0 || t.list[at-1].index != i || !span.overlapsAny(t.list[at-1].spans) {\n			return i\n"), nil, ""},
	{"L19", "a leader reads before its empty entry is committed", "leases/grantee.go",
		edit("n.isOff() || n.committed < l.first {", "n.isOff() {"), nil, ""},
	{"L25", "only the number of a roster is sent again", "leases/work.go",
		edit("(due || p.follow.announced < newest)", "p.follow.announced < newest"), nil, "TestRosterIsAnnouncedUntilItIsKnown"},
	{"L26", "a node that waits grants nothing to anyone", "leases/grantor.go",
		edit("n.pending() != nil && n.pending().shrinks(r, p.id):", "n.pending() != nil:"), nil, "TestReadsGoOnWhileAnotherResponderDies"},
	{"L26", "a node adopts the newest roster that it knows, and no other", "leases/adopt.go",
		edit("		case n.adopted != nil && r.ID.Seq <= n.adopted.ID.Seq:", "		case n.adopted != nil && r.ID.Seq <= n.adopted.ID.Seq || r != n.rosters.newest():"), nil, "TestSecondDeafResponderHoldsUpNoWriteThatItHas"},

	// Notes.
	{"L20", "notes of a majority are enough", "leases/notes.go",
		edit("		to = n.heldTo(r, to, held)\n", "		_ = r\n"), nil, ""},
	{"L20", "only the newest roster's responders count for a release", "leases/notes.go",
		edit("	for _, r := range list {\n		to = n.heldTo(r, to, held)", "	for _, r := range list[len(list)-1:] {\n		to = n.heldTo(r, to, held)"), nil, ""},
	{"L20", "responders of keys that this node does not serve do not count", "leases/notes.go",
		edit("	for _, r := range list {\n		to = n.heldTo(r, to, held)", "	for _, r := range list {\n		r = &Roster{Spans: slices.DeleteFunc(slices.Clone(r.Spans), func(a Assignment) bool { _, ok := a.barrier(n.cfg.ID); return !ok })}\n		to = n.heldTo(r, to, held)"), nil, ""},
	{"L21", "the leader's note goes out before its append is durable", "leases/sim_raft_test.go",
		[][2]string{
			{"	x, to := m.lease.OwnNote(min(m.durable, m.matched))\n", "	x, to := m.lease.OwnNote(min(m.durable, m.matched))\n	if m.leads {\n		x.Index = m.last()\n	}\n"},
			{"	m.vouch(func() {})\n	m.broadcast()\n", "	m.vouch(func() {})\n	m.broadcast()\n	m.sendNotes()\n"},
		}, nil, "TestLeadersNoteWaitsForItsDisk"},
	{"L21", "a release does not need the leader's note", "leases/notes.go",
		edit("	to := min(q.UpTo, q.Durable, n.notes.under(newest.ID.Seq))", "	to := min(q.UpTo, q.Durable)"), nil, ""},
	{"L21", "the roster that the leader's note names does not matter", "leases/notes.go",
		edit("n.notes.under(newest.ID.Seq))", "n.notes.under(newest.ID.Seq+1000))"), nil, ""},
	{"L22", "notes of another term count", "leases/notes.go",
		edit("	case x.Term != n.term:\n		return nil // the log of another term may differ from the one its sender held\n", ""), nil, "TestNotesOfAnotherTermDoNotCount"},
	{"L23", "the leader reads at its commit index although notes are on", "leases/reads.go",
		edit("n.cfg.Notes && l != nil {", "n.cfg.Notes && l != nil && n.last == 0 {"), nil, ""},
}

// countTicks makes a node of leases count ticks; a heartbeat has two ticks.
var countTicks = [][2]string{
	{"func (n *Node) Tick(now Instant) {\n	now = n.advance(now)\n", "func (n *Node) Tick(now Instant) {\n	now = n.advance(now)\n	ticked[n]++\n"},
	{"// Poll does what", "var ticked = map[*Node]Instant{}\n\nfunc byTicks(n *Node) Instant { return ticked[n] * Instant(n.cfg.Heartbeat/2) }\n\n// Poll does what"},
}
