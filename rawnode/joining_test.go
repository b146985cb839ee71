// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
)

// hasty is a transport that brings a gateway's query before Join returns, and waits until all of its work is done.
type hasty struct{ tapped }

func (hasty) Join(_ uint64, r Receiver) error {
	h := r.(*Host)
	h.ReceiveNext(wire.Message{Group: 7, From: 9, To: 1, Body: wire.Query{Life: 1, Number: 1, Policy: wire.QueryLocal, Patience: time.Minute}})
	h.Received(false)
	synctest.Wait()
	return nil
}

// What a message wants done may be over before the host's loop begins: the host has not ended for that.
func TestHostIsAskedBeforeItsLoopBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tick = 13 * time.Millisecond
		tr := tapped{make(chan wire.Message, 10_000), nil}
		h, err := New(Config{
			Replica: ReplicaConfig{ID: 1, Group: 7, Log: replicatest.NewMemLog(), Peers: []uint64{1}}, StateMachine: &journal{},
			Transport: hasty{tr}, TickInterval: tick,
		})
		require.NoError(t, err)
		require.Equal(t, wire.NoQueries, (<-tr.out).Body.(wire.Reply).Code)
		require.False(t, h.hasEnded())
		_, err = h.Propose(t.Context(), []byte("command"))
		require.NoError(t, err)
		require.NoError(t, h.Stop(t.Context()))
		time.Sleep(2 * tick) // the shared timer ends
	})
}
