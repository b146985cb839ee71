// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

func add(id uint64) *pb.ConfChangeSingle {
	return &pb.ConfChangeSingle{Type: pb.ConfChangeAddNode.Enum(), NodeId: &id}
}

func learn(id uint64) *pb.ConfChangeSingle {
	return &pb.ConfChangeSingle{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: &id}
}

// fresh adds a node that is no member yet, with coding or without.
func (g *group) fresh(id uint64, codes bool) {
	g.nodes[id] = &codingNode{id: id, storage: raft.NewMemoryStorage()}
	if codes {
		g.start(id)
	} else {
		g.startPlain(id)
	}
}

// cut has a host compact its log, with the members in force in the snapshot. What it
// sent of an older one did not help.
func (g *group) cut(ids ...uint64) {
	for _, id := range ids {
		n := g.nodes[id]
		if first, err := n.storage.FirstIndex(); err != nil || first > n.index {
			continue // nothing new
		}
		_, err := n.storage.CreateSnapshot(n.index, n.conf, encodeAll(n.applied))
		require.NoError(g.t, err)
		require.NoError(g.t, n.storage.Compact(n.index))
		n.rn.ReportSnapshot(4, raft.SnapshotFailure)
	}
}

// A way in leads to a configuration in which node 4 is a voter: it makes the node one,
// or a member and one that is not. enter proposes the last change.
type wayIn struct {
	prepare func(g *group, codes bool)
	change  []*pb.ConfChangeSingle
}

// waysIn are all ways to a vote.
var waysIn = map[string]wayIn{
	"simple change": {func(g *group, codes bool) { g.fresh(4, codes) }, []*pb.ConfChangeSingle{add(4)}},
	"joint change":  {func(g *group, codes bool) { g.fresh(4, codes) }, []*pb.ConfChangeSingle{add(4), remove(3)}},
	"promotion of a learner": {func(g *group, codes bool) {
		g.fresh(4, codes)
		g.change(1, learn(4))
		g.tick(30)
	}, []*pb.ConfChangeSingle{add(4)}},
	"promotion of a learner that took a snapshot": {func(g *group, codes bool) {
		g.fresh(4, codes)
		g.change(1, learn(4))
		g.cut(1)
		g.tick(30)
		require.Equal(g.t, g.nodes[1].index, g.nodes[4].index, "the learner is up to date")
		require.True(g.t, g.logIsPlain(4))
	}, []*pb.ConfChangeSingle{add(4)}},
	"promotion of a learner after a restart": {func(g *group, codes bool) {
		g.fresh(4, true)
		g.change(1, learn(4))
		g.cut(1)
		g.tick(30)
		g.propose(1, payload(2, 10))
		g.tick(3)
		require.True(g.t, g.nodes[1].rn.CodingStatus().Members[4].Capable)
		g.cut(4)
		if g.stop(4); codes {
			g.start(4)
		} else {
			g.startPlain(4)
		}
	}, []*pb.ConfChangeSingle{add(4)}},
}

