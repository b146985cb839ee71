// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// A host has given its vote, and the vote waits for a disk that hangs, when the host is stopped and another one is
// started on the same log, in the same process. The log shows the vote. If the second host repeated the vote before it is
// durable, a power failure would make the node vote twice in a term.
func TestHostBehindAnotherWaitsForItsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, disk, votes := newHub(), newGate(), 0
		net.lose = func(m wire.Message) bool {
			if r, ok := m.Body.(wire.Raft); ok && r.GetType() == pb.MsgVoteResp && !r.GetReject() {
				votes++
			}
			return true
		}
		cfg := rawnode.Config{
			Replica:      rawnode.ReplicaConfig{ID: 1, Group: 1, Peers: []uint64{1, 2, 3}, Boot: 1},
			StateMachine: newCounts(1), TickInterval: bubbleTick,
		}
		engine := gatedLog(t, &cfg, vfs.NewMem(), disk)
		log, err := engine.Group(1)
		require.NoError(t, err)
		cfg.Replica.Log = log
		ask := wire.Message{Group: 1, From: 2, To: 1, Body: wire.Raft{Message: &pb.Message{
			Type: pb.MsgVote.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(5)), LogTerm: new(uint64(1)), Index: new(uint64(1)),
		}}}
		open := func() *rawnode.Host {
			cfg.Transport = &plug{hub: net, id: 1}
			h, err := rawnode.New(cfg)
			require.NoError(t, err)
			return h
		}
		first := open()
		disk.set(true)
		first.Receive(ask)
		synctest.Wait()
		require.NoError(t, first.Stop(within(time.Minute)))

		second := make(chan *rawnode.Host)
		go func() {
			h := open()
			h.Receive(ask)
			second <- h
		}()
		time.Sleep(electionTimeout)
		require.Zero(t, votes)
		disk.set(false)
		h := <-second
		synctest.Wait()
		require.Equal(t, 1, votes)
		require.NoError(t, h.Stop(within(time.Minute)))
		require.NoError(t, engine.Close())
		time.Sleep(2 * bubbleTick) // the shared timer ends
	})
}
