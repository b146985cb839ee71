// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/rawnode/wire"
)

// tapped is a transport whose other end is the test.
type tapped struct {
	out  chan wire.Message
	seen map[uint64]wire.ChunkStatus // by stream
}

func (t tapped) Join(uint64, Receiver) error { return nil }
func (t tapped) Leave(uint64)                {}
func (t tapped) Send(messages []wire.Message) {
	for _, m := range messages {
		t.out <- m
	}
}

func (t tapped) SendWait(ctx context.Context, m wire.Message) error {
	select {
	case t.out <- m:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// status returns the word on a stream, whichever comes first.
func (t tapped) status(test *testing.T, stream uint64) wire.ChunkStatus {
	test.Helper()
	timeout := time.After(time.Minute)
	for {
		if s, ok := t.seen[stream]; ok {
			return s
		}
		select {
		case m := <-t.out:
			if s, ok := m.Body.(wire.ChunkStatus); ok {
				t.seen[s.Stream] = s
			}
		case <-timeout:
			test.Fatalf("no word on stream %d", stream)
		}
	}
}

// A leader that died in the middle of a snapshot does not keep its successor's
// out: that is refused once, and taken when it comes again.
func TestSnapshotOfALaterLeader(t *testing.T) {
	tr := tapped{make(chan wire.Message, 10_000), map[uint64]wire.ChunkStatus{}}
	h, err := New(Config{
		Replica:      ReplicaConfig{ID: 1, Group: 7, Log: newMemLog()},
		StateMachine: &journal{}, Transport: tr, TickInterval: time.Second, SnapshotTimeout: time.Hour,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Stop(t.Context())) }()
	first := func(from, term, stream uint64, last bool) {
		state := hostState{at: logMark{term: term, index: 50}, conf: pb.EnsureConfState(&pb.ConfState{Voters: []uint64{1, 2, 3}})}
		header := &pb.Message{Type: pb.MsgSnap.Enum(), From: &from, To: new(uint64(1)), Term: &term,
			Snapshot: &pb.Snapshot{Metadata: state.mark().meta(), Data: state.encode()}}
		h.Receive(wire.Message{Group: 7, From: from, To: 1, Body: wire.Chunk{Stream: stream, Header: header, Data: []byte("a command"), Last: last}})
	}
	first(2, 5, 20, false)
	first(3, 5, 30, false)
	require.Contains(t, tr.status(t, 30).Reason, "restoring another snapshot", "of the same term")
	first(3, 6, 31, false)
	require.False(t, tr.status(t, 31).OK)
	require.Contains(t, tr.status(t, 20).Reason, "node 3 leads since")
	first(3, 6, 32, true)
	require.True(t, tr.status(t, 32).OK)
	require.EqualValues(t, 1, h.Status().Counters.SnapshotsInstalled)
}

// A leader whose snapshot was refused does not send the next at once.
func TestRefusedSnapshotWaits(t *testing.T) {
	s := snapshotsOut{h: &Host{context: t.Context(), cfg: Config{TickInterval: 10 * time.Millisecond, Replica: ReplicaConfig{ElectionTick: 5}}}}
	begin := time.Now()
	s.pause(refusedBy(2, wire.ChunkStatus{Reason: "busy"}))
	require.GreaterOrEqual(t, time.Since(begin), 50*time.Millisecond)
	s.h.cfg.TickInterval = time.Hour // none of these waits
	s.pause(errOutgoingFull)
	s.pause(nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.h.context = ended // the host stops
	s.pause(refusedBy(2, wire.ChunkStatus{Reason: "busy"}))
}