// TestVoteIsForMembersThatReadEnvelopes: while a member may need a coded entry, a node
// that does not read them gets no vote, in whatever way; when none may, it does. A node
// that reads them gets it at once.
func TestVoteIsForMembersThatReadEnvelopes(t *testing.T) {
	for name, way := range waysIn {
		for _, codes := range []bool{true, false} {
			for _, hostChecks := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					g := newGroup(t, 3)
					if g.hostChecks = hostChecks; hostChecks {
						g = newHostChecked(t, 3)
					}
					g.elect(1)
					g.propose(1, payload(0, 1000))
					g.propose(1, payload(1, 10))
					g.tick(3)
					way.prepare(g, codes)
					leader := g.nodes[1]
					g.change(1, way.change...)
					g.tick(2)
					if codes {
						require.Contains(t, leader.conf.GetVoters(), uint64(4))
						return
					}
					waiting := leader.rn.CodingStatus().Waiting
					require.Contains(t, waiting, "[4] have not said that they read coded entries with a clear prefix of 0 bytes")
					before := leader.index
					g.tick(30)
					require.NotContains(t, leader.conf.GetVoters(), uint64(4))
					require.Empty(t, leader.conf.GetVotersOutgoing())
					if hostChecks {
						require.Equal(t, before, leader.index, "the change waits, as another may have been found to fit behind it")
						require.Equal(t, waiting, leader.rn.CodingStatus().Waiting)
					} else {
						require.Equal(t, before+1, leader.index, "an empty entry says that the change was refused")
						require.Empty(t, leader.rn.CodingStatus().Waiting)
					}

					g.cut(1, 2, 3) // nobody needs it any more
					g.tick(3)
					if !hostChecks {
						g.change(1, way.change...)
					}
					g.tick(30)
					require.Contains(t, leader.conf.GetVoters(), uint64(4))
					require.Empty(t, leader.conf.GetVotersOutgoing())
				})
			}
		}
	}
}

// TestChangeBehindARefusedOneHasItsVotersAsked: a host that keeps a change proposes it in the tick in which the change
// before it is refused. Its voters were not asked yet, and are not silent.
func TestChangeBehindARefusedOneHasItsVotersAsked(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 1000))
	g.tick(3)
	g.fresh(4, false)
	g.fresh(5, true)
	g.change(1, add(4))
	leader := g.nodes[1]
	require.Contains(t, leader.rn.CodingStatus().Waiting, "voters to come [4]")
	for leader.rn.CodingStatus().Waiting != "" {
		g.settle()
		for _, id := range g.ids() {
			g.nodes[id].rn.Tick()
		}
	}
	g.change(1, add(5))
	g.tick(3)
	require.Contains(t, leader.conf.GetVoters(), uint64(5))
}

// TestVoteIsNotForAnOldWord: what a node said before, to another leader or in another
// process, is no answer to the question whether it reads envelopes now.
func TestVoteIsNotForAnOldWord(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 1000))
	g.fresh(4, true)
	var late []*pb.Message
	g.drop = func(m *pb.Message) bool {
		if m.GetFrom() == 4 && m.GetType() == raft.MsgUnits {
			late = append(late, m)
			return true
		}
		return false
	}
	g.change(1, add(4))
	g.tick(15)
	require.NotEmpty(t, late)
	require.NotContains(t, g.nodes[1].conf.GetVoters(), uint64(4))
	g.drop = nil
	g.stop(4)
	g.startPlain(4)
	g.change(1, add(4))
	for _, m := range late {
		require.NoError(t, g.nodes[1].rn.Step(m))
	}
	g.tick(30)
	require.NotContains(t, g.nodes[1].conf.GetVoters(), uint64(4))
}

// TestVoteNeedsTheSameClearPrefix: a node that reads envelopes with another clear prefix
// does not read those of the group.
func TestVoteNeedsTheSameClearPrefix(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 1000))
	g.prefix = 4
	g.fresh(4, true)
	g.change(1, add(4))
	g.tick(30)
	require.NotContains(t, g.nodes[1].conf.GetVoters(), uint64(4))
}

// TestVoteWaitsWhileAQuestionIsLost: the question is asked again until an election
// timeout has passed. Other changes are refused meanwhile.
func TestVoteWaitsWhileAQuestionIsLost(t *testing.T) {
	g := newHostChecked(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 1000))
	g.fresh(4, true)
	asked := 0
	g.drop = func(m *pb.Message) bool {
		if m.GetTo() == 4 {
			asked++
		}
		return m.GetTo() == 4 && asked < 5
	}
	g.change(1, add(4))
	require.ErrorIs(t, g.nodes[1].rn.ProposeConfChange(explicit(remove(3))), raft.ErrProposalDropped)
	g.tick(8)
	require.Equal(t, []uint64{1, 2, 3, 4}, g.nodes[1].conf.GetVoters())
}

