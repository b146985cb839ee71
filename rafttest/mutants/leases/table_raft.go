// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// raftTable is the bugs in how package raft goes by the rules.
var raftTable = []bug{
	{rule: "L5", what: "in Raft, votes do not heed promises", file: "raft/extension_both.go",
		edits: edit("	return x.leases.MayVote(m) && x.extension", "	return x.extension"), by: "TestPromisesBindVotes"},
	{rule: "L5", what: "in Raft, votes at the leader's wish do not heed promises", file: "raft/extension_both.go",
		edits: edit("	return x.leases.MayVote(m) && x.extension", "	return (wished || x.leases.MayVote(m)) && x.extension"), by: "TestPromisesBindVotes"},
	{rule: "L5", what: "in Raft, a node campaigns with promises out", file: "raft/extension_both.go",
		edits: edit("func (x *both) MayRun() bool { return x.leases.MayRun() && x.extension.MayRun() }\n", ""), by: "TestPromisesBindVotes"},
	{rule: "L9", what: "in Raft, every node starts as if it were new", file: "raft/leases_config.go",
		edits: edit("r.term == 0 && r.vote == None)", "true)"), by: "TestRestartedNodeWaitsBeforeItVotes"},
	{rule: "L11", what: "in Raft, a term counts as durable at once", file: "raft/internal/leasing/leasing.go",
		edits: edit("	x.node.Turned(x.now(), t)\n", "	x.node.Turned(x.now(), t)\n	x.node.TermDurable(t.Term)\n"), by: "TestNothingIsGrantedBeforeTheTermIsOnDisk"},
	{rule: "L14", what: "in Raft, commits do not wait for responders", file: "raft/extension_both.go",
		edits: edit("	return x.extension.Committable(x.leases.Committable(k))", "	return x.extension.Committable(k)")},
	{rule: "L14", what: "in Raft, what a member refused counts as acknowledged", file: "raft/internal/leasing/messages.go",
		edits: edit("m.GetTerm() == x.term && !m.GetReject() && m.GetIndex() <= x.log.Last().Index", "m.GetTerm() == x.term && m.GetIndex() <= x.log.Last().Index")},
	{rule: "L15", what: "in Raft, responders are named though voters have no leases", file: "leases/lead.go",
		edits: edit(" && !n.members.joint() && n.votersHaveLeases(now)", " && !n.members.joint()"), by: "TestNobodyIsNamedWhileVotersHaveNoLeases"},
	{rule: "L17", what: "in Raft, the configuration changes with a roster in use", file: "raft/extension_both.go",
		edits: edit("	if err := x.leases.MayChange(); err != nil {\n		return err\n	}\n", ""), by: "TestSecondChangeIsRefusedWhileOneWaits"},
	{rule: "L17", what: "in Raft, a responder does not hear of another configuration", file: "raft/extension_both.go",
		edits: edit("	x.leases.Switched()\n", ""), by: "TestChangeWaitsUntilNobodyIsNamed"},
	{rule: "L17", what: "in Raft, a change that is reported as applied counts as in force", file: "raft/internal/leasing/changes.go",
		edits: edit("x.raft.Electorate().InForceTo(x.log.Applied()); to", "x.log.Applied(); to"), by: "TestLeaderThatIsLeftAloneGoesOn"},
	{rule: "L18", what: "in Raft, a read that must go elsewhere is forgotten", file: "raft/internal/leasing/leasing.go",
		edits: edit("	x.cutReads(from)\n", ""), by: "TestHeldReadGoesToTheLeaderWhenItsEntryIsCut"},
	{rule: "L18", what: "in Raft, a responder reads at its commit index", file: "raft/internal/leasing/reads.go",
		edits: edit("	r.index, r.local = uint64(i), true\n", "	r.index, r.local = min(uint64(i), x.log.Committed()), true\n")},
	{rule: "L20", what: "in Raft, a responder releases what is not on its own disk", file: "raft/internal/leasing/notes.go",
		edits: edit("	durable := min(x.matched, stored)\n", "	durable := max(min(x.matched, stored), x.matched)\n")},
	{rule: "L21", what: "in Raft, notes leave before what they vouch for is on disk", file: "raft/internal/leasing/notes.go",
		edits: edit("extend.Effect{Do: extend.Vouch, Msg: m, Holds: x.matched}", "extend.Effect{Do: extend.Send, Msg: m}")},
	{rule: "L23", what: "in Raft, the leader confirms reads at its commit index although notes are on", file: "raft/extension_both.go",
		edits: edit("return x.leases.LeaderIndex(m) }", "return x.extension.LeaderIndex(m) }"), by: "TestLeaderWithoutALeaseReadsWhatNotesMayHaveReleased"},
	{rule: "L23", what: "in Raft, the leader answers a read before its index is committed", file: "raft/extension_both.go",
		edits: edit("return x.leases.HoldRead(m, index) }", "return false }"), by: "TestLeaderWithoutALeaseReadsWhatNotesMayHaveReleased"},
	{rule: "L23", what: "in Raft, reads that a leader holds are forgotten when it steps down", file: "raft/internal/leasing/leasing.go",
		edits: edit("	if stepsDown {\n		x.cutReads(0)\n	}\n", "	if stepsDown {\n		x.reads = nil\n	}\n"), by: "TestReadThatALeaderHoldsGoesToTheNextLeader"},
}
