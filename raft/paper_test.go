// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// Raft as a specification: one test a rule of Ongaro's thesis, with its section.
// Read from top to bottom, the tests say what Raft is. The group that they drive
// is in paper_group_test.go: nodes with disks of their own, whose messages wait
// until a test delivers them, and who hear of time by tick only.

// Terms (3.3).

func TestPaperLaterTermMakesAnyNodeAFollower(t *testing.T) {
	for _, role := range []raft.StateType{raft.StateFollower, raft.StateCandidate, raft.StateLeader} {
		g := paper(t, 3)
		if role != raft.StateFollower {
			require.NoError(t, g.nodes[1].Campaign())
		}
		if role == raft.StateLeader {
			g.deliver()
		}
		g.work()
		require.Equal(t, role, g.role(1))
		g.say(pb.MsgApp, 2, 9, behind(1, 1))
		require.Equal(t, raft.StateFollower, g.role(1), "was %s", role)
		require.EqualValues(t, 9, g.term(1))
		require.EqualValues(t, 2, g.nodes[1].BasicStatus().Lead)
	}
}

func TestPaperMessageOfEarlierTermChangesNothing(t *testing.T) {
	g := paper(t, 3)
	g.say(pb.MsgApp, 2, 5, behind(1, 1), entries(5))
	before := g.log(1)
	g.say(pb.MsgApp, 3, 4, behind(1, 1), entries(4, 4), committing(3))
	require.Equal(t, before, g.log(1))
	require.EqualValues(t, 5, g.term(1))
	require.EqualValues(t, 1, g.commit(1))
}

// Leader election (3.4).

func TestPaperFollowerThatHearsNothingCampaigns(t *testing.T) {
	g := paper(t, 3)
	g.tick(1, 9)
	require.Equal(t, raft.StateFollower, g.role(1))
	g.tick(1, 1)
	g.work()
	require.Equal(t, raft.StateCandidate, g.role(1))
	require.EqualValues(t, 2, g.term(1), "a campaign begins a term")
	require.EqualValues(t, 1, g.vote(1), "and the candidate votes for itself")
	require.Len(t, g.sent(pb.MsgVote), 2, "and asks everybody else")
}

func TestPaperHeartbeatsKeepFollowersFromCampaigning(t *testing.T) {
	g := paper(t, 3)
	for range 5 {
		g.tick(1, 9)
		g.say(pb.MsgHeartbeat, 2, 2)
		require.Equal(t, raft.StateFollower, g.role(1))
	}
}

func TestPaperMajorityOfVotesWins(t *testing.T) {
	for _, c := range []struct {
		voters  uint64
		granted []uint64
		leads   bool
	}{
		{1, nil, true}, {2, nil, false}, {2, []uint64{2}, true},
		{3, []uint64{2}, true}, {4, []uint64{2}, false}, {4, []uint64{2, 3}, true},
		{5, []uint64{2}, false}, {5, []uint64{2, 3}, true}, {5, []uint64{2, 2, 2}, false},
	} {
		g := paper(t, c.voters)
		require.NoError(t, g.nodes[1].Campaign())
		g.work()
		for _, id := range c.granted {
			g.say(pb.MsgVoteResp, id, 2)
		}
		require.Equal(t, c.leads, g.role(1) == raft.StateLeader, "%d voters, votes of 1 and %v", c.voters, c.granted)
	}
}

func TestPaperOneVoteATermFirstComeFirstServed(t *testing.T) {
	g := paper(t, 3)
	for _, from := range []uint64{2, 3, 2} {
		g.say(pb.MsgVote, from, 2, behind(1, 1))
	}
	require.EqualValues(t, 2, g.vote(1))
	var granted []bool
	for _, m := range g.sent(pb.MsgVoteResp) {
		granted = append(granted, !m.GetReject())
	}
	require.Equal(t, []bool{true, false, true}, granted, "the vote for 2 is repeated, as the answer may have been lost")
}

func TestPaperCandidateYieldsToLeaderOfItsTerm(t *testing.T) {
	g := paper(t, 3)
	require.NoError(t, g.nodes[1].Campaign())
	g.say(pb.MsgApp, 2, 2, behind(1, 1))
	require.Equal(t, raft.StateFollower, g.role(1))
	require.EqualValues(t, 2, g.nodes[1].BasicStatus().Lead)
	require.EqualValues(t, 1, g.vote(1), "the vote of the term stays given")
}

