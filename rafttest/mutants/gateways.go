// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

// Files in which bugs of gateways stand.
const (
	gatewayFile = "internal/replica/gateway.go"
	homesFile   = "internal/replica/gateway_homes.go"
	homeFile    = "internal/replica/home.go"
	queriesFile = "internal/replica/queries.go"
	outboxFile  = "internal/replica/outbox.go"
	fatesFile   = "internal/replica/fates.go"
	inboxFile   = "internal/replica/inbox.go"
	leadingFile = "internal/replica/leading.go"
	keeperFile  = "internal/book/keeper.go"
)

// brief says that seeds of TestGatesBrief find a bug, so many at most.
const brief = 1850

// gateways is the bugs of gateways, and of what replicas do for them. Seeds of TestGatesBrief, of package
// rafttest/nodes, find them, if no test is named.
var gateways = []bug{
	{"a leader appends what was sent for another term", leadingFile,
		edit("if !r.leads() || r.state.Term != p.Term {", "if !r.leads() {"), "TestLeaderComparesTheTermOfAGatewaysProposal", 0},
	{"snapshots lack what gateways have applied", "internal/replica/hoststate.go",
		edit("	h.rows = h.origins.rows(h.rows)\n", "	few := originTable{}\n	for id, row := range h.origins {\n		if id < 10 {\n			few[id] = row\n		}\n	}\n	h.rows = few.rows(originRows{})\n"), "", brief},
	{"the host's bytes have a gateway as it was before its last batch", "internal/replica/origins.go",
		edit("	row.changed()\n	return !again\n", "	return !again\n"), "TestHostBytesOfManyOriginsAreMadeInOrder", 0},
	{"gateways leave as much open together as each may", inboxFile,
		edit("	case uint64(i.host.size)+4*(i.last-min(i.last, i.host.at.index)) > largeTable:\n		return smallWindow\n", ""), "TestGatewaysLeaveFewBatchesOpenTogether", 0},
	{"a home does not tell what was applied before", homeFile,
		edit("if row := h.host.origins[from]; row != nil {", "if row := h.host.origins[from]; row != nil && from == 0 {"), "", brief},
	{"a gateway goes on behind a gap", gatewayFile,
		edit("if r.Count != next {", "if r.Count < next {"), "", brief},
	{"a gateway believes a home that it has left", gatewayFile,
		[][2]string{
			{"if r.Life != g.cfg.Boot || r.Number != h.number {", "if r.Life != g.cfg.Boot {"},
			{"	if from != h.id {\n", "	if from == 0 {\n"},
			{"case !attached && r.Row == nil, attached && r.Stream != h.stream:", "case !attached && r.Row == nil:"},
		}, "", brief},
	{"a gateway takes results of its earlier lives", fatesFile,
		edit("if id.Origin != o.cfg.ID || id.Boot != o.boot {", "if id.Origin != o.cfg.ID {"), "", brief},
	{"a batch whose first sending was lost keeps a node from its next number", fatesFile,
		edit("		if o.newest > o.boot { // the leader", "		if o.newest > o.boot && o == nil { // the leader"), "TestBootBehindARefusedOne", 0},
	{"an entry of the same term closes a batch", fatesFile,
		edit("if b.sends > 0 && b.term < at.term {", "if b.sends > 0 && b.term <= at.term {"), "", brief},
	{"a query is answered without a barrier", queriesFile,
		edit("	r.reads.await(w, o.Policy.question(w.spans))\n", "	r.finish(w.call, Done{})\n"), "", brief},
	{"a leader does not give credit back", inboxFile,
		edit("if left := i.granted[origin] - bytes; left > 0 {", "if left := i.granted[origin]; left > 0 {"), "TestLeaderBoundsWhatAGatewayHasUnderWay", 0},
	{"a home's mark is ahead of its results", homeFile,
		edit("Term: h.applied.at.term, Index: h.applied.at.index}", "Term: h.host.at.term, Index: h.host.at.index}"), "", brief},
	{"a home names a leader that it does not hear", homeFile,
		edit("h.ticks-at > uint64(h.cfg.ElectionTick)", "h.ticks-at > 1<<40"), "TestGatewayLeavesALearnerThatHearsNoLeader", 0},
	{"a stream goes on behind a snapshot", "internal/replica/snapshots.go",
		edit("		r.home.endStreams(\"this node has entries by a snapshot\")\n", ""), "", brief},
	{"a stream goes on behind a snapshot that ends in the middle of steps", "internal/replica/snapshots.go",
		edit("		r.home.endStreams(\"this node has entries by a snapshot\")\n", "		if h.at.index > r.host.at.index {\n			r.home.endStreams(\"this node has entries by a snapshot\")\n		}\n"), "TestReportsNameNoSnapshotBeforeTheEntriesUnderIt", 0},
	{"a gateway never goes back to a leader", homesFile,
		edit("g.misses < len(homes)-1", "len(homes) > 1"), "TestGatewayGoesBackToALeaderThatAloneAnswers", 0},
	{"a query that is asked again is another one", queriesFile,
		edit("; again {", "; again && id.from == 0 {"), "TestQueryThatIsAskedAgainIsOne", 0},
	{"bytes of queries are not given back", gatewayFile,
		edit("			g.asked -= len(q.Data)\n", ""), "", brief},
	{"a gateway takes answers to its earlier lives", gatewayFile,
		edit("if !found || r.Life != g.cfg.Boot {", "if !found {"), "TestGatewayTakesNoAnswerToAnEarlierLife", 0},
	{"a gateway sends for a term that is over", gatewayFile,
		edit(" || g.term < g.outbox.lastTerm {", " {"), "TestGatewaySendsNothingForATermThatIsOver", 0},
	{"a gateway proposes who was removed", inboxFile,
		edit("		if marked.Is(c) {\n", "		if marked.Is(c) && from == 0 {\n"), "TestGatewayProposesNoCommandOfThePackages", 0},
	{"a gateway says in a note who was removed", keeperFile,
		edit(`if k.book.Address(m.From) == "" {`, `if m.From == 0 {`), "TestNotesOfGatewaysSayNothing", 0},
	{"a gateway moves into its zone with batches under way", gatewayFile,
		edit("g.ticks < g.drains && len(g.outbox.batches) == 0", "g.ticks < g.drains"), "TestGatewayLosesNoResultByAMove", 0},
	{"a gateway moves to a near node that knows no leader", gatewayFile,
		edit(` && r.Closed != "" && r.Leader != raft.None {`, ` && r.Closed != "" {`), "TestGatewayMovesIntoItsZone", 0},
	{"a gateway tries nodes that are no members", homesFile,
		edit("if g.misses >= 2*len(of) {", "if true {"), "TestGatewayAsksMembersFirst", 0},
	{"a gateway stays with a home that was removed", homesFile,
		edit("removed := attached && ", "removed := false && attached && "), "TestGatewayLeavesARemovedHome", 0},
	{"a leader takes a start beyond all clocks", inboxFile,
		edit("if p.ID.Boot >= maxBoot {", "if p.ID.Boot >= maxBoot && from == 0 {"), "TestStartBeyondAllClocksIsRefused", 0},
	{"a report without results takes no room", homeFile,
		edit("k.bytes = reportBytes + 8*(len(k.Voters)+len(k.Learners))", "k.bytes = 0"), "TestReportsWithoutResultsAreBounded", 0},
	{"a gateway that proposes counts as a node that is heard", "internal/replica/receive.go",
		edit("			return r.offered(m)\n", ""), "TestLeaderNotesNothingOfGatewaysThatComeAndGo", 0},
	{"a gateway stays for long with a home that hears no leader", homesFile,
		edit("g.ticks-h.ledAt >= patience,", "g.ticks-h.ledAt >= 2*patience,"), "TestGatewayLeavesAHomeThatIsCutOff", 0},
	{"a home that is behind keeps queries", queriesFile,
		edit("if c.call.end != nil && !c.call.ended && c.index", "if c.call.end == nil && c.index"), "TestQueriesFindAHomeThatIsNotBehind", 0},
	{"a home that nobody hears keeps queries", queriesFile,
		edit("		if p.end != nil && r.home.heardOf", "		if false && r.home.heardOf"), "TestQueriesFindAHomeThatIsHeard", 0},
	{"a leader does not say that it has a batch that comes again", inboxFile,
		edit("	case applied && i.leads() && ", "	case false && "), "TestGatewayDoesNotComeBackToAHomeThatIsBehind", 0},
	{"a gateway comes back at once to a home that is behind", homesFile,
		edit("		g.restless = g.ticks + 20*patience // or", "		// or"), "TestGatewayDoesNotComeBackToAHomeThatIsBehind", 0},
	{"a gateway stays with a home that declines its queries", homesFile,
		edit("h.declines > 0 && g.ticks", "h.declines > 1<<40 && g.ticks"), "TestQueriesFindAHomeThatIsNotBehind", 0},
	{"a gateway drains for ever", homesFile,
		edit("g.ticks+20*patience, g.ticks+2, 0\n", "g.ticks+20*patience, g.ticks+20*patience, 0\n"), "TestGatewayLosesNoResultByAMove", 0},
	{"a batch is made anew for another leader, beside the one under way", outboxFile,
		edit("	if _, term := o.around.leader(); b.term != term {\n		return false // likewise\n	}\n", "	if _, term := o.around.leader(); b.term != term {\n		b.closed()\n		return true\n	}\n"), "", brief},
	{"batches wait for a round that has ended", inboxFile,
		edit("		i.round = 0\n", ""), "TestBatchesOfOthersWaitForTheRoundUnderWayAtABusyLeader", 0},
	{"batches wait for a round at a leader with time", inboxFile,
		edit("i.round > 0 && i.busy() && ", "i.round > 0 && "), "TestBatchesOfOthersDoNotWaitFor", 0},
	{"a full queue waits for a round", inboxFile,
		edit(" && i.waiting < i.cfg.MaxBatchBytes", ""), "TestBatchesOfOthersDoNotWaitFor", 0},
	{"batches wait for the way to far members", inboxFile,
		edit("i.typical < i.moment() && ", ""), "TestBatchesOfOthersDoNotWaitFor", 0},
	{"a few calls wait for a tick because processors are busy", "internal/replica/facts.go",
		edit("max(min(f.cfg.Tick, busyEvery), eagerEvery)", "max(f.cfg.Tick, eagerEvery)"), "TestBatchesWaitForEachOther", 0},
	{"a gateway waits for the clients of all batches so far", fatesFile,
		edit("				if o.now >= o.gathersUntil() {\n					o.expected = 0 // the others may have gone\n				}\n", ""), "TestCrowdAtAGatewayGathers", 0},
	{"of a large crowd at a gateway the rest leaves one by one", outboxFile,
		edit("max(0, o.expected-n)", "0"), "TestCrowdAtAGatewayGathers", 0},
	{"a large crowd at a gateway waits for a larger one", outboxFile,
		edit("min(o.expected, largeCrowd)", "o.expected"), "TestCrowdAtAGatewayGathers", 0},
	{"a gateway has a few clients wait for each other", outboxFile,
		edit(" && o.expected > crowd", ""), "TestCrowdAtAGatewayGathers", 0},
	{"two starts with a clock that was set back have one boot", outboxFile,
		edit("newest + 1 + o.cfg.Boot%bootSpread", "newest + 1"), "TestStartsWithAClockThatWasSetBackAreToldApart", 0},
	{"the stream ends of the gateway that takes least room", homeFile,
		edit("cmp.Compare(a.keeps(), b.keeps())", "cmp.Compare(b.keeps(), a.keeps())"), "TestGatewayThatAcknowledgesNothingLosesItsOwnStream", 0},
	{"a snapshot that waits counts as a heartbeat", "internal/replica/stages.go",
		edit("if n += size; len(b.Responses)", "if len(b.Responses)"), "TestMessageCountsWithAllItsBytes", 0},
	{"what has no size of its own counts as a heartbeat", "internal/replica/stages.go",
		edit("	return max(head, m.Size())\n", "	return head\n"), "TestMessageCountsWithAllItsBytes", 0},
	{"a gateway waits for fewer than wait already", fatesFile,
		edit("max(o.expected, len(o.queue))+len(b.calls)", "len(b.calls)"), "TestCrowdAtAGatewayGathers", 0},
	{"what a message wants done before a host's loop begins ends the host", "rawnode/host.go",
		edit("	h.goroutines.Add(1) // the loop", "	// the loop"), "TestHostIsAskedBeforeItsLoopBegins", 0},
	{"a gateway proposes what is for members", inboxFile,
		edit("		if i.cfg.AdmitFromGateway == nil {\n", "		if i.cfg.AdmitFromGateway == nil || true {\n"), "TestGatewayProposesNothingThatIsForMembers", 0},
	{"a gateway goes at once from a home that is about to stop", homeFile,
		edit("	case !goesOn:\n", "	case true:\n"), "TestGatewayLosesNoResultOfAHomeThatStops", 0},
	{"a home that stops waits for a silent gateway without end", homeFile,
		edit("	if h.closed && h.ticks-h.since > ", "	if h.closed && h.ticks-h.since > 1<<40+"), "TestGatewayLosesNoResultOfAHomeThatStops", 0},
	{"a host that stops waits for queries of gateways", "rawnode/stop.go",
		edit("	h.inbox.post((*replica.Replica).TurnGatewaysAway)\n", ""), "TestStopWaitsForNoQueryOfAGateway", 0},
}

// compartments returns the bugs of gateways, names and zones.
func compartments() []mutate.Mutant {
	bugs := slices.Concat(gateways, named, zoned, readers)
	list := mutantsOf(bugs)
	for i, b := range bugs {
		if b.by == "" {
			list[i].Tests = "rafttest/nodes"
			list[i].Stages = [][]string{{"-test.run=^TestGatesBrief$", fmt.Sprintf("-brief-gate-seeds=%d", b.within), "-test.timeout=20m"}}
		}
	}
	return list
}
