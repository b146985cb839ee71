// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// ownRestore is a state with a Restore given by the test.
type ownRestore struct {
	*counts
	restore func(io.Reader) error
}

func (o ownRestore) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	if err := o.restore(body); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state.Index, o.state.Host = meta.Index, meta.Host
	return nil
}

// Groups share the connection that brings snapshots. A group that takes no chunk, and a group that
// stops before the end, block neither the snapshots of other groups nor the end of the transport.
func TestSnapshotsPassThoseOfAStuckGroup(t *testing.T) {
	sender := openTransport(t, 9, 1)
	receiver, err := transport.New(transport.Config{Cluster: 9, Node: 2, Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	sender.SetPeer(2, receiver.Addr().String())
	receiver.SetPeer(1, "")
	engine := openEngine(t, 9, 2)
	stuck := make(chan struct{})
	var hosts []*rawnode.Host
	for i, restore := range []func(io.Reader) error{
		func(body io.Reader) error { <-stuck; _, err := io.ReadAll(body); return err },
		func(io.Reader) error { return nil },
		func(body io.Reader) error { _, err := io.ReadAll(body); return err },
	} {
		group, timeout := uint64(i+1), time.Minute // each chunk is sent once, and the machine may be slow
		if group == 1 {
			timeout = 200 * time.Millisecond
		}
		log := openGroup(t, engine, group)
		require.NoError(t, log.AppendWait(t.Context(), storage.Write{HardState: &pb.HardState{Term: new(uint64(5))}})) // it has heard of a leader
		h, err := rawnode.New(rawnode.Config{
			Replica:      rawnode.ReplicaConfig{ID: 2, Group: group, Log: log},
			StateMachine: ownRestore{newCounts(10), restore}, Transport: receiver, TickInterval: hostTick, SnapshotTimeout: timeout,
		})
		require.NoError(t, err)
		hosts = append(hosts, h)
	}
	for number := range uint64(3) {
		for group := range uint64(3) {
			c := wire.Chunk{Stream: 7, Number: number, Data: make([]byte, 1<<20), Last: number == 2}
			if number == 0 {
				c.Header = rawnode.SnapshotOf(1, 2, 5, 50)
			}
			require.NoError(t, sender.SendWait(within(time.Minute), wire.Message{Group: group + 1, From: 1, To: 2, Body: c}))
		}
	}
	for _, h := range hosts[1:] {
		require.Eventually(t, func() bool { return h.Status().Counters.SnapshotsInstalled == 1 }, time.Minute, hostTick)
	}
	require.Zero(t, hosts[0].Status().Counters.SnapshotsInstalled)
	close(stuck)
	for _, h := range hosts {
		require.NoError(t, h.Stop(within(time.Minute)))
	}
	require.NoError(t, receiver.Close())
}