func TestPaperSplitVoteEndsInANewTerm(t *testing.T) {
	g := paper(t, 4)
	require.NoError(t, g.nodes[1].Campaign())
	require.NoError(t, g.nodes[2].Campaign())
	g.deliver(func(m *pb.Message) bool { return m.GetFrom()+m.GetTo() == 5 }) // 1 hears 3, 2 hears 4
	require.Equal(t, raft.StateCandidate, g.role(1))
	require.Equal(t, raft.StateCandidate, g.role(2))
	g.tick(1, 10)
	g.deliver()
	require.Equal(t, raft.StateLeader, g.role(1))
	require.EqualValues(t, 3, g.term(1))
}

// Election restriction (3.6.1): a voter refuses a candidate whose log is less up
// to date than its own. The later last term is more up to date, then the longer
// log.
func TestPaperVotesGoToLogsAtLeastAsUpToDate(t *testing.T) {
	for _, c := range []struct {
		index, term uint64
		granted     bool
	}{
		{3, 3, true}, {4, 3, true}, {2, 3, false}, {2, 4, true}, {9, 2, false},
	} {
		g := paper(t, 3)
		g.say(pb.MsgApp, 2, 3, behind(1, 1), entries(2, 3)) // the log ends with 3/3
		g.say(pb.MsgVote, 3, 5, behind(c.index, c.term))
		answer := g.sent(pb.MsgVoteResp)
		require.Len(t, answer, 1)
		require.Equal(t, c.granted, !answer[0].GetReject(), "log of the candidate ends with %d/%d", c.index, c.term)
	}
}

// Log replication (3.5).

func TestPaperEntryIsCommittedOnceAMajorityHoldsIt(t *testing.T) {
	for n := uint64(1); n <= 5; n++ {
		g := paper(t, n)
		g.elect(1)
		g.propose(1, "x")
		var acks uint64 = 1
		for _, m := range g.sent(pb.MsgApp) {
			want := uint64(3)
			if acks <= n/2 {
				want = 2
			}
			require.Equal(t, want, g.commit(1), "%d of %d hold the entry", acks, n)
			require.NoError(t, g.nodes[m.GetTo()].Step(m))
			g.deliver(only(pb.MsgAppResp))
			acks++
		}
		require.EqualValues(t, 3, g.commit(1))
	}
}

func TestPaperFollowersApplyInOrderWhatTheyLearnIsCommitted(t *testing.T) {
	g := paper(t, 3)
	g.elect(1)
	for _, c := range []string{"a", "b", "c"} {
		g.propose(1, c)
	}
	g.deliver()
	for id := range g.nodes {
		require.Equal(t, []string{"a", "b", "c"}, g.nodes[id].applied, "node %d", id)
	}
}

// The consistency check: an append is taken only where the logs meet, and a
// follower refuses one behind an entry that it has not.
func TestPaperAppendIsTakenOnlyWhereLogsMeet(t *testing.T) {
	for _, c := range []struct {
		name        string
		index, term uint64
		taken       bool
	}{
		{"the same last entry", 3, 2, true}, {"an earlier entry", 2, 2, true},
		{"an entry beyond the end", 4, 2, false}, {"another term there", 3, 3, false},
	} {
		g := paper(t, 3)
		g.say(pb.MsgApp, 2, 2, behind(1, 1), entries(2, 2))
		g.sent(pb.MsgAppResp)
		g.say(pb.MsgApp, 3, 4, behind(c.index, c.term), entries(4))
		answer := g.sent(pb.MsgAppResp)
		require.Len(t, answer, 1, c.name)
		require.Equal(t, c.taken, !answer[0].GetReject(), c.name)
	}
}

// Figure 3.6 of the thesis: whatever a follower lacks or has too much, the
// leader of term 8 brings its log to agree, and its own never changes.
func TestPaperLeaderBringsEveryLogToAgree(t *testing.T) {
	leader := []uint64{1, 1, 1, 4, 4, 5, 5, 6, 6, 6}
	for name, terms := range map[string][]uint64{
		"a lacks one":                 {1, 1, 1, 4, 4, 5, 5, 6, 6},
		"b lacks many":                {1, 1, 1, 4},
		"c has one more":              {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6},
		"d has two more":              {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7},
		"e lacks some and has others": {1, 1, 1, 4, 4, 4, 4},
		"f has terms of its own":      {1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := paper(t, 3)
			for id, log := range map[uint64][]uint64{1: leader, 2: terms} {
				m := &pb.Message{Index: new(uint64(1))}
				entries(log...)(m)
				require.NoError(t, g.nodes[id].disk.Append(m.Entries))
				require.NoError(t, g.nodes[id].disk.SetHardState(&pb.HardState{Term: new(uint64(7)), Commit: new(uint64(1))}))
				g.boot(id)
			}
			before := g.log(1)
			require.NoError(t, g.nodes[1].Campaign())
			g.work()
			g.say(pb.MsgVoteResp, 3, 8) // node 2 may refuse
			g.deliver(cut(3))
			require.Equal(t, before, g.log(1)[:len(before)], "a leader appends only")
			require.Equal(t, g.log(1), g.log(2))
			require.Equal(t, "12/8", g.log(1)[len(before)], "its first entry is of its term")
		})
	}
}

