// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"bytes"
	"errors"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// watchedClock is a node's clock, and says what a test has it say of itself.
type watchedClock struct {
	raft.Clock
	fault *error
}

func (c watchedClock) Fit() error { return *c.fault }

// A clock that is found unfit while a node runs ends reads by the node's leases at the next tick: at
// a responder and at the leader. Reads go the way of Raft, the log says so once, and leases
// go on when the clock is fit again.
func TestLeasesStandAsideWhileTheClockIsUnfit(t *testing.T) {
	faults := map[uint64]*error{}
	logs := map[uint64]*bytes.Buffer{}
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2, 3}, func(c *raft.Config) {
		faults[c.ID], logs[c.ID] = new(error), &bytes.Buffer{}
		c.Clock = watchedClock{c.Clock, faults[c.ID]}
		c.Logger = &raft.DefaultLogger{Logger: log.New(logs[c.ID], "", 0)}
	})
	rounds := 0
	g.sent = func(m *pb.Message) {
		if m.GetType() == pb.MsgReadIndex || m.GetType() == pb.MsgHeartbeat && len(m.GetContext()) > 0 {
			rounds++
		}
	}
	read := func(id uint64) (asked int) {
		rounds = 0
		ctx := g.nodes[id].read()
		g.until("the read is answered", leaseTime, func() bool { return g.nodes[id].told(ctx) })
		return rounds
	}
	for _, id := range []uint64{2, 1} {
		require.Zero(t, read(id))
		*faults[id] = errors.New("it gains an hour a day")
		g.pass(leaseTick + time.Millisecond)
		require.False(t, g.stable(id))
		require.True(t, g.nodes[id].rn.LeaseStatus().Aside)
		require.Positive(t, read(id))
		g.pass(5 * leaseTime)
		require.Positive(t, read(id))
		require.Equal(t, 1, strings.Count(logs[id].String(), "answers no read by roster leases and grants none, until its clock is fit again: it gains an hour a day"))
		require.True(t, g.stable(3))
		*faults[id] = nil
		g.until("it answers by its leases again", time.Second, func() bool { return g.stable(id) })
		require.Equal(t, 1, strings.Count(logs[id].String(), "takes part in roster leases again"))
		require.Zero(t, read(id))
	}
}

// A node whose host has it take no part in elections for a while, because the group is idle or the host cannot write, may
// hold leases, and looks at its clock.
func TestQuietTicksLookAtTheClock(t *testing.T) {
	fault := new(error)
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, func(c *raft.Config) {
		if c.ID == 2 {
			c.Clock = watchedClock{c.Clock, fault}
		}
	})
	rn := g.nodes[2].rn
	require.True(t, g.stable(2))
	*fault = errors.New("it stands still")
	rn.TickQuiesced()
	require.False(t, g.stable(2))
	require.Nil(t, rn.LeasePermit(nil))
	*fault = nil
	rn.TickQuiesced()
	g.until("it answers by its leases again", time.Second, func() bool { return g.stable(2) })
}
