// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// pushed is a message of units that nobody asked for.
func pushed(from, to uint64, size int) wire.Message {
	return wire.Message{Group: 1, From: from, To: to, Body: wire.Raft{Message: &pb.Message{
		Type: raft.MsgUnits.Enum(), From: &from, To: &to, Context: []byte("p"),
		Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(uint64(1)), Data: make([]byte, size)}},
	}}}
}

// Pushed units that find no room are dropped, and nobody is called unreachable
// for it: whoever misses them asks.
func TestPushedUnitsMayBeDropped(t *testing.T) {
	l := listen(t)
	heartbeats := (&reluctant{}).serve(t, l)
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", WriteTimeout: time.Minute,
		Peers:      map[uint64]string{2: l.Addr().String()},
		QueueBytes: [wire.NumClasses]int{1 << 20, 1 << 20, 1 << 20, 100_000}})
	eventually(t, "the queue is full", func() bool {
		for range 10 {
			a.Send([]wire.Message{pushed(1, 2, 60_000)})
		}
		return a.Stats().Peers[2][wire.ClassBackground].Dropped[dropFull.String()] > 100
	})
	require.LessOrEqual(t, a.Stats().Peers[2][wire.ClassBackground].QueueBytes, 100_000)
	a.Send([]wire.Message{heartbeat(1, 2)})
	select {
	case <-heartbeats:
	case <-time.After(patience):
		t.Fatal("its heartbeats wait behind units")
	}
	select {
	case peer := <-box.lost:
		t.Fatalf("node %d was called unreachable", peer)
	default:
	}
}

// The background waits while appends wait, and not for ever.
func TestBackgroundGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &TCP{cfg: Config{}.withDefaults(), context: t.Context()}
		p := tr.newPeer(2, "")
		appends, s := newLink(tr, p, wire.ClassAppend), sender{link: newLink(tr, p, wire.ClassBackground)}
		waits := func() time.Duration {
			start := time.Now()
			s.giveWay()
			return time.Since(start)
		}
		require.Zero(t, waits(), "there are no appends")
		p.sending[wire.ClassAppend].Store(appends)
		require.Zero(t, waits(), "none waits")

		require.NoError(t, appends.offer(queued{msg: pushed(1, 2, 10), size: 10}))
		require.Equal(t, givesWay, waits(), "one waits and waits")

		gone, _ := appends.takeToWrite(nil, 1000)
		go func() {
			time.Sleep(givesWay / 2)
			appends.release(gone)
		}()
		require.Equal(t, givesWay/2, waits(), "it is written")

		s.class = wire.ClassAppend
		require.NoError(t, appends.offer(queued{msg: pushed(1, 2, 10), size: 10}))
		require.Zero(t, waits(), "appends do not wait for themselves")
	})
}