func TestPaperRepeatedAppendTruncatesNothing(t *testing.T) {
	g := paper(t, 3)
	g.say(pb.MsgApp, 2, 2, behind(1, 1), entries(2, 2, 2))
	g.say(pb.MsgApp, 2, 2, behind(1, 1), entries(2)) // late, or sent twice
	require.Equal(t, []string{"2/2", "3/2", "4/2"}, g.log(1))
}

// Committing entries of earlier terms (3.6.2, figure 3.7): a majority that holds
// an entry of an earlier term does not commit it; an entry of the leader's own
// term does, and all before it.
func TestPaperOnlyEntriesOfTheOwnTermAreCountedForCommit(t *testing.T) {
	g := paper(t, 5)
	g.elect(1)
	g.propose(1, "of term 2")
	g.deliver(cut(3, 4, 5))                                 // 1 and 2 hold 3/2
	g.elect(5, cut(1, 2), only(pb.MsgVote, pb.MsgVoteResp)) // 5 leads term 3 with 3 and 4, and falls
	g.say(pb.MsgHeartbeat, 5, 3)                            // the last that is heard of it
	require.NoError(t, g.nodes[1].Campaign())
	g.deliver(cut(4, 5), only(pb.MsgVote, pb.MsgVoteResp))
	require.Equal(t, raft.StateLeader, g.role(1))
	term := g.term(1)
	g.say(pb.MsgAppResp, 3, term, func(m *pb.Message) { m.Index = new(uint64(3)) })
	g.say(pb.MsgAppResp, 2, term, func(m *pb.Message) { m.Index = new(uint64(3)) })
	require.EqualValues(t, 2, g.commit(1), "1, 2 and 3 hold 3/2: another leader could replace it yet")
	g.say(pb.MsgAppResp, 3, term, func(m *pb.Message) { m.Index = new(uint64(4)) })
	g.say(pb.MsgAppResp, 2, term, func(m *pb.Message) { m.Index = new(uint64(4)) })
	require.EqualValues(t, 4, g.commit(1))
}

// Crashes (3.7, 3.8).

func TestPaperVoteAndTermAreDurableBeforeTheAnswerLeaves(t *testing.T) {
	g := paper(t, 3)
	require.NoError(t, g.nodes[1].Step(&pb.Message{Type: pb.MsgVote.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)), Index: new(uint64(1)), LogTerm: new(uint64(1))}))
	rd := g.nodes[1].Ready()
	require.True(t, rd.MustSync)
	require.EqualValues(t, 2, rd.HardState.GetTerm())
	require.EqualValues(t, 2, rd.HardState.GetVote())
	require.Len(t, rd.Messages, 1, "in the Ready that has them written, to be sent after that")
	require.NoError(t, g.nodes[1].disk.SetHardState(rd.HardState))
	g.boot(1) // after the crash it remembers
	g.say(pb.MsgVote, 3, 2, behind(1, 1))
	answer := g.sent(pb.MsgVoteResp)
	require.Len(t, answer, 1)
	require.True(t, answer[0].GetReject())
}

func TestPaperRestartedFollowerGoesOnFromItsDisk(t *testing.T) {
	g := paper(t, 3)
	g.elect(1)
	g.propose(1, "a")
	g.deliver()
	g.boot(2)
	g.propose(1, "b")
	g.deliver()
	require.Equal(t, g.log(1), g.log(2))
	require.EqualValues(t, g.commit(1), g.commit(2))
}

