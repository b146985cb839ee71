// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/internal/wire"
)

// notes is a core's logger that keeps the errors.
type notes struct {
	silent.Logger
	errors []string
}

func (n *notes) Errorf(format string, args ...any) {
	n.errors = append(n.errors, fmt.Sprintf(format, args...))
}

// founded starts nodes with the first members that each is given, from 1 on.
func founded(t *testing.T, core NewCore, peers ...[]uint64) (*cluster, map[uint64]*notes) {
	c, logs := newCluster(t, core), map[uint64]*notes{}
	for i, first := range peers {
		id := uint64(i + 1)
		logs[id] = &notes{}
		n := c.add(id, first)
		n.cfg.Logger, n.cfg.RetainEntries = logs[id], 4
		c.start(n)
	}
	return c, logs
}

var all, some = []uint64{1, 2, 3, 4, 5}, []uint64{5, 1, 4}

// Nodes 4 and 5 are started with other first members than the rest. All that hear of
// it before they have applied anything stop, with both lists, and nothing is
// acknowledged on both sides.
func TestDifferingFirstMembersStopTheBeginning(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c, _ := founded(t, core, all, all, all, some, some)
		c.mayFail = true
		c.run(60)
		for _, id := range c.ids() {
			err := c.nodes[id].r.Err()
			require.ErrorIs(t, err, ErrFirstMembers, "node %d", id)
			require.ErrorContains(t, err, "[1 2 3 4 5]")
			require.ErrorContains(t, err, "[1 4 5]")
			require.Empty(t, c.nodes[id].sm.applied)
		}
	})
}

// A node with another list is started when the group is at work: it stops, and the
// leader's log has both lists, too.
func TestLateNodeWithDifferingFirstMembers(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c, logs := founded(t, core, all, all, all)
		c.mayFail = true
		c.run(60)
		call := c.propose(2, "a")
		c.run(5)
		require.NoError(t, c.result(call).Err)
		n := c.add(4, some)
		c.run(60)
		require.ErrorIs(t, n.r.Err(), ErrFirstMembers)
		require.ErrorContains(t, n.r.Err(), "with the members [1 2 3 4 5], and node 4 with [1 4 5]")
		require.Empty(t, n.sm.applied)
		told := slices.Concat(logs[1].errors, logs[2].errors, logs[3].errors)
		require.NotEmpty(t, told)
		require.Contains(t, told[0], "with the members [1 4 5], and node")
		call = c.propose(3, "b")
		c.run(5)
		require.NoError(t, c.result(call).Err)
	})
}

// apart lets both sides begin while they do not hear each other, and then meet.
func apart(t *testing.T, core NewCore) (c *cluster, logs map[uint64]*notes) {
	c, logs = founded(t, core, all, all, all, some, some)
	c.lose = func(m wire.Message) bool { return (m.From < 4) != (m.To < 4) }
	c.run(60)
	c.propose(2, "a")
	c.propose(5, "b")
	c.run(5)
	require.Equal(t, []string{"a"}, c.nodes[2].sm.applied)
	require.Equal(t, []string{"b"}, c.nodes[4].sm.applied)
	c.lose = func(wire.Message) bool { return false }
	return c, logs
}

// strange checks that nothing of one side came to the other, and that both know why.
func (c *cluster) strange(logs map[uint64]*notes) {
	c.t.Helper()
	for _, id := range []uint64{1, 4, 5} {
		n := c.nodes[id]
		require.NoError(c.t, n.r.Err())
		require.NotZero(c.t, n.r.count.Strangers)
		require.NotContains(c.t, n.sm.applied, map[bool]string{true: "b", false: "a"}[id < 4])
		require.NotEmpty(c.t, logs[id].errors, "node %d", id)
		for _, text := range logs[id].errors {
			require.Contains(c.t, text, "[1 2 3 4 5]")
			require.Contains(c.t, text, "[1 4 5]")
		}
		require.LessOrEqual(c.t, len(logs[id].errors), 3, "each stranger is named once")
		logs[id].errors = nil
	}
}

// Both sides have a state when they meet. Each goes on without the other, and says so;
// also after a restart, and after its log begins elsewhere.
func TestDifferingFirstMembersStayApart(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c, logs := apart(t, core)
		c.run(60)
		c.strange(logs)
		for i := range 40 {
			c.propose(2, fmt.Sprint("a", i))
			c.propose(5, fmt.Sprint("b", i))
			c.run(1)
		}
		for _, id := range c.ids() {
			first, err := c.nodes[id].log.FirstIndex()
			require.NoError(t, err)
			require.Greater(t, first, firstMark.index+1)
			c.start(c.nodes[id])
		}
		c.run(60)
		c.strange(logs)
		a, b := c.propose(3, "a"), c.propose(4, "b")
		c.run(5)
		require.NoError(t, c.result(a).Err)
		require.NoError(t, c.result(b).Err)
		require.Equal(t, c.nodes[1].sm.applied, c.nodes[2].sm.applied)
		require.Equal(t, c.nodes[4].sm.applied, c.nodes[5].sm.applied)
	})
}

