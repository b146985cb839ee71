// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// A source sends its state for an offer of its own term, or of a later term: the state may hold
// what a leader of an earlier term does not have.
func TestSourceRefusesOffersOfEarlierTerms(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		write(c, 3)
		r := c.nodes[3].r
		term, index := r.state.Term, r.host.at.index
		require.NoError(t, r.Provides(wire.Fetch{Term: term, Index: index}))
		require.NoError(t, r.Provides(wire.Fetch{Term: term + 1, Index: 1}))
		require.ErrorContains(t, r.Provides(wire.Fetch{Term: term - 1, Index: index}), "the snapshot was offered in term")
		require.ErrorContains(t, r.Provides(wire.Fetch{Term: term, Index: index + 1}), "applied up to index")
	})
}

// The header of a fetched snapshot reaches the offer's index, and has the follower as a member: a
// core restores no snapshot of a group without itself.
func TestFetchedHeaderFitsItsReceiver(t *testing.T) {
	meta := SnapshotMeta{Index: 50, Host: HostBytes(3, 50, pb.EnsureConfState(&pb.ConfState{Voters: []uint64{1, 2}, Learners: []uint64{4}}))}
	for _, to := range []uint64{2, 4} {
		h, err := FetchHeader(to, wire.Fetch{Term: 5, Index: 50}, meta)
		require.NoError(t, err)
		require.EqualValues(t, 50, h.GetSnapshot().GetMetadata().GetIndex())
		require.Equal(t, to, h.GetTo())
	}
	_, err := FetchHeader(3, wire.Fetch{Term: 5, Index: 50}, meta)
	require.ErrorIs(t, err, ErrNotMember)
	_, err = FetchHeader(2, wire.Fetch{Term: 5, Index: 51}, meta)
	require.ErrorContains(t, err, "applied up to index 50, want 51")
}

// An offer that cannot be is counted, an offer of an earlier leader is refused, and if this node
// has applied as much, the leader hears so from the core.
func TestOffersAreCheckedBeforeTheyAreFollowed(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		write(c, 3)
		r := c.nodes[3].r
		term, index := r.state.Term, r.host.at.index
		for i, o := range []wire.Offer{{Term: 0, Index: 9}, {Term: math.MaxUint64, Index: 9}, {Term: term}} {
			require.ErrorIs(t, r.OfferedFetch(1, o), ErrBadMessage)
			require.EqualValues(t, i+1, r.count.BadMessages)
		}
		require.ErrorContains(t, r.OfferedFetch(2, wire.Offer{Term: term - 1, Index: index + 9}), "was offered in term")
		require.NoError(t, r.OfferedFetch(1, wire.Offer{Term: term, Index: index + 1}))
		require.ErrorIs(t, r.OfferedFetch(1, wire.Offer{Term: term, Index: index}), ErrNotNeeded)
		answered := false
		c.lose = func(m wire.Message) bool {
			b, ok := m.Body.(wire.Raft)
			answered = answered || ok && m.From == 3 && m.To == 1 && b.GetType() == pb.MsgAppResp && b.GetIndex() >= index
			return false
		}
		c.run(2)
		require.True(t, answered)
	})
}