// A leader writes to its own disk in parallel (10.2.1): it may commit an entry
// that a majority of others holds before its own disk does.
func TestPaperLeaderCountsItselfOnlyWhenItsDiskHoldsTheEntry(t *testing.T) {
	g := paper(t, 3)
	g.elect(1)
	g.propose(1, "x")
	rd := g.nodes[1].Ready() // not written yet
	require.Len(t, rd.Entries, 1)
	ack := func(from uint64) {
		require.NoError(t, g.nodes[1].Step(&pb.Message{Type: pb.MsgAppResp.Enum(), From: new(from), To: new(uint64(1)), Term: new(uint64(2)), Index: new(uint64(3))}))
	}
	ack(2)
	require.EqualValues(t, 2, g.commit(1), "one of three holds it")
	ack(3)
	require.EqualValues(t, 3, g.commit(1))
}

// Leadership transfer (3.10).

func TestPaperTransferSendsTimeoutNowOnceTheLogsAgree(t *testing.T) {
	g := paper(t, 3)
	g.elect(1, cut(2))
	g.propose(1, "x")
	g.deliver(cut(2))
	g.nodes[1].TransferLeader(2)
	require.ErrorIs(t, g.nodes[1].Propose([]byte("y")), raft.ErrProposalDropped, "the log must come to rest")
	require.Empty(t, g.sent(pb.MsgTimeoutNow), "node 2 lacks entries")
	g.tick(1, 1)
	g.deliver()
	require.Equal(t, raft.StateLeader, g.role(2))
	require.Equal(t, raft.StateFollower, g.role(1))
}

func TestPaperTransferThatTakesAnElectionTimeoutIsGivenUp(t *testing.T) {
	g := paper(t, 3)
	g.elect(1)
	g.nodes[1].TransferLeader(2)
	g.deliver(cut(2))
	g.tick(1, 10)
	g.propose(1, "x")
}

// Membership changes (chapter 4). As in upstream's library, a configuration is
// in force at a node once it has applied the entry, not from the append on.

func TestPaperSecondChangeIsRefusedWhileOneIsUnderWay(t *testing.T) {
	g := paper(t, 3)
	g.elect(1)
	add := func(id uint64) *pb.ConfChangeV2 {
		return &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: new(id)}}}
	}
	g.change(1, add(4))
	g.change(1, add(5)) // becomes an empty entry
	g.deliver()
	require.Contains(t, g.nodes[1].Status().Config.Learners, uint64(4))
	require.NotContains(t, g.nodes[1].Status().Config.Learners, uint64(5))
}

// Catching up (4.2.1): a learner is sent the log and counts for nothing.
func TestPaperLearnerCountsForNoQuorum(t *testing.T) {
	g := paper(t, 2)
	g.elect(1)
	g.change(1, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(3))}}})
	g.deliver()
	g.start(3, &pb.ConfState{Voters: []uint64{1, 2}})
	g.propose(1, "x")
	g.tick(1, 1)
	g.deliver(cut(2))
	require.Equal(t, g.log(1), g.log(3), "the learner holds it")
	require.Empty(t, g.nodes[1].applied, "one of two voters does: not committed")
	g.tick(3, 30)
	g.work()
	require.Equal(t, raft.StateFollower, g.role(3), "and it does not campaign")
}

// Joint consensus (4.3): while a joint configuration is in force, both halves
// must agree.
func TestPaperJointConfigurationNeedsBothMajorities(t *testing.T) {
	g := paper(t, 3)
	g.elect(1)
	g.change(1, &pb.ConfChangeV2{Transition: pb.ConfChangeTransitionJointExplicit.Enum(), Changes: []*pb.ConfChangeSingle{
		{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(4))}, {Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(5))},
		{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(2))}, {Type: pb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(3))},
	}})
	g.deliver()
	joint := g.nodes[1].Status().Config.Voters
	require.Len(t, joint[0], 3)
	require.Len(t, joint[1], 3)
	commit := g.commit(1)
	g.propose(1, "x")
	g.deliver() // 4 and 5 do not exist yet
	require.Equal(t, commit, g.commit(1), "1, 2 and 3 hold it: a majority of the old half only")
	for _, id := range []uint64{4, 5} {
		g.start(id, &pb.ConfState{Voters: []uint64{1, 2, 3}})
	}
	g.tick(1, 1)
	g.deliver()
	require.Greater(t, g.commit(1), commit)
}

// Disruptive servers (4.2.3): a voter that hears from its leader does not listen
// to candidates. CheckQuorum has it so.
func TestPaperVoterThatHearsItsLeaderIgnoresCandidates(t *testing.T) {
	g := paper(t, 3, func(c *raft.Config) { c.CheckQuorum = true })
	g.say(pb.MsgHeartbeat, 2, 2)
	g.say(pb.MsgVote, 3, 9, behind(9, 9))
	require.EqualValues(t, 2, g.term(1))
	require.Empty(t, g.sent(pb.MsgVoteResp))
	g.tick(1, 9)
	g.tick(1, 1)
	g.say(pb.MsgVote, 3, 9, behind(9, 9))
	require.EqualValues(t, 3, g.vote(1), "an election timeout later it does")
}

