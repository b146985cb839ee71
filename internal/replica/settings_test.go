// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// sessions is the setting of a state machine, as package state has it.
func sessions(value string) []Setting { return []Setting{{Name: "sessions", Value: value}} }

// newSetCluster starts three nodes whose state machines have these values of a setting; "" is none.
func newSetCluster(t *testing.T, core NewCore, values ...string) *cluster {
	c := newCluster(t, core, 1, 2, 3)
	for i, id := range c.ids() {
		cfg := &c.nodes[id].cfg
		if cfg.Tick = tick; values[i] != "" {
			cfg.Equal = sessions(values[i])
		}
		c.start(c.nodes[id])
	}
	return c
}

// A replica whose sessions end at other commands than those of the others applies none of their
// commands, and the others go on; each says so, with both nodes and both values.
func TestReplicaWithAnotherSettingTakesNothing(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newSetCluster(t, core, "10", "10", "5")
		c.elect(1)
		written := c.propose(1, "x")
		c.run(40)
		require.NoError(t, c.result(written).Err)
		require.Equal(t, []string{"x"}, c.nodes[2].sm.applied)
		require.Empty(t, c.nodes[3].sm.applied)
		for node, peer := range map[uint64]uint64{1: 3, 2: 3, 3: 1} {
			err := c.nodes[node].r.Status().Settings[peer]
			require.ErrorIs(t, err, ErrSettings)
			require.ErrorContains(t, err, `sessions is "`)
			require.ErrorContains(t, err, `at node `)
		}
		require.ErrorContains(t, c.nodes[3].r.Status().Settings[1], `sessions is "5" at node 3 and "10" at node 1`)
		require.Empty(t, c.nodes[1].r.Status().Settings[2])

		alone := c.propose(3, "y")
		c.run(200)
		require.ErrorIs(t, c.result(alone).Err, ErrSettings, "the call says why there is no leader")
		require.ErrorIs(t, c.result(alone).Err, ErrTimeout)
		require.LessOrEqual(t, settingsSent(c, 20), 6, "words are said now and then")

		c.nodes[3].cfg.Equal = sessions("10")
		c.start(c.nodes[3])
		c.run(20)
		require.Equal(t, []string{"x"}, c.nodes[3].sm.applied)
		for _, id := range c.ids() {
			require.Empty(t, c.nodes[id].r.Status().Settings)
		}
		require.Zero(t, settingsSent(c, 200), "those that know each other say nothing more")
	})
}

// What does not fit at a member is of no interest once it has left: nobody could end the report.
func TestSettingsOfANodeThatLeftAreNotReported(t *testing.T) {
	c := newSetCluster(t, Weft, "10", "10", "5")
	c.elect(1)
	c.run(25)
	require.Error(t, c.nodes[1].r.Status().Settings[3])
	require.NoError(t, c.change(1, single(pb.ConfChangeRemoveNode, 3)).Err)
	delete(c.nodes, 3)
	c.run(5)
	for _, id := range c.ids() {
		require.Empty(t, c.nodes[id].r.Status().Settings)
		require.NoError(t, c.nodes[id].r.settings.barring())
	}
}

// settingsSent returns how many Settings leave in so many ticks.
func settingsSent(c *cluster, ticks int) (n int) {
	lose := c.lose
	c.lose = func(m wire.Message) bool {
		if m.Kind() == wire.KindSettings {
			n++
		}
		return lose(m)
	}
	c.run(ticks)
	c.lose = lose
	return n
}

// Where nobody has a majority with one setting, nothing is committed.
func TestReplicasThatAllDifferCommitNothing(t *testing.T) {
	c := newSetCluster(t, Weft, "10", "5", "none")
	for _, id := range c.ids() {
		require.NoError(t, c.nodes[id].r.Campaign())
	}
	c.run(100)
	for _, id := range c.ids() {
		require.False(t, c.nodes[id].r.leads())
		require.Len(t, c.nodes[id].r.Status().Settings, 2)
	}
}