// A node that joins learns who the first members were with its first snapshot, and then
// knows strangers, too.
func TestFirstMembersOfANodeThatJoins(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.run(25)
		n := c.add(4, nil)
		require.Empty(t, n.r.Status().FirstMembers)
		require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, 4)).Err)
		c.propose(1, "x")
		c.run(5)
		require.Equal(t, []uint64{1, 2, 3}, n.r.Status().FirstMembers)
		c.start(n)
		require.Equal(t, []uint64{1, 2, 3}, n.r.Status().FirstMembers)
		c.agree()

		was := n.r.state
		table := originTable{}
		table.setFirst([]uint64{4, 9}, 0)
		other := foundedBy(table)
		beat := &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(9)), To: new(uint64(4)), Term: new(was.Term + 5)}
		require.NoError(t, n.r.Receive(wire.Message{Group: 7, From: 9, To: 4, Body: wire.Raft{Message: beat, Digests: wire.Digests{First: other.digest}}}))
		c.turn(n)
		require.Equal(t, was.Term, n.r.state.Term)
		require.EqualValues(t, 1, n.r.count.Strangers)
		require.False(t, n.r.reachable(9))
	})
}

// A node of an earlier version says nothing of first members, and does not know them: it
// is a member like the others.
func TestFirstMembersAreNotKnownToEarlierVersions(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		old := c.nodes[1].r
		old.founding = founding{}
		delete(old.host.origins, noOrigin)
		c.lose = func(m wire.Message) bool { return m.To == 1 && m.Kind() == wire.KindFirst }
		c.elect(1)
		c.run(25)
		for i := range 20 {
			call := c.propose(uint64(1+i%3), fmt.Sprint(i))
			c.run(1)
			require.NoError(t, c.result(call).Err)
		}
		c.calls++
		c.nodes[1].r.TransferLeader(c.calls, 2, c.now+100*tick)
		c.run(5)
		require.NoError(t, c.result(c.calls).Err)
		require.Len(t, c.nodes[1].sm.applied, 20)
		c.start(c.nodes[1])
		require.Empty(t, c.nodes[1].r.Status().FirstMembers, "its state does not say")
		call := c.propose(1, "last")
		c.run(5)
		require.NoError(t, c.result(call).Err)
		require.Zero(t, c.nodes[2].r.count.Strangers)
	})
}

// A snapshot of another group is refused, with both lists.
func TestSnapshotOfAnotherGroup(t *testing.T) {
	c, _ := apart(t, Weft)
	other := c.nodes[4]
	snap := &pb.Message{Type: pb.MsgSnap.Enum(), From: new(uint64(4)), To: new(uint64(1)), Term: new(uint64(99))}
	header, err := SnapshotHeader(SnapshotSend{Message: snap}, SnapshotMeta{Index: other.sm.index, Host: other.sm.host})
	require.NoError(t, err)
	err = c.nodes[1].r.OfferSnapshot(4, header)
	require.ErrorIs(t, err, ErrFirstMembers)
	require.ErrorContains(t, err, "[1 4 5], this node's with [1 2 3 4 5]")
}

// A node may have a number that could be a mark: a new beginning tells both apart.
func TestFirstMembersWithNumbersLikeMarks(t *testing.T) {
	const large = markBit | 5
	c := newCluster(t, Weft, 1, large)
	require.Equal(t, []uint64{1, large}, c.nodes[1].r.Status().FirstMembers)
	mark := Mark([]byte("anew"))
	host, _, err := Refounding{Index: 9, Term: 2, Voters: []uint64{1, large}, Mark: mark}.Begin()
	require.NoError(t, err)
	f, err := ReadFounded(host)
	require.NoError(t, err)
	require.Equal(t, mark, f.Mark)
	h, err := decodeHostState(host)
	require.NoError(t, err)
	founded := foundedBy(h.origins)
	require.Equal(t, []uint64{1, large}, founded.nodes())
	require.Len(t, founded.members, 3, "the digest has the mark")
	f, err = ReadFounded(c.nodes[1].r.host.encode())
	require.NoError(t, err)
	require.Zero(t, f.Mark)
}