// Compaction (chapter 5): a follower that needs compacted entries is sent the
// snapshot.
func TestPaperFollowerBehindTheLogGetsTheSnapshot(t *testing.T) {
	g := paper(t, 3)
	g.elect(1, cut(3))
	g.propose(1, "a")
	g.deliver(cut(3))
	applied := g.nodes[1].BasicStatus().Applied
	_, err := g.nodes[1].disk.CreateSnapshot(applied, nil, []byte("a"))
	require.NoError(t, err)
	require.NoError(t, g.nodes[1].disk.Compact(applied))
	g.say(pb.MsgHeartbeatResp, 3, g.term(1)) // it is back
	g.deliver()
	require.Equal(t, []string{"snapshot a"}, g.nodes[3].applied)
	g.nodes[1].ReportSnapshot(3, raft.SnapshotFinish)
	g.propose(1, "b")
	g.tick(1, 1)
	g.deliver()
	require.Equal(t, []string{"snapshot a", "b"}, g.nodes[3].applied)
}

// Stepping down (6.2): with CheckQuorum a leader that hears from no majority for
// an election timeout leads no more, so its clients look elsewhere.
func TestPaperLeaderWithoutAQuorumStepsDown(t *testing.T) {
	g := paper(t, 3, func(c *raft.Config) { c.CheckQuorum = true })
	g.elect(1)
	g.tick(1, 10)
	g.deliver(cut(2, 3))
	require.Equal(t, raft.StateLeader, g.role(1), "both were heard from before")
	g.tick(1, 10)
	require.Equal(t, raft.StateFollower, g.role(1))
}

// Reads without a log entry (6.4): the leader answers once an entry of its term
// is committed, and a majority has answered a heartbeat sent after the read came.
func TestPaperReadIsConfirmedByAMajorityAskedAfterIt(t *testing.T) {
	g := paper(t, 3)
	g.elect(1)
	g.nodes[1].ReadIndex([]byte("r"))
	ask := g.nodes[1].Ready()
	require.Empty(t, ask.ReadStates)
	g.nodes[1].Advance(ask)
	require.NoError(t, g.nodes[2].Step(ask.Messages[0]))
	for _, answer := range g.sent(pb.MsgHeartbeatResp) {
		require.NoError(t, g.nodes[1].Step(answer))
	}
	states := g.nodes[1].Ready().ReadStates
	require.Len(t, states, 1, "nodes 1 and 2 are a majority")
	require.EqualValues(t, 2, states[0].Index, "the commit index when the read came")
}

func TestPaperNewLeaderAnswersNoReadBeforeItCommits(t *testing.T) {
	g := paper(t, 3)
	require.NoError(t, g.nodes[1].Campaign())
	g.deliver(only(pb.MsgVote, pb.MsgVoteResp))
	require.Equal(t, raft.StateLeader, g.role(1))
	g.nodes[1].ReadIndex([]byte("r"))
	require.Empty(t, g.sent(pb.MsgHeartbeat), "it may not know of all that is committed")
	g.deliver(only(pb.MsgHeartbeat, pb.MsgHeartbeatResp))
	require.Empty(t, g.nodes[1].reads)
	g.tick(1, 1)
	g.deliver() // its first entry is committed, and then the read is asked about
	require.Len(t, g.nodes[1].reads, 1)
	require.EqualValues(t, 2, g.nodes[1].reads[0].Index)
}

// Pre-votes (9.6): a node that could not win does not raise its term.
func TestPaperPreVoteKeepsTheTermWhereNobodyWouldVote(t *testing.T) {
	pre := func(c *raft.Config) { c.PreVote, c.CheckQuorum = true, true }
	g := paper(t, 3, pre)
	g.elect(1)
	term := g.term(1)
	g.tick(3, 40) // cut off
	g.work()
	require.Equal(t, raft.StatePreCandidate, g.role(3))
	require.Equal(t, term, g.term(3))
	g.deliver(cut(3))
	g.tick(1, 1)
	g.deliver()
	require.Equal(t, raft.StateFollower, g.role(3), "it hears the leader again, and nobody was disturbed")
	require.Equal(t, raft.StateLeader, g.role(1))
	require.Equal(t, term, g.term(1))
}
