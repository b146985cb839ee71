// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Files in which bugs of late disks stand.
const (
	lateNode = "internal/replica/late.go"
	stalled  = "internal/replica/stalled.go"
	lateRaft = "raft/late.go"
	early    = "raft/early.go"
)

// late is the bugs of nodes whose disks hang, or are slow.
var late = []bug{
	{"a late disk is none", lateNode,
		edit("waited > uint64(electionTick)", "waited > 1<<40"), "TestLeaderWithLateDiskHandsOver", 0},
	{"a late leader does not step down", stalled,
		edit("				s.fallSilent()\n", ""), "TestLeaderWithLateDiskFallsSilentIfNobodyTakesOver", 0},
	{"a late leader that steps down sends heartbeats", stalled,
		edit("	case pb.MsgApp, pb.MsgHeartbeat, ", "	case "), "TestLeaderWithLateDiskFallsSilentIfNobodyTakesOver", 0},
	{"a core waits for a snapshot that its silent leader has not sent", "internal/replica/sending.go",
		edit("			r.core.ReportSnapshot(m.GetTo(), false)\n", ""), "TestSnapshotThatASilentLeaderDidNotSendIsSentLater", 0},
	{"a follower that cannot write takes all that it is sent", lateNode,
		edit("!i.cfg.Budget.has(bytes)", "!i.cfg.Budget.has(bytes) && bytes < 0"), "TestFollowerThatCannotWriteKeepsToItsBudget", 0},
	{"what was written takes from the budget still", lateNode,
		edit("	i.cfg.Budget.give(bytes)\n", ""), "TestFollowerThatCannotWriteKeepsToItsBudget", 0},
	{"a node with a late disk campaigns in the end", stalled,
		edit("(s.late() || s.ticks-s.ledAt <= uint64(lastResort*s.cfg.ElectionTick))", "s.ticks-s.ledAt <= uint64(lastResort*s.cfg.ElectionTick)"), "TestNodeWithLateDiskNeverCampaigns", 0},
	{"a late leader goes although nobody is ahead", stalled,
		edit("			return // nobody is known to do better\n", ""), "TestLeaderStaysIfNoMajorityIsFaster", 0},
	{"a disk that gets on is late", lateNode,
		edit("!waits || ended != l.ended", "!waits"), "TestDiskThatGetsOnIsNotLate", 0},
	{"a write of another group moves nobody", stalled,
		edit("waits = ended+e, waits || w", "waits = ended+e, waits || w && e == 0"), "TestLateWriteOfAnotherGroupMovesIdleLeader", 0},
	{"a core with late writes does not step down", lateRaft,
		edit("		l.becomeFollower(l.term, None)\n		return false\n", ""), "TestLateLeaderStepsDownIfNobodyTakesOver", 0},
	{"a core with late writes hands over to the lowest id", lateRaft,
		edit("if ahead[id] && !pr.IsLearner && (pr.Match > best || pr.Match == best && id < heir) {", "if id != l.id && (best == 0 || id < heir) {"), "TestLateLeaderHandsOver", 0},
	{"a core with late writes goes although nobody is ahead", lateRaft,
		edit("	if !outrun {\n		return true\n	}\n", "	_ = outrun\n"), "TestLateLeaderStaysIfNoMajorityIsAhead", 0},
	{"a core with late writes campaigns", "raft/candidate.go",
		edit("	case r.late():\n", "	case r.late() && r.term == 0:\n"), "TestLateFollowerDoesNotCampaign", 0},
	{"a core with late writes takes proposals", "raft/propose.go",
		edit("	case l.late():\n", "	case l.late() && l.term == 0:\n"), "TestLateLeaderStaysIfNoMajorityIsAhead", 0},
	{"a core without the setting goes, too", lateRaft,
		edit("return r.cfg.YieldWhenLate && int(", "return int("), "TestLateLeaderStaysByDefault", 0},
	{"early applies have no bound", early,
		edit("e.bytes+size > e.limit", "e.bytes+size > e.limit<<40"), "TestEarlyAppliesKeepTheirBound", 0},
	{"what is written is early still", early,
		edit("e.bytes -= encodingSize(ents[:min(t.base.Index, e.index)-from])", "_ = ents"), "TestEarlyAppliesKeepTheirBound", 0},
	{"what a snapshot replaces is early still", "raft/log.go",
		edit("	l.node.unwritten().forget()\n", ""), "TestSnapshotTakesThePlaceOfEarlyEntries", 0},
	{"a core without the setting applies early, too", early,
		edit("if e == nil || l.committed", "if e == nil {\n\t\treturn l.committed\n\t}\n\tif l.committed"), "TestLeaderAppliesWhatAMajorityHasStoredBeforeItsOwnDiskHas", 0},
	{"a log that ends before its state is left alone", "internal/replica/prepare.go",
		edit("	next := &pb.HardState{", "	if cfg.Applied > last {\n\t\treturn nil, nil\n\t}\n\tnext := &pb.HardState{"), "TestLogBeginsAnewAtAStateThatIsAhead", 0},
	{"a state counts as durable that is ahead of its log", "internal/replica/retain.go",
		edit("k.emitted.index, stored)", "k.emitted.index)"), "TestWhatCountsAsDurableIsInTheLog", 0},
	{"what is stored is not counted as durable", "internal/replica/appending.go",
		edit("	r.countDurable()\n	r.deliver", "	r.deliver"), "TestWhatCountsAsDurableIsInTheLog", 0},
	{"only a write's end counts as not stored", "internal/replica/writes.go",
		edit("first: a.Write.Entries[0].GetIndex()", "first: a.Write.Entries[len(a.Write.Entries)-1].GetIndex() + 1"), "TestStoredEndsBeforeTheFirstWriteThatWaits", 0},
	{"a snapshot is restored beside a log that has nothing", "internal/replica/writes.go",
		edit("w.blank && w.durable == 0", "w.blank && w.handedOut == 0"), "TestNothingIsRestoredBeforeTheLogHasAnything", 0},
	{"a host does not wait for the writes that the one before has left", "storage/group.go",
		edit("for g.waits > 0 && e.refuse == nil {", "for g.waits > 1<<30 && e.refuse == nil {"), "TestHostBehindAnotherWaitsForItsWrites", 0},
}
