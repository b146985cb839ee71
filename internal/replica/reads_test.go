// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
)

// read begins a read at a node.
func (c *cluster) read(id uint64, policy ReadPolicy) Call {
	c.calls++
	c.nodes[id].r.ReadWith(c.calls, ReadOptions{Policy: policy}, c.now+20*tick)
	return c.calls
}

// A read whose staleness is bounded is answered from the last round while that is
// recent enough, without a message, and else by a round; it ends by its deadline
// where nobody confirms.
func TestBoundedStaleness(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		n := c.nodes[3]
		policy := BoundedStaleness{Max: 5 * tick}
		first := c.read(3, policy)
		c.settle()
		c.run(1)
		require.NoError(t, c.result(first).Err)
		require.Equal(t, uint64(1), n.r.count.ReadRounds, "nothing was confirmed yet")

		c.lose = func(m wire.Message) bool { return m.To == 3 || m.From == 3 }
		c.run(3)
		second := c.read(3, policy)
		c.settle()
		require.NoError(t, c.result(second).Err)
		require.Equal(t, c.result(first).Index, c.result(second).Index)
		require.Equal(t, uint64(1), n.r.count.ReadRounds)
		require.Equal(t, uint64(1), n.r.count.ReadsWithoutRound)

		c.run(3) // now the round is too old
		third := c.read(3, policy)
		c.settle()
		require.NotContains(t, c.done, third)
		c.run(21)
		require.ErrorIs(t, c.result(third).Err, ErrRefused)
		require.ErrorIs(t, c.result(third).Err, ErrTimeout)
	})
}

// The age of an answer counts from the question: one that was long under way
// does not make later reads see less than they may.
func TestBoundedStalenessCountsFromTheQuestion(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	var held []wire.Message
	c.lose = func(m wire.Message) bool {
		if m.From == 1 && m.To == 3 && m.Class() == wire.ClassControl {
			held = append(held, m)
			return true
		}
		return false
	}
	slow := c.read(3, LeaderLease{}) // which asks nobody else
	c.run(4)
	require.NotContains(t, c.done, slow)
	c.lose = func(wire.Message) bool { return false }
	c.wires = append(c.wires, held...)
	c.settle()
	require.NoError(t, c.result(slow).Err)
	rounds := c.nodes[3].r.count.ReadRounds
	call := c.read(3, BoundedStaleness{Max: 2 * tick})
	c.settle()
	require.NoError(t, c.result(call).Err)
	require.Equal(t, rounds+1, c.nodes[3].r.count.ReadRounds)
}

// A machine that was suspended has an old state, whatever the clock of its process says.
func TestBoundedStalenessCountsWhileTheSystemIsSuspended(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	r, suspended := c.nodes[3].r, time.Duration(0)
	r.cfg.Aging = func() time.Duration { return c.now + suspended }
	read := func() ReadResult {
		call := c.read(3, BoundedStaleness{Max: 5 * tick})
		c.settle()
		c.run(1)
		require.NoError(t, c.result(call).Err)
		return c.result(call).Read
	}
	read()
	require.Equal(t, tick, read().Age)
	require.Equal(t, uint64(1), r.count.ReadRounds)
	suspended = time.Hour
	require.Equal(t, ServedByLeader, read().By)
	require.Equal(t, uint64(2), r.count.ReadRounds)
}

func TestLocalRead(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	local := c.read(2, Local{})
	c.settle()
	require.NoError(t, c.result(local).Err, "nobody leads yet")
	require.Equal(t, firstMark.index, c.result(local).Index)
	require.Zero(t, c.nodes[2].r.count.ReadRounds)

	bad := c.read(2, BoundedStaleness{})
	c.settle()
	require.ErrorIs(t, c.result(bad).Err, ErrRefused)
	require.ErrorIs(t, c.result(bad).Err, ErrInvalid)
	require.ErrorContains(t, c.result(bad).Err, "BoundedStaleness.Max is 0s")
}

// A leader's answer to a question that a follower has given up arrives after the follower has asked
// anew, for another read too. The late answer is older than that read, and is no answer to it.
func TestAnswerToAQuestionGivenUpAnswersNoLaterRead(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.settle()
		var answers []wire.Message
		c.lose = func(m wire.Message) bool {
			b, ok := m.Body.(wire.Raft)
			if m.To == 3 && ok && b.GetType() == pb.MsgReadIndexResp {
				answers = append(answers, m)
			}
			return m.To == 3 && (ok && b.GetType() != pb.MsgHeartbeat || m.Kind() == wire.KindLogEnd)
		}
		early := c.read(3, ReadIndex{})
		c.settle()
		require.Len(t, answers, 1)
		write := c.propose(1, "x")
		c.settle()
		require.NoError(t, c.result(write).Err)
		late := c.read(3, ReadIndex{})
		c.run(c.nodes[3].r.cfg.ElectionTick)
		require.Len(t, answers, 3, "the follower has asked for the later read, and anew for the early one")
		require.NoError(t, c.nodes[3].r.Receive(replicatest.Reread(answers[0])))
		c.settle()
		require.NotContains(t, c.done, late, "the answer is of before the write")
		require.NotContains(t, c.done, early)

		c.lose = func(wire.Message) bool { return false }
		for _, m := range answers[1:] {
			require.NoError(t, c.nodes[3].r.Receive(replicatest.Reread(m)))
		}
		c.run(2)
		require.GreaterOrEqual(t, c.result(late).Index, c.result(write).Index)
		require.NoError(t, c.result(early).Err)
	})
}
