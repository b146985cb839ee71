// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// slowResolver resolves each message of class append when it is asked for the
// second time, and drops some.
type slowResolver struct {
	seen    map[*pb.Message]bool
	dropOne bool
}

func (s *slowResolver) Resolve(m wire.Message, _ time.Duration) (wire.Message, Resolution) {
	b, ok := m.Body.(wire.Raft)
	switch {
	case !ok || m.Class() != wire.ClassAppend:
		return m, asResolved
	case s.dropOne:
		s.dropOne = false
		return m, asDropped
	case s.seen[b.Message]:
		return m, asResolved
	}
	s.seen[b.Message] = true
	return m, asUnresolved
}

// keepOrder fails if messages of one peer and class change places.
type keepOrder struct {
	t    *testing.T
	last map[wire.Class]uint64
}

func (k *keepOrder) note(m wire.Message) {
	n := m.Group // the tests use it as a number
	require.Greater(k.t, n, k.last[m.Class()], "order in class %v", m.Class())
	k.last[m.Class()] = n
}

// Messages wait in their lanes, and no lane waits for another; what finds no room
// is refused.
func TestResolveStage(t *testing.T) {
	s := resolveStage{resolver: &slowResolver{seen: map[*pb.Message]bool{}}, limit: 3000}
	order := &keepOrder{t, map[wire.Class]uint64{}}
	appendTo := func(n uint64, bytes int) wire.Message {
		m := &pb.Message{Type: pb.MsgApp.Enum(), Entries: []*pb.Entry{{Data: make([]byte, bytes)}}}
		return wire.Message{Group: n, From: 2, To: 1, Body: wire.Raft{Message: m}}
	}
	for n := range uint64(3) {
		_, resolved, err := s.offer(appendTo(n+1, 100), 0, nil)
		require.NoError(t, err)
		require.Equal(t, asUnresolved, resolved)
		m, resolved, err := s.offer(wire.Message{Group: n + 1, From: 2, To: 1, Body: wire.Transfer{}}, 0, nil)
		require.NoError(t, err)
		require.Equal(t, asResolved, resolved, "another class does not wait")
		order.note(m)
	}
	_, resolved, err := s.offer(appendTo(9, 1000), 0, nil)
	require.ErrorIs(t, err, ErrOverloaded)
	require.Equal(t, asDropped, resolved)
	require.Equal(t, 3, s.stats.Length)
	require.Equal(t, 3*(384+128+100), s.stats.Waiting)
	require.Equal(t, uint64(1), s.stats.Refused)
	s.again(time.Second, nil, func(m wire.Message, _ Resolution) { order.note(m) })
	require.Equal(t, uint64(1), order.last[wire.ClassAppend], "the next has been asked for once")
	for range 2 {
		s.again(time.Second, nil, func(m wire.Message, _ Resolution) { order.note(m) })
	}
	require.Equal(t, uint64(3), order.last[wire.ClassAppend])
	require.Empty(t, s.lanes)
	require.Zero(t, s.stats.Waiting)
	require.Equal(t, uint64(6), s.stats.Items)
	require.Equal(t, 3*time.Second, s.stats.Queued)
}

// A group works with a resolver that takes its time and loses messages.
func TestReplicaResolves(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		slow := &slowResolver{seen: map[*pb.Message]bool{}}
		for _, id := range c.ids() {
			c.nodes[id].cfg.Resolve = slow
			c.start(c.nodes[id])
		}
		c.elect(1)
		var calls []Call
		for i := range 10 {
			slow.dropOne = i == 5
			calls = append(calls, c.propose(uint64(i%3+1), fmt.Sprint(i)))
			c.run(1)
		}
		c.run(30)
		for _, call := range calls {
			require.NoError(t, c.result(call).Err)
		}
		require.Len(t, c.agree(), 10)
		require.NotZero(t, c.nodes[2].r.Status().Resolve.Queued)
	})
}

// everyOther loses half of the appends, and says so.
type everyOther struct{ n int }

func (e *everyOther) Bundle(turn []wire.Message, _ time.Duration) (send, dropped []wire.Message) {
	for _, m := range turn {
		if e.n++; m.Class() == wire.ClassAppend && e.n%2 == 0 {
			dropped = append(dropped, m)
		} else {
			send = append(send, m)
		}
	}
	return send, dropped
}

// What the send stage drops is reported, so that the core sends it again without
// waiting for anything.
func TestReplicaBundles(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.nodes[1].cfg.Bundle = &everyOther{}
		c.start(c.nodes[1])
		c.elect(1)
		for i := range 20 {
			c.propose(1, fmt.Sprint(i))
			c.settle()
		}
		c.run(10)
		require.Len(t, c.agree(), 20)
		require.NotZero(t, c.nodes[1].r.Status().Send.Items)
	})
}

// A turn's messages are bounded; control messages always pass.
func TestSendStageBound(t *testing.T) {
	s := sendStage{limit: 1000}
	large := wire.Message{To: 2, Body: wire.Proposal{Data: make([]byte, 600)}}
	small := wire.Message{To: 3, Body: wire.Transfer{}}
	send, dropped := s.turn([]wire.Message{large, small, large, small}, 0, nil)
	require.Equal(t, []wire.Message{large, small, small}, send)
	require.Equal(t, []wire.Message{large}, dropped)
	require.Equal(t, uint64(1), s.stats.Refused)
	require.Equal(t, uint64(3), s.stats.Items)
}
