// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

func single(typ pb.ConfChangeType, id uint64) *pb.ConfChangeSingle {
	return &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: new(id)}
}

// change proposes a change at a node and lets it end.
func (c *cluster) change(id uint64, changes ...*pb.ConfChangeSingle) Done {
	c.t.Helper()
	c.calls++
	call := c.calls
	c.nodes[id].r.ProposeConfChange(call, &pb.ConfChangeV2{Changes: changes}, c.now+100*tick)
	c.settle()
	c.run(15)
	return c.result(call)
}

func refusedChange(t *testing.T, d Done, cause error, text string) {
	t.Helper()
	require.ErrorIs(t, d.Err, ErrRefused)
	require.ErrorIs(t, d.Err, ErrConfChange)
	require.ErrorIs(t, d.Err, cause)
	require.ErrorContains(t, d.Err, text)
}

// A change after which too few would be there is refused, and names who is
// missing; it can be forced.
func TestChangeThatLosesQuorum(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.lose = func(m wire.Message) bool { return m.From == 3 || m.To == 3 }
		c.run(25) // node 3 has not been heard of for an election timeout
		refusedChange(t, c.change(2, single(pb.ConfChangeRemoveNode, 2)), ErrUnsafeChange, "[3] cannot be reached")
		refusedChange(t, c.change(2, single(pb.ConfChangeAddNode, 4)), ErrUnsafeChange, "[3 4] cannot be reached or have not caught up")
		require.NoError(t, c.change(2, single(pb.ConfChangeRemoveNode, 3)).Err, "the dead one can go")
		require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, 3)).Err, "learners have no vote")

		c = newCluster(t, core, 1)
		c.elect(1)
		c.run(25)
		refusedChange(t, c.change(1, single(pb.ConfChangeAddNode, 2)), ErrUnsafeChange, "add nodes as learners first")
		c.calls++
		c.nodes[1].r.ForceConfChange(c.calls, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{single(pb.ConfChangeAddNode, 2)}}, c.now+100*tick)
		c.settle()
		require.Equal(t, []uint64{1, 2}, c.result(c.calls).Result.(*pb.ConfState).GetVoters())
	})
}

// Of three members one dies, and at once another is to be removed: the leader has heard from
// the dead one a moment ago, and messages of the dead one still arrive.
func TestMemberIsNotRemovedJustAfterAnotherDied(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for _, at := range []uint64{1, 2} {
			c := newCluster(t, core, 1, 2, 3)
			c.elect(1)
			c.run(25)
			var late []wire.Message
			c.lose = func(m wire.Message) bool {
				if m.From == 3 {
					late = append(late, m)
				}
				return m.From == 3 || m.To == 3
			}
			c.nodes[3].r.post(1, wire.LogEnd{Boot: 1, Number: 1, Answer: true, Index: 1, First: c.nodes[3].r.founding.digest})
			c.settle()
			c.calls++
			call := c.calls
			c.nodes[at].r.ProposeConfChange(call, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{single(pb.ConfChangeRemoveNode, 2)}}, c.now+100*tick)
			c.settle()
			for _, m := range late {
				require.NoError(t, c.nodes[1].r.Receive(m))
			}
			c.run(15)
			refusedChange(t, c.result(call), ErrUnsafeChange, "[3] cannot be reached")
			write := c.propose(1, "goes on")
			c.settle()
			c.run(1)
			require.NoError(t, c.result(write).Err)
			require.NoError(t, c.change(at, single(pb.ConfChangeRemoveNode, 3)).Err, "the dead one can go")
			require.Empty(t, c.nodes[1].r.changes.inquiries.open)
		}
	})
}

func TestChangeOfUnknownMember(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(25)
		refusedChange(t, c.change(2, single(pb.ConfChangeRemoveNode, 9)), ErrNotMember, "node 9, which is no member: the voters are [1 2 3]")
		refusedChange(t, c.change(1, single(pb.ConfChangeUpdateNode, 9)), ErrNotMember, "node 9")
	})
}

// A change that is larger than a command may be fits no message: its leader would append it, and commit nothing any more.
func TestChangeThatIsTooLargeIsRefused(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	c.run(25)
	last := c.nodes[1].r.last
	for _, id := range []uint64{1, 2} {
		c.calls++
		c.nodes[id].r.ProposeConfChange(c.calls, &pb.ConfChangeV2{Context: make([]byte, defaultCommandBytes), Changes: []*pb.ConfChangeSingle{single(pb.ConfChangeAddLearnerNode, 4)}}, c.now+100*tick)
		c.settle()
		refused := c.result(c.calls).Err
		require.ErrorIs(t, refused, ErrRefused)
		require.ErrorIs(t, refused, ErrTooLarge)
		many := make([]*pb.ConfChangeSingle, maxChanges+1)
		for i := range many {
			many[i] = single(pb.ConfChangeAddLearnerNode, uint64(i+4))
		}
		refusedChange(t, c.change(id, many...), ErrConfChange, "65537 steps")
	}
	require.Equal(t, last, c.nodes[1].r.last)
}

