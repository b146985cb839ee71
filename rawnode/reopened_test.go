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
	"github.com/weftraft/weft/storage"
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

// fullLog is a log that hangs in its first write, and then has no room for entries.
type fullLog struct {
	rawnode.Log
	hangs chan struct{}
}

func (l fullLog) Append(w storage.Write, done func(error)) error {
	<-l.hangs
	if len(w.Entries) > 0 {
		return storage.ErrBusy
	}
	return l.Log.Append(w, done)
}

// A host is stopped while an append waits for room, and behind the append a write that has the commit index of the append's
// entries, and no entries. There is room again in the moment in which the append is given up.
func TestWriteThatIsLeftOutIsNotPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, err := storage.Open("log", storage.Options{FS: vfs.NewMem(), Identity: storage.Identity{Cluster: 9, Node: 1}})
		require.NoError(t, err)
		group, err := engine.Group(1)
		require.NoError(t, err)
		net := newHub()
		open := func(log rawnode.Log) (*rawnode.Host, error) {
			return rawnode.New(rawnode.Config{
				Replica:      rawnode.ReplicaConfig{ID: 1, Group: 1, Peers: []uint64{1, 2, 3}, Boot: 1, Log: log},
				StateMachine: newCounts(1), TickInterval: bubbleTick, Transport: &plug{hub: net, id: 1},
			})
		}
		h, err := open(group) // begins the log
		require.NoError(t, err)
		require.NoError(t, h.Stop(within(time.Minute)))

		log := fullLog{group, make(chan struct{})}
		h, err = open(log)
		require.NoError(t, err)
		for _, m := range []*pb.Message{
			{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(5))},
			{Type: pb.MsgApp.Enum(), From: new(uint64(2)), Term: new(uint64(5)), Index: new(uint64(1)), LogTerm: new(uint64(1)), Commit: new(uint64(2)),
				Entries: []*pb.Entry{{Term: new(uint64(5)), Index: new(uint64(2))}}},
			{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(3)), Term: new(uint64(6))},
		} {
			m.To = new(uint64(1))
			h.Receive(wire.Message{Group: 1, From: m.GetFrom(), To: 1, Body: wire.Raft{Message: m}})
			synctest.Wait()
		}
		close(log.hangs)
		synctest.Wait()
		hs, _, err := group.InitialState()
		require.NoError(t, err)
		require.Equal(t, uint64(5), hs.GetTerm(), "the first write is there, and the second one waits")
		require.NoError(t, h.Stop(within(time.Minute)))

		h, err = open(group)
		require.NoError(t, err)
		require.NoError(t, h.Stop(within(time.Minute)))
		require.NoError(t, engine.Close())
		time.Sleep(2 * bubbleTick) // the shared timer ends
	})
}
