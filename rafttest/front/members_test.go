// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// joiner returns a node that joins and knows one member alone.
func joiner(t testing.TB, id uint64, seed *member) *member {
	m := newMember(t, id, map[uint64]string{seed.options.ID: seed.options.Peers[seed.options.ID]})
	m.options.Join = true
	m.options.Listen = addressesOf(t, id)[id]
	return m
}

// memberIDs returns the voters and the learners that a member knows.
func (m *member) ids() (voters, learners []uint64) {
	for _, x := range m.group.Members() {
		if x.Voter {
			voters = append(voters, x.ID)
		} else {
			learners = append(learners, x.ID)
		}
	}
	return voters, learners
}

// notLeader returns a member that does not lead, and the leader.
func notLeader(t testing.TB, all map[uint64]*member) (follower, leader *member) {
	eventually(t, func() bool {
		for _, id := range sortedIDs(all) {
			if lead := all[id].group.Leader(); lead != 0 && lead != id && all[lead] != nil {
				follower, leader = all[id], all[lead]
				return true
			}
		}
		return false
	}, "a leader")
	return follower, leader
}

// knowEachOther waits until all members have replicated addresses of all.
func knowEachOther(t testing.TB, all map[uint64]*member) {
	t.Helper()
	for id, m := range all {
		for other, to := range all {
			eventually(t, func() bool { return m.node.Addresses()[other] == to.node.Address() }, "node %d knows node %d at %s", id, other, to.node.Address())
		}
	}
}

// The new node is told one member, not the leader, and all others are told its id and address. All
// nodes then restart, and dial by what was replicated.
func TestMemberIsAddedByIDAndAddressAloneAndAllNodesRestart(t *testing.T) {
	all := startCluster(t, 3)
	for i := range 50 {
		all[1].propose(t, fmt.Sprint(i))
	}
	follower, _ := notLeader(t, all)
	all[4] = joiner(t, 4, follower)
	all[4].start(t)
	changed(t, func(ctx context.Context) error { return follower.group.AddVoter(ctx, 4, all[4].options.Listen) })
	voters, learners := follower.ids()
	require.Equal(t, []uint64{1, 2, 3, 4}, voters)
	require.Empty(t, learners)
	changed(t, func(ctx context.Context) error { return all[1].group.AddVoter(ctx, 4, all[4].options.Listen) }, "as the first call has done it")
	require.ErrorIs(t, all[1].group.AddVoter(within(t), 4, addressesOf(t, 5)[5]), weft.ErrInvalid)
	require.Len(t, all[4].read(t), 50)
	knowEachOther(t, all)

	for _, m := range all {
		m.stop(t)
	}
	for _, m := range all {
		m.start(t)
	}
	require.Equal(t, 51, all[4].propose(t, "of the fourth"))
	for id, m := range all {
		require.Len(t, m.read(t), 51, "node %d", id)
	}
}

// A node says by itself that it has moved. Another one was down meanwhile, and everybody
// else moves before it comes back: it is found by its own address.
func TestMembersMoveToOtherAddresses(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "before")
	knowEachOther(t, all)
	all[3].stop(t)
	for _, id := range []uint64{1, 2} {
		all[id].stop(t)
		moved := maps.Clone(all[id].options.Peers)
		moved[id] = addressesOf(t, id)[id]
		all[id].options.Peers = moved
		all[id].start(t)
		all[id].propose(t, "moved")
	}
	eventually(t, func() bool {
		return all[1].node.Addresses()[2] == all[2].node.Address() && all[2].node.Addresses()[1] == all[1].node.Address()
	}, "the two know each other")

	all[3].start(t) // with the addresses of the beginning
	require.Equal(t, 4, all[3].propose(t, "from the third"))
	knowEachOther(t, all)
	require.Equal(t, []string{"before", "moved", "moved", "from the third"}, all[3].read(t))
}

// An operator names the new addresses of all nodes, which are down at the same time.
func TestAllMembersMoveAtOnce(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "before")
	knowEachOther(t, all)
	for _, m := range all {
		m.stop(t)
	}
	moved := addressesOf(t, 1, 2, 3)
	for _, m := range all {
		m.options.Peers = moved
		m.start(t)
	}
	require.Equal(t, 2, all[2].propose(t, "after"))
	knowEachOther(t, all)
	for _, m := range all { // again, with options that have not changed
		m.stop(t)
	}
	for _, m := range all {
		m.start(t)
	}
	require.Equal(t, 3, all[3].propose(t, "again"))
}