// A learner gets its vote when it has the log.
func TestPromotionWaitsForTheLog(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		n := c.elect(1)
		n.r.cfg.MaxPromoteLag = 5
		c.add(4, nil)
		c.run(25)
		require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, 4)).Err)
		c.lose = func(m wire.Message) bool { return m.To == 4 && m.Class() == wire.ClassAppend }
		for i := range 10 {
			c.propose(1, fmt.Sprint(i))
			c.settle()
		}
		c.run(2)
		refusedChange(t, c.change(2, single(pb.ConfChangeAddNode, 4)), ErrUnsafeChange, "learner 4 is at index")
		c.lose = func(wire.Message) bool { return false }
		c.run(10)
		require.NoError(t, c.change(2, single(pb.ConfChangeAddNode, 4)).Err)
		require.Equal(t, []uint64{1, 2, 3, 4}, n.r.host.conf.GetVoters())
	})
}

// A leader that is removed, or becomes a learner, hands over before: the group is
// without a leader for less than an election timeout.
func TestLeaderThatIsRemovedHandsOver(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for _, typ := range []pb.ConfChangeType{pb.ConfChangeRemoveNode, pb.ConfChangeAddLearnerNode} {
			for _, at := range []uint64{1, 2} {
				c := newCluster(t, core, 1, 2, 3)
				n := c.elect(1)
				c.run(2)
				c.calls++
				call := c.calls
				c.nodes[at].r.ProposeConfChange(call, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{single(typ, 1)}}, c.now+100*tick)
				c.settle()
				c.run(3) // far less than an election timeout
				require.NoError(t, c.result(call).Err, "%v at node %d", typ, at)
				require.False(t, n.r.leads())
				require.Equal(t, []uint64{2, 3}, c.nodes[2].r.host.conf.GetVoters())
				write := c.propose(3, "x")
				c.settle()
				c.run(1)
				require.NoError(t, c.result(write).Err)
			}
		}
		// Where nobody takes over, the leader makes the change all the same.
		c := newCluster(t, core, 1, 2, 3)
		n := c.elect(1)
		c.run(25)
		c.lose = func(m wire.Message) bool {
			raft, ok := m.Body.(wire.Raft)
			return ok && raft.GetType() == pb.MsgTimeoutNow
		}
		c.calls++
		n.r.ProposeConfChange(c.calls, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{single(pb.ConfChangeRemoveNode, 1)}}, c.now+100*tick)
		c.run(60)
		require.NoError(t, c.result(c.calls).Err)
	})
}

// A voter that nobody has heard of is not taken, or one more loss would stop the group.
// It may be forced; and a node that is there, and waits to be added, answers.
func TestVoterNobodyHasHeardOf(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for _, at := range []uint64{1, 2} {
			c := newCluster(t, core, 1, 2, 3)
			c.elect(1)
			c.run(25)
			add := single(pb.ConfChangeAddNode, 44)
			refusedChange(t, c.change(at, add), ErrUnsafeChange, "nodes [44] would get a vote and have not answered")
			refusedChange(t, c.change(at, add, single(pb.ConfChangeRemoveNode, 3)), ErrUnsafeChange, "[44] would get a vote and have not answered")
			require.Equal(t, []uint64{1, 2, 3}, c.nodes[1].r.host.conf.GetVoters())
			c.add(4, nil)
			require.NoError(t, c.change(at, single(pb.ConfChangeAddNode, 4)).Err)
			c.add(5, nil)
			require.NoError(t, c.change(at, single(pb.ConfChangeAddNode, 5), single(pb.ConfChangeRemoveNode, 3)).Err)
			c.calls++
			c.nodes[at].r.ForceConfChange(c.calls, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{add}}, c.now+100*tick)
			c.settle()
			require.NoError(t, c.result(c.calls).Err)
			require.Equal(t, []uint64{1, 2, 4, 5, 44}, c.nodes[1].r.host.conf.GetVoters())
		}
	})
}

// A change that changes nothing, or names no node, is an error that says so, from the
// node where it is asked for.
func TestChangeWithoutMeaning(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(25)
		explicit := pb.ConfChangeTransitionJointExplicit.Enum()
		for _, tt := range []struct {
			cc   *pb.ConfChangeV2
			text string
		}{
			{nil, "it is nil"},
			{&pb.ConfChangeV2{}, "it is empty, which leaves a joint configuration; voters=(1 2 3) is none"},
			{&pb.ConfChangeV2{Transition: explicit}, "it has no steps"},
			{&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{nil}}, fmt.Sprint("step 1 of 1 is of node 0, want 1 to ", raft.LocalApplyThread-1)},
			{&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{single(pb.ConfChangeAddNode, 0)}}, "step 1 of 1 is of node 0"},
			{&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{single(pb.ConfChangeRemoveNode, 3), single(pb.ConfChangeAddNode, raft.LocalAppendThread)}}, fmt.Sprint("step 2 of 2 is of node ", raft.LocalAppendThread)},
		} {
			for _, at := range []uint64{1, 2} {
				for name, propose := range map[string]func(*Replica, Call, *pb.ConfChangeV2, Deadline){
					"propose": (*Replica).ProposeConfChange, "force": (*Replica).ForceConfChange,
				} {
					c.calls++
					propose(c.nodes[at].r, c.calls, tt.cc, c.now+100*tick)
					c.settle()
					c.run(3)
					d := c.result(c.calls)
					require.ErrorIs(t, d.Err, ErrRefused, name)
					require.ErrorIs(t, d.Err, ErrConfChange, name)
					require.ErrorContains(t, d.Err, tt.text, name)
				}
			}
		}
		require.Equal(t, []uint64{1, 2, 3}, c.nodes[1].r.host.conf.GetVoters())
	})
}
