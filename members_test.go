// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/rawnode"
)

// nothing is a state.
type nothing struct{}

func (*nothing) Apply([]byte) any      { return nil }
func (*nothing) Write(io.Writer) error { return nil }
func (*nothing) Read(io.Reader) error  { return nil }

// alone opens a group of one node.
func alone(t *testing.T, o Options) *Group {
	o.Cluster, o.ID, o.Dir, o.Listen = 7, 1, t.TempDir(), "127.0.0.1:0"
	n, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close(context.Background())) })
	g, err := Replicate(n, 1, func() *nothing { return &nothing{} })
	require.NoError(t, err)
	return g.Group
}

// joint is a configuration that is being left.
var joint = &pb.ConfState{Voters: []uint64{1, 2}, VotersOutgoing: []uint64{1, 3}, AutoLeave: new(true)}

// A change of members that is in force, but for the end of its joint configuration, is never refused: the group comes to
// the end without the caller. A call that waits before it changes anything is refused.
func TestVerdictOfAJointConfiguration(t *testing.T) {
	g := alone(t, Options{})
	check := func(ctx context.Context, cause error) {
		t.Helper()
		err := g.tryAlter(ctx, func(*rawnode.Host, context.Context, pb.ConfChangeI) (*pb.ConfState, error) { return joint, nil })
		require.ErrorIs(t, err, ErrUnknown)
		require.NotErrorIs(t, err, ErrRefused)
		require.ErrorIs(t, err, cause)
		err = g.awaitLeft(ctx, joint, ErrRefused)
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorIs(t, err, cause)
	}
	ended, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	check(ended, ErrTimeout)
	require.NoError(t, g.Close(t.Context()))
	check(t.Context(), ErrStopped)
}

// A change that was unsafe is asked for again a tick later: a learner gets its vote as soon as it has the state, also
// with a long election timeout.
func TestUnsafeChangeIsAskedForEachTick(t *testing.T) {
	g := alone(t, Options{TickInterval: time.Millisecond, ElectionTicks: maxElection})
	ctx, cancel := context.WithTimeout(t.Context(), maxElection*time.Millisecond/2)
	defer cancel()
	tries, enough := 0, 5
	err := g.tryAlter(ctx, func(*rawnode.Host, context.Context, pb.ConfChangeI) (*pb.ConfState, error) {
		if tries++; tries < enough {
			return nil, refused("propose", fmt.Errorf("%w: %w", ErrConfChange, ErrUnsafeChange))
		}
		return &pb.ConfState{}, nil
	})
	require.NoError(t, err)
	require.Equal(t, enough, tries)
}