// A member of an earlier version, or with a state machine that names no settings, is not compared.
func TestMembersWithoutSettingsAreNotCompared(t *testing.T) {
	c := newSetCluster(t, Weft, "10", "10", "")
	early := c.nodes[2]
	early.cfg.Equal, early.cfg.Tick = nil, 0 // which answers nothing
	c.start(early)
	c.elect(1)
	c.propose(1, "x")
	c.run(5)
	require.Equal(t, []string{"x"}, c.agree())
	require.Empty(t, c.nodes[1].r.Status().Settings)
	sent := settingsSent(c, 5000)
	require.LessOrEqual(t, sent, 4*(maxAsks+1), "a peer that does not answer is asked a few times")
	require.Zero(t, settingsSent(c, 1000))
	c.nodes[1].r.Unreachable(2)
	require.NotZero(t, settingsSent(c, 10), "a peer that was cut off may be another version now")
}

// Intervals that make elections without need are reported, and do not keep a group from working.
func TestHeartbeatsTooRareForAFollowerAreReported(t *testing.T) {
	c := newSetCluster(t, Weft, "", "", "")
	slow := c.nodes[3]
	slow.cfg.HeartbeatTick, slow.cfg.ElectionTick, slow.cfg.NoPreVote = 6, 60, true
	c.start(slow)
	c.elect(1)
	c.propose(1, "x")
	c.run(5)
	require.Equal(t, []string{"x"}, c.agree())
	err := c.nodes[1].r.Status().Settings[3]
	require.ErrorIs(t, err, ErrSettings)
	require.ErrorContains(t, err, `election timeout is "1s" at node 1 and "600ms" at node 3, which is the heartbeat interval there`)
	require.ErrorContains(t, err, `PreVote is "true" at node 1 and "false" at node 3`)
	require.ErrorContains(t, c.nodes[3].r.Status().Settings[1], `heartbeat interval is "600ms" at node 3 and "1s" at node 1, which is the election timeout there`)
	require.Empty(t, c.nodes[1].r.Status().Settings[2])
}

// What a hostile or later peer says is compared as far as it is understood, and breaks nothing.
func TestOddSettings(t *testing.T) {
	c := newSetCluster(t, Weft, "10", "10", "10")
	n := c.nodes[1]
	for _, all := range [][]wire.Setting{
		nil, {{Name: heartbeatSetting, Value: "-3s"}, {Name: electionSetting, Value: "soon\xff"}},
		{{Name: "of a later version", Value: "x"}, {Must: true, Name: "sessions", Value: "10"}},
	} {
		require.NoError(t, n.r.Receive(wire.Message{Group: 7, From: 2, To: 1, Body: wire.Settings{All: all}}))
		require.Empty(t, n.r.Status().Settings, all)
	}
	require.NoError(t, n.r.Receive(wire.Message{Group: 7, From: 2, To: 1, Body: wire.Settings{All: []wire.Setting{{Must: true, Name: "other\xff", Value: "y"}}}}))
	require.ErrorContains(t, n.r.Status().Settings[2], `"other\xff" is ""`)
}

func TestSettingsOfStateMachinesAreBounded(t *testing.T) {
	cfg := newCluster(t, Weft, 1).nodes[1].cfg
	cfg.Equal = slices.Repeat(sessions("10"), wire.MaxSettings)
	require.ErrorContains(t, cfg.Validate(), "64 settings, want at most 32")
	cfg.Equal = []Setting{{Value: "1"}}
	require.ErrorContains(t, cfg.Validate(), "a name of 0 bytes")
}

// A member that was started anew with another setting is no source of snapshots, though its log is
// complete and the leader has just heard from it.
func TestMemberWithAnotherSettingIsNoSourceOfSnapshots(t *testing.T) {
	c := newSetCluster(t, Weft, "10", "10", "10")
	leader := c.elect(1)
	c.propose(1, "x")
	c.run(2)
	snap := &pb.Message{To: new(uint64(2)), Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(3))}}}
	require.Equal(t, []uint64{3}, leader.r.sources(snap))
	c.nodes[3].cfg.Equal = sessions("5")
	c.start(c.nodes[3])
	c.run(1)
	require.True(t, leader.r.reachable(3))
	require.Empty(t, leader.r.sources(snap))
	require.ErrorIs(t, c.nodes[3].r.OfferedFetch(1, wire.Offer{Term: leader.r.state.Term, Index: 9}), ErrSettings)
}
