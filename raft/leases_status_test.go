// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// A host shows Status as it is, such as etcd at /debug/vars: that is where an operator
// sees who answers reads.
func TestStatusShowsWhoAnswersReads(t *testing.T) {
	g := newLeaseGroup(t, 3, 3, []leases.NodeID{2}, nil)
	g.pass(50 * ms)
	ctx := g.nodes[2].read()
	g.until("the read is answered", 10*ms, func() bool { return g.nodes[2].told(ctx) })
	type view struct {
		Leases struct {
			Stable, Retired bool
			Responders      []string
			Reads           struct{ Local, Leader uint64 }
		}
	}
	show := func(id uint64) (v view) {
		text, err := json.Marshal(g.nodes[id].rn.Status())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &v), "%s", text)
		return v
	}
	leader, responder, other := show(1), show(2), show(3)
	require.True(t, leader.Leases.Stable)
	require.True(t, responder.Leases.Stable)
	require.False(t, other.Leases.Stable)
	require.Equal(t, []string{"2"}, leader.Leases.Responders)
	require.Equal(t, []string{"2"}, responder.Leases.Responders)
	require.EqualValues(t, 1, responder.Leases.Reads.Local)
	require.Zero(t, leader.Leases.Reads)

	off, err := raft.NewRawNode(&raft.Config{ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: raft.NewMemoryStorage(), MaxInflightMsgs: 1})
	require.NoError(t, err)
	require.Nil(t, off.Status().Leases)
	require.NotContains(t, off.Status().String(), "leases")
}

// An operator restarts the members one by one with Leases.Retired. The last leader
// shows when members may be restarted without leases.
func TestMembersThatRestartWithRetiredSwitchLeasesOff(t *testing.T) {
	retired := false
	g := newLeaseGroup(t, 3, 3, nil, func(c *raft.Config) {
		c.Leases.Wanted, c.Leases.Retired = []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}, retired
	})
	g.until("all answer reads", time.Second, func() bool { return g.stable(1) && g.stable(2) && g.stable(3) })
	require.False(t, g.nodes[1].rn.Status().Leases.Retired)
	retired = true
	for _, id := range []uint64{3, 2, 1} {
		g.nodes[id].stop()
		g.pass(2 * leaseTime)
		g.nodes[id].restart()
		g.pass(2 * leaseTime)
	}
	var l *leaseNode
	g.until("leases are retired", time.Second, func() bool {
		l = g.leader()
		return l != nil && l.rn.Status().Leases.Retired
	})
	require.Empty(t, l.rn.Status().Leases.Roster.Spans)
	for id, n := range g.nodes {
		require.False(t, g.stable(id))
		ctx := n.read()
		g.until("a read asks the leader, and that asks a majority", 20*ms, func() bool { return n.told(ctx) })
		require.Zero(t, n.rn.LeaseStatus().Reads.Local)
		require.Zero(t, n.rn.LeaseStatus().Reads.Leader)
	}
}