func TestMemberIsReplacedByAnotherAtTheSameAddress(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	knowEachOther(t, all)
	all[3].stop(t)
	all[4] = joiner(t, 4, all[1])
	all[4].options.Listen = all[3].options.Peers[3]
	all[4].start(t)
	changed(t, func(ctx context.Context) error { return all[1].group.Replace(ctx, 3, 4, all[4].options.Listen) })
	voters, learners := all[1].ids()
	require.Equal(t, []uint64{1, 2, 4}, voters)
	require.Empty(t, learners)
	require.Equal(t, 2, all[1].propose(t, "another"))
	require.Equal(t, []string{"a line", "another"}, all[4].read(t))
	changed(t, func(ctx context.Context) error { return all[2].group.Replace(ctx, 3, 4, all[4].options.Listen) }, "as the first call has done it")
	require.ErrorIs(t, all[2].group.AddLearner(within(t), 3, addressesOf(t, 3)[3]), weft.ErrRemoved)
}

func TestLearnerIsPromotedAndLeaderRemoved(t *testing.T) {
	all := startCluster(t, 3)
	follower, leader := notLeader(t, all)
	all[4] = joiner(t, 4, follower)
	changed(t, func(ctx context.Context) error { return follower.group.AddLearner(ctx, 4, all[4].options.Listen) }, "it is not started yet")
	_, learners := follower.ids()
	require.Equal(t, []uint64{4}, learners)
	all[4].start(t)
	changed(t, func(ctx context.Context) error { return follower.group.Promote(ctx, 4) })
	changed(t, func(ctx context.Context) error { return leader.group.Remove(ctx, leader.options.ID) })
	eventually(t, func() bool { voters, _ := all[4].ids(); return len(voters) == 3 }, "three voters")
	require.Equal(t, 1, all[4].propose(t, "a line"))
	require.ErrorIs(t, follower.group.AddVoter(within(t), leader.options.ID, leader.node.Address()), weft.ErrRemoved)
}

// bare runs a member's group on package rawnode alone, on the same directories, and returns its
// lines behind one more.
func (m *member) bare(t testing.TB, line string) []string {
	engine, err := storage.Open(filepath.Join(m.options.Dir, "log"), storage.Options{Identity: storage.Identity{Cluster: m.options.Cluster, Node: m.options.ID}})
	require.NoError(t, err)
	log, err := engine.Group(1)
	require.NoError(t, err)
	tr, err := transport.New(transport.Config{Cluster: m.options.Cluster, Node: m.options.ID, Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	state := newJournal(t, filepath.Join(m.options.Dir, "state"))
	host, err := rawnode.New(rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: m.options.ID, Group: 1, Peers: []uint64{m.options.ID}, Log: log},
		StateMachine: state, Transport: tr, TickInterval: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	_, err = host.Propose(within(t), []byte(line))
	require.NoError(t, err)
	require.NoError(t, host.Stop(within(t)))
	require.NoError(t, tr.Close())
	require.NoError(t, engine.Close())
	return state.lines()
}

// users returns the lines that a user has proposed: package rawnode takes the front's own commands for lines, too.
func users(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "\x00weft:reserved") })
}

// A service goes from package rawnode to this one and back, on the same directories.
func TestServiceMovesFromRawnodeToTheFrontAndBack(t *testing.T) {
	m := newMember(t, 1, addressesOf(t, 1))
	want := []string{"bare"}
	require.Equal(t, want, m.bare(t, "bare"))
	m.start(t)
	for range 13 { // so many that the journal is saved
		m.propose(t, "front")
		want = append(want, "front")
	}
	m.stop(t)
	want = append(want, "bare again")
	require.Equal(t, want, users(m.bare(t, "bare again")))
	m.start(t)
	m.propose(t, "front again")
	require.Equal(t, append(want, "front again"), users(m.state.lines()))
}

// A Replace that was cut short, and a Remove, leave a learner, which is in nobody's place.
func TestLearnerIsNotTakenForADoneReplacement(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	at := addressesOf(t, 4)[4]
	changed(t, func(ctx context.Context) error { return all[1].group.AddLearner(ctx, 4, at) })
	changed(t, func(ctx context.Context) error { return all[1].group.Remove(ctx, 3) })
	err := all[1].group.Replace(within(t), 3, 4, at)
	require.ErrorIs(t, err, weft.ErrNotMember)
	require.ErrorIs(t, err, weft.ErrRefused)
}