// TestVoteIsGivenWhereNothingIsCoded: in a group whose log has no coded entry nobody is
// asked, also after restarts with logs that begin at different places: members without
// coding join as ever.
func TestVoteIsGivenWhereNothingIsCoded(t *testing.T) {
	g := newGroup(t, 3)
	g.elect(1)
	for i := range 10 {
		g.propose(1, payload(i, 10))
	}
	g.tick(3)
	g.compact(1, g.nodes[1].index-2)
	g.compact(2, g.nodes[1].index-7)
	for _, id := range g.ids() {
		g.start(id)
	}
	g.elect(1)
	g.tick(3)
	g.change(1, add(4)) // it need not even be there
	require.Contains(t, g.nodes[1].conf.GetVoters(), uint64(4))
}

// TestVoteIsWithheldFromACandidateThatDoesNotCode: a member that was restarted without
// coding, as its own log has no coded entry left, is not elected while the voters that it
// needs may need one. Otherwise it is.
func TestVoteIsWithheldFromACandidateThatDoesNotCode(t *testing.T) {
	for _, needed := range []bool{true, false} {
		g := newGroup(t, 3)
		g.elect(1)
		g.propose(1, payload(0, 1000))
		g.tick(3)
		g.compact(3, g.nodes[3].index)
		if !needed {
			g.compact(2, g.nodes[2].index)
		}
		g.startPlain(3)
		g.stop(2)
		g.propose(1, payload(1, 10)) // only node 3 has it beside the leader
		g.tick(3)
		g.stop(1)
		g.down[2] = false
		g.tick(100)
		if needed {
			require.NotEqual(t, raft.StateLeader, g.nodes[3].rn.BasicStatus().RaftState)
			g.down[1] = false
			g.tick(100)
			require.Equal(t, uint64(1), g.nodes[3].rn.BasicStatus().Lead)
		} else {
			require.Equal(t, raft.StateLeader, g.nodes[3].rn.BasicStatus().RaftState)
		}
	}
}

// TestLeadershipIsNotHandedToAMemberThatDoesNotCode: nor does such a member get a vote
// by a transfer.
func TestLeadershipIsNotHandedToAMemberThatDoesNotCode(t *testing.T) {
	for _, needed := range []bool{true, false} {
		g := newGroup(t, 3)
		g.elect(1)
		g.propose(1, payload(0, 1000))
		g.tick(3)
		g.compact(3, g.nodes[3].index)
		if !needed {
			g.compact(1, g.nodes[1].index)
			g.compact(2, g.nodes[2].index)
		}
		g.tick(2)
		g.startPlain(3)
		g.propose(1, payload(1, 10))
		g.tick(2)
		g.nodes[1].rn.TransferLeader(3)
		g.tick(5)
		require.Equal(t, needed, g.nodes[3].rn.BasicStatus().RaftState == raft.StateFollower)
	}
}

// TestVoteWaitsForEachMemberInNeed: it is kept back for as long as a single member may
// need a coded entry, also one that is down.
func TestVoteWaitsForEachMemberInNeed(t *testing.T) {
	for _, last := range []uint64{1, 2, 3} {
		g := newGroup(t, 3)
		g.elect(1)
		g.propose(1, payload(0, 1000))
		g.propose(1, payload(1, 10))
		g.tick(3)
		g.fresh(4, false)
		for _, id := range []uint64{1, 2, 3} {
			if id != last {
				g.compact(id, g.nodes[id].index)
			}
		}
		g.tick(2)
		if last == 3 {
			g.stop(3)
		}
		g.change(1, add(4))
		g.tick(20)
		require.NotContains(t, g.nodes[1].conf.GetVoters(), uint64(4))
		g.compact(last, g.nodes[last].index)
		g.down[3] = false
		g.tick(2)
		g.change(1, add(4))
		g.tick(2)
		require.Contains(t, g.nodes[1].conf.GetVoters(), uint64(4))
	}
}
