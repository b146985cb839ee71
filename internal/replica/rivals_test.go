// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// fixedCore is a core in a state.
type fixedCore CoreState

func (c *fixedCore) State() CoreState { return CoreState(*c) }
func (c *fixedCore) Members() (tracker.Config, map[uint64]tracker.Progress) {
	return tracker.Config{}, nil
}

func TestRivalsGoOneAfterTheOther(t *testing.T) {
	core := &fixedCore{}
	f := &facts{cfg: Config{Settings: Settings{ID: 2, ElectionTick: 10}}, core: core, last: 7, ticks: 100}
	v := rivals{facts: f}
	asks := func(from, index uint64) { v.asked(&pb.Message{From: &from, Index: &index}) }
	becomes := func(role raft.StateType, term uint64) {
		core.Role, core.Term = role, term
		f.state = core.State()
	}

	becomes(raft.StateFollower, 4)
	asks(1, 6)
	require.False(t, v.wait(), "a node with a shorter log is no rival")
	asks(3, 7)
	require.True(t, v.wait())
	f.ticks += 2
	asks(3, 7)
	f.ticks++
	require.False(t, v.wait(), "a wait ends, however often a node asks")

	becomes(raft.StatePreCandidate, 4)
	asks(3, 7)
	require.False(t, v.yields, "the larger id yields")
	f.ticks += 3
	asks(1, 7)
	require.True(t, v.yields)
	require.False(t, v.again())
	f.ticks += 3
	require.True(t, v.again())
	require.False(t, v.again(), "once")
	asks(1, 7)
	require.False(t, v.yields, "once in a term")

	becomes(raft.StatePreCandidate, 5)
	f.ticks += 3
	asks(1, 7)
	becomes(raft.StateFollower, 6)
	f.ticks += 3
	require.False(t, v.again(), "the rival has won")
	require.EqualValues(t, 2, v.count.Yields)
}