// A replacement that votes already would be no replacement: the group would have a member less.
func TestVoterIsNoReplacement(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	for _, at := range []uint64{1, 2} {
		err := all[at].group.Replace(within(t), 2, 3, all[3].node.Address())
		require.ErrorIs(t, err, weft.ErrInvalid)
		require.ErrorIs(t, err, weft.ErrRefused)
		require.ErrorContains(t, err, "3, is a voter already")
	}
	voters, _ := all[1].ids()
	require.Equal(t, []uint64{1, 2, 3}, voters)
	require.Equal(t, 2, all[1].propose(t, "another"))
}

// A node takes itself out of the group. The call ends when that is done, and from then on
// the node takes no commands.
func TestNodeThatHasLeftTakesNoCommands(t *testing.T) {
	for _, name := range []string{"Remove", "Replace"} {
		for _, leads := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " leader: ", leads), func(t *testing.T) {
				all := startCluster(t, 3)
				all[1].propose(t, "a line")
				leaver, other := notLeader(t, all)
				if leads {
					leaver, other = other, leaver
				}
				all[4] = joiner(t, 4, other)
				all[4].start(t)
				id := leaver.options.ID
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				changed(t, func(context.Context) error {
					if name == "Remove" {
						return leaver.group.Remove(ctx, id)
					}
					return leaver.group.Replace(ctx, id, 4, all[4].options.Listen)
				})
				require.NoError(t, ctx.Err(), "the call ended before its context")
				_, err := leaver.group.Propose(brief(t), []byte("too late"))
				require.ErrorIs(t, err, weft.ErrRefused)
				require.ErrorIs(t, err, weft.ErrRemoved)
				eventually(t, func() bool {
					voters, _ := other.ids()
					return !slices.Contains(voters, id)
				}, "node %d is out", id)
				require.NotContains(t, other.read(t), "too late")
				leaver.stop(t)
				leaver.start(t)
				_, err = leaver.group.Propose(brief(t), []byte("too late"))
				require.ErrorIs(t, err, weft.ErrRemoved, "also after a restart")
			})
		}
	}
}

// The removal of a member comes between the look of a slow AddLearner at the book and its change:
// the change alone, from a node that has not looked, is refused by the leader.
func TestLeaderTakesNoRemovedMember(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	changed(t, func(ctx context.Context) error { return all[1].group.Remove(ctx, 3) })
	for _, at := range []uint64{1, 2} {
		for _, typ := range []pb.ConfChangeType{pb.ConfChangeAddLearnerNode, pb.ConfChangeAddNode} {
			_, err := all[at].group.Host().ForceConfChange(within(t), &pb.ConfChange{Type: typ.Enum(), NodeId: new(uint64(3))})
			require.ErrorIs(t, err, rawnode.ErrConfChange)
			require.ErrorIs(t, err, rawnode.ErrRefused)
			require.ErrorContains(t, err, "the node was removed from the group: node 3")
		}
	}
	voters, learners := all[1].ids()
	require.Equal(t, []uint64{1, 2}, voters)
	require.Empty(t, learners)
	require.ErrorIs(t, all[2].group.AddVoter(within(t), 3, addressesOf(t, 3)[3]), weft.ErrRemoved)
	require.Equal(t, []uint64{3}, all[2].group.Removed())
}

// A node that was to join, and was started without Join, is refused with words for the operator who adds it.
func TestNodeStartedWithoutJoinIsNamedToTheCaller(t *testing.T) {
	all := startCluster(t, 3)
	_, leader := notLeader(t, all)
	for id, test := range map[uint64]struct {
		peers map[uint64]string
		want  string
	}{
		7: {nil, "is not known here: add it to the peers of node 7"},
		8: {leader.options.Peers, "node 8 has begun a group of its own, with the first members [1 2 3 8]: start it anew as a node that joins"},
	} {
		m := newMember(t, id, maps.Clone(test.peers))
		m.options.Listen = addressesOf(t, id)[id]
		if test.peers != nil {
			m.options.Peers[id] = m.options.Listen
		}
		m.start(t)
		var err error
		eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err = leader.group.AddVoter(ctx, id, m.options.Listen)
			require.Error(t, err)
			return strings.Contains(err.Error(), test.want)
		}, "node %d is named", id)
		t.Log(err)
	}
}
