// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Files in which bugs of catching up stand.
const (
	catchUpFile = "internal/catchup/budget.go"
	sourceFile  = "rawnode/fetch_out.go"
	takerIn     = "rawnode/fetch_in.go"
	fetchFile   = "internal/fetch/receiver.go"
	laggardFile = "internal/replica/catchingup.go"
	urgencyFile = "internal/replica/urgency.go"
	askFile     = "raft/internal/coding/messages.go"
	pullFile    = "gossip/puller.go"
)

// catchUps is the bugs of the budget in which groups catch up, by snapshots and from the log.
var catchUps = []bug{
	{"a member that was away waits for its next tick", askFile,
		edit("if unpushed && ", "if unpushed && c.ticks < 0 && "), "TestMemberThatWasAwayAsksBeforeItsNextTick", 0},
	{"all entries are asked of the same members", pullFile,
		edit("rotate(holders, int(index%uint64(len(holders))))", "rotate(holders, 0)"), "TestAllLinksSendToTheNodeThatWasAway", 0},
	{"each append is a question for units", askFile,
		edit("if unpushed && c.wants.puller.Idle() {", "if unpushed {"), "TestMemberThatWasAwayAsksBeforeItsNextTick", 0},
	{"urgency does not count", catchUpFile,
		edit("cmp.Compare(a.rank(), b.rank()), ", ""), "TestMostUrgentCatchesUpFirst", 0},
	{"the bytes that are left do not count", catchUpFile,
		edit(", cmp.Compare(uint64(a.left)-1, uint64(b.left)-1))", ")"), "TestMostUrgentCatchesUpFirst", 0},
	{"a snapshot of unknown size is the smallest", catchUpFile,
		edit("cmp.Compare(uint64(a.left)-1, uint64(b.left)-1)", "cmp.Compare(a.left, b.left)"), "TestMostUrgentCatchesUpFirst", 0},
	{"the oldest has no turn", catchUpFile,
		edit("l.passed >= patience-1", "l.passed >= 1<<40"), "TestCatchUpInDrawnOrders", 0},
	{"a turn from the spare part counts against the oldest", catchUpFile,
		edit("	} else if from == &l.common {\n", "	} else if from != nil && l.passed > 0 {\n"), "TestCatchUpInDrawnOrders", 0},
	{"nothing is spared for the urgent", catchUpFile,
		edit("p.rank() == wire.UrgencyEdge && l.spare.fits(p.want)", "p.rank() == wire.UrgencyEdge && l.spare.fits(p.want<<40)"), "TestUrgentSnapshotHasRoomBesideAllOthers", 0},
	{"all take from the spare part", catchUpFile,
		edit("p.rank() == wire.UrgencyEdge && l.spare.fits(p.want)", "l.spare.fits(p.want)"), "TestUrgentSnapshotHasRoomBesideAllOthers", 0},
	{"spare bytes come back to all", catchUpFile,
		edit("	spare := min(bytes, p.spare)\n", "	spare := min(bytes, p.spare, 0)\n"), "TestUrgentSnapshotHasRoomBesideAllOthers", 0},
	{"a window that is larger than the budget never goes", catchUpFile,
		edit("	if l.common.fits(p.want) || l.common.used == 0 {\n", "	if l.common.fits(p.want) {\n"), "TestWindowLargerThanTheBudgetGoesAlone", 0},
	{"the bytes of a place that leaves are lost", catchUpFile,
		edit("	l.give(p, p.held)\n", ""), "TestCatchUpIsSharedByGoroutines", 0},
	{"a place that leaves goes on waiting", catchUpFile,
		edit("	l.give(p, p.held)\n	l.forget(p)\n", "	l.give(p, p.held)\n"), "TestCatchUpInDrawnOrders", 0},
	{"nothing bounds the bytes", catchUpFile,
		edit("return bytes <= p.size-p.used", "return bytes >= 0"), "TestCatchUpInDrawnOrders", 0},
	{"a source takes no bytes", sourceFile,
		edit("asks := ok && number >= sv.granted\n", "asks := ok && number > sv.granted\n"), "TestSourceServesTheMostUrgentGroupFirst", 0},
	{"a source does not remember the urgency", sourceFile,
		edit("	s.asked[from] = asked{f.Stream, f.Urgency}\n", ""), "TestSourceServesTheMostUrgentGroupFirst", 0},
	{"what was taken stays under way", sourceFile,
		edit("	sv.room.give(base - before)\n", "	_ = base - before\n"), "TestSourceServesTheMostUrgentGroupFirst", 0},
	{"a stream that ends keeps its bytes", sourceFile,
		edit("	sv.room.leave()\n", ""), "TestSourceServesTheMostUrgentGroupFirst", 0},
	{"a stream that waits is silent", sourceFile,
		edit("			s.h.in.answer(sv.peer, sv.stream, nil)\n", ""), "TestSourceServesTheMostUrgentGroupFirst", 0},
	{"a source without room takes all", sourceFile,
		edit("r.Leader() != h.cfg.Replica.ID && !h.cfg.CatchUp", "r.Leader() > 1<<40 && !h.cfg.CatchUp"), "TestSourceServesTheMostUrgentGroupFirst", 0},
	{"a member that restarts waits for its own streams", sourceFile,
		edit("key.stream < f.Stream", "key.stream > f.Stream"), "TestMemberThatAsksAnewGivesItsRoomBack", 0},
	{"a stream waits for a member that is silent", sourceFile,
		edit("			if s.patience(sv) <= 0 {\n				return errIdle\n			}\n", ""), "TestSilentMemberLeavesTheQueue", 0},
	{"chunks that are sent again bring room for others", sourceFile,
		edit("	if asks && !waits {\n", "	if ok && !waits {\n"), "TestRoomIsForWhatWasNotTaken", 0},
	{"a small state holds a window", sourceFile,
		edit("		sv.room.give(sv.granted - whole)\n", ""), "TestSmallStateHoldsNoWindow", 0},
	{"a node takes any number of snapshots at a time", takerIn,
		edit("	if f.closed {\n		return true\n	}\n	if f.place == nil {", "	if !f.closed {\n		return true\n	}\n	if f.place == nil {"), "TestManyGroupsCatchUpWithinOneBudget", 0},
	{"a place is kept when the snapshot is restored", takerIn,
		edit("	if !f.recv.Busy() {\n		left, f.place", "	if f.recv == nil {\n		left, f.place"), "TestManyGroupsCatchUpWithinOneBudget", 0},
	{"a place that there is now is not used", takerIn,
		edit("				recv.Placed(now)\n", ""), "TestManyGroupsCatchUpWithinOneBudget", 0},
	{"an offer does not wait for its place", fetchFile,
		edit("	if r.on.Place(r.urgent) {\n", "	if r.on.Place(r.urgent) || true {\n"), "TestOfferWaitsForAPlace", 0},
	{"a later leader does not take an offer over that waits", fetchFile,
		edit("		case r.stage == waiting:\n			r.place(now)\n", ""), "TestOfferWaitsForAPlace", 0},
	{"a source that lives is given up", fetchFile,
		edit("	case r.stage == fetching && st.OK:\n		r.heard = now\n", "	case r.stage == fetching && st.OK:\n"), "TestSourceThatLivesIsWaitedFor", 0},
	{"the word of another member counts as the source's", fetchFile,
		edit("	case r.stage == fetching && from != r.source:\n", ""), "TestSourceThatLivesIsWaitedFor", 0},
	{"a follower that the group needs waits for the budget", laggardFile,
		edit("return l.needed || c.takeWindow", "return c.takeWindow"), "TestMemberThatTheGroupNeedsDoesNotWaitForTheBudget", 0},
	{"a member that nobody hears counts as one that could vote", laggardFile,
		edit(" && c.reachable(id):\n			complete", ":\n			complete"), "TestMemberThatTheGroupNeedsDoesNotWaitForTheBudget", 0},
	{"missed entries take nothing", laggardFile,
		edit("	case l.left > 0:\n		l.left -= int64(bytes)\n", "	case l.left > 0:\n		l.left -= int64(bytes) >> 40\n"), "TestMissedEntriesUnderWayAreWithinTheBudget", 0},
	{"what is acknowledged stays under way", laggardFile,
		edit("	c.budget.Give(l.place, bytes-over)\n", "	_ = over\n"), "TestMissedEntriesUnderWayAreWithinTheBudget", 0},
	{"a turn waits for the next heartbeat", leadingFile,
		edit("				r.core.ResumeAppends(to)\n", ""), "TestMemberThatTheGroupNeedsDoesNotWaitForTheBudget", 0},
	{"a follower that acknowledges nothing keeps its bytes", laggardFile,
		edit("c.ticks-l.since > uint64(", "c.ticks-l.since > 1<<40+uint64("), "TestMemberThatGetsNoFurtherGivesItsBytesBack", 0},
	{"entries that are sent again count twice", laggardFile,
		edit("	l.lost(next)\n", ""), "TestEntriesThatAreSentAgainCountOnce", 0},
	{"a host that stops keeps what its followers have", laggardFile,
		edit("	c.clear()\n	c.budget, ", "	c.budget, "), "TestMemberThatGetsNoFurtherGivesItsBytesBack", 0},
	{"the member counts itself among those that are left", urgencyFile,
		edit("id != of && ", ""), "TestUrgencyCountsWhatIsLeftOfTheQuorum", 0},
	{"the larger half of a joint configuration counts", urgencyFile,
		edit("conf.GetVoters(), conf.GetVotersOutgoing()", "conf.GetVoters()"), "TestUrgencyCountsWhatIsLeftOfTheQuorum", 0},
}
