// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
)

// lockedLog keeps the output of a logger.
type lockedLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// For any number of refused messages of a peer, the log gets a few lines, and the counter counts
// each message.
func TestRefusedMessagesDoNotFillTheLog(t *testing.T) {
	log := &lockedLog{}
	h, err := New(Config{
		Replica: ReplicaConfig{ID: 1, Group: 1, Log: replicatest.NewMemLog(), Peers: []uint64{1}}, StateMachine: &journal{},
		Transport: tapped{make(chan wire.Message, 10_000), nil}, TickInterval: 10 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Stop(t.Context())) }()
	const n = 2000
	for i := range n {
		from := uint64(2 + i%2)
		h.Receive(wire.Message{Group: 1, From: from, To: 1, Body: wire.Raft{Message: &pb.Message{
			Type: pb.MsgProp.Enum(), From: &from, To: new(uint64(1)), Term: new(uint64(1))}}})
	}
	require.Equal(t, uint64(n), h.Status().Counters.BadMessages)
	const few = 8 // lines are 1, 2, 4 seconds apart
	for _, from := range []string{"from node 2", "from node 3"} {
		require.NotZero(t, log.count(from))
		require.Less(t, log.count(from), few)
	}
}
