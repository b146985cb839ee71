// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// viewed counts the snapshots of a state that were opened.
type viewed struct {
	*counts
	views atomic.Int64
}

// Snapshot implements rawnode.StateMachine.
func (v *viewed) Snapshot() (rawnode.Snapshot, error) {
	v.views.Add(1)
	return v.counts.Snapshot()
}

// source runs a group, and gives f the leader, its state, and what brings the leader a message of a member that
// fetches a snapshot. The member itself is cut off, and takes no part.
func source(t *testing.T, f func(t *testing.T, h *rawnode.Host, state *viewed, take func(wire.Body))) {
	states := map[uint64]*viewed{}
	inBubble(t, 3, func(cfg *rawnode.Config) {
		state := &viewed{counts: newCounts(1)}
		states[cfg.Replica.ID], cfg.StateMachine = state, state
	}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
		must(t, hosts[1], "a command")
		lead := hosts[1].Status().Lead
		member := lead%3 + 1
		net.setCut(member, true)
		f(t, hosts[lead], states[lead], func(body wire.Body) {
			hosts[lead].Receive(wire.Message{Group: 1, From: member, To: lead, Body: body})
			synctest.Wait()
		})
	})
}

// fetches are the messages of a member that fetches by a stream.
func fetches(h *rawnode.Host) (ask, take wire.Fetch) {
	f := wire.Fetch{Stream: 1<<63 | 5, Term: h.Status().Term, Index: 1}
	ask, take = f, f
	ask.Step, take.Step, take.Until = wire.FetchAsk, wire.FetchTake, 16
	return ask, take
}

// A transport may bring a message when the host has ended. A stream that began then would read a state that may be
// closed, and would end the host a second time.
func TestNothingIsFetchedFromAHostThatHasEnded(t *testing.T) {
	source(t, func(t *testing.T, h *rawnode.Host, state *viewed, receive func(wire.Body)) {
		ask, take := fetches(h)
		receive(ask)
		require.NoError(t, h.Stop(within(time.Minute)))
		receive(take)
		require.Zero(t, state.views.Load())
	})
}

// The first message of a stream that has ended comes again, by a network that doubles it. A second beginning would send
// pieces of another state under the numbers of the first.
func TestStreamOfASnapshotBeginsOnce(t *testing.T) {
	source(t, func(t *testing.T, h *rawnode.Host, state *viewed, receive func(wire.Body)) {
		ask, take := fetches(h)
		receive(take)
		require.Zero(t, state.views.Load(), "the question has not come")
		receive(ask)
		receive(take)
		require.EqualValues(t, 1, state.views.Load())
		receive(wire.ChunkStatus{Stream: take.Stream, Reason: "not taken"})
		receive(take)
		require.EqualValues(t, 1, state.views.Load())
		receive(ask)
		receive(take)
		require.EqualValues(t, 1, state.views.Load(), "nor if the question has come again, too")
	})
}
