// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// Every mistake is named, with the field, its value and the bound.
func TestConfigNamesEveryMistake(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*raft.Config)
		want   []string
	}{
		"none": {func(*raft.Config) {}, nil},
		"id":   {func(c *raft.Config) { c.ID = raft.None }, []string{"ID is 0"}},
		"local id": {func(c *raft.Config) { c.ID = raft.LocalApplyThread },
			[]string{"ID is 18446744073709551614"}},
		"ticks": {func(c *raft.Config) { c.HeartbeatTick, c.ElectionTick = 0, 0 },
			[]string{"HeartbeatTick is 0", "ElectionTick is 0; it must exceed HeartbeatTick, which is 0"}},
		"inflight": {func(c *raft.Config) { c.MaxInflightMsgs, c.MaxInflightBytes = -1, 1 },
			[]string{"MaxInflightMsgs is -1", "MaxInflightBytes is 1; it must be 0 (no bound) or at least MaxSizePerMsg, which is 1048576"}},
		"lease":   {func(c *raft.Config) { c.ReadOnlyOption = raft.ReadOnlyLeaseBased }, []string{"CheckQuorum is false"}},
		"storage": {func(c *raft.Config) { c.Storage = nil }, []string{"Storage is nil"}},
		"all": {func(c *raft.Config) { *c = raft.Config{ReadOnlyOption: raft.ReadOnlyLeaseBased} },
			[]string{"ID is 0", "HeartbeatTick is 0", "ElectionTick is 0", "Storage is nil", "MaxInflightMsgs is 0", "CheckQuorum is false"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(newStorage(t, 1))
			c.change(cfg)
			err := cfg.Validate()
			_, made := raft.NewRawNode(cfg)
			if c.want == nil {
				require.NoError(t, err)
				require.NoError(t, made)
				return
			}
			require.EqualError(t, made, err.Error())
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

// What a storage says about the past must make sense.
func TestRestartStateIsChecked(t *testing.T) {
	s := newStorage(t, 1)
	require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(3)), Commit: new(uint64(9))}))
	_, err := raft.NewRawNode(config(s))
	require.ErrorContains(t, err, "commit index 9, but the log covers [1, 1]")

	require.NoError(t, s.SetHardState(&pb.HardState{Term: new(uint64(3)), Commit: new(uint64(1))}))
	c := config(s)
	c.Applied = 7
	_, err = raft.NewRawNode(c)
	require.ErrorContains(t, err, "Config.Applied is 7; it must lie in [1, 1]")

	// Voter 1 is a learner too.
	bad := raft.NewMemoryStorage()
	require.NoError(t, bad.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1}, Learners: []uint64{1}},
	}}))
	_, err = raft.NewRawNode(config(bad))
	require.ErrorContains(t, err, "cannot be restored")
}

// With Rand a node is a function of its inputs; the timeout it draws lies in
// [ElectionTick, 2*ElectionTick).
func TestRandDrawsElectionTimeouts(t *testing.T) {
	ticksToCampaign := func(seed uint64) int {
		c := config(newStorage(t, 1, 2))
		c.Rand = rand.New(rand.NewPCG(seed, 0))
		rn := newNode(t, c)
		for n := 1; ; n++ {
			require.Less(t, n, 2*c.ElectionTick)
			if rn.Tick(); rn.BasicStatus().RaftState != raft.StateFollower {
				return n
			}
		}
	}
	seen := map[int]bool{}
	for seed := range uint64(200) {
		n := ticksToCampaign(seed)
		require.Equal(t, n, ticksToCampaign(seed))
		require.GreaterOrEqual(t, n, 10)
		seen[n] = true
	}
	require.Len(t, seen, 10, "all timeouts occur")
}

func TestNodePanicsOnBadConfig(t *testing.T) {
	require.Panics(t, func() { raft.StartNode(config(newStorage(t, 1)), nil) })
	require.Panics(t, func() { raft.RestartNode(&raft.Config{}) })
}
