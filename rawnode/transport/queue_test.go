// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

func queuedAppend(group, index uint64) queued {
	m := appends(1, 2, index, 10)
	m.Group = group
	return queued{msg: m, size: m.Size()}
}

// A leader that goes back leaves no copies behind in the queue.
func TestQueueForgetsCopies(t *testing.T) {
	var q queue
	put := func(m queued) (messages int) {
		messages, _ = q.supersede(m.msg)
		q.put(m)
		return messages
	}
	other := queued{msg: heartbeat(1, 2), size: 10}
	for _, m := range []queued{queuedAppend(1, 10), queuedAppend(2, 10), queuedAppend(1, 13), other, queuedAppend(1, 16)} {
		require.Zero(t, put(m))
	}
	require.Equal(t, 3, put(queuedAppend(1, 10)))
	require.Equal(t, 3, q.len())
	require.Equal(t, []queued{queuedAppend(2, 10), other, queuedAppend(1, 10)}, q.take(nil, 1<<20))
	require.Zero(t, put(queuedAppend(1, 5)), "what was taken is on its way")
}

// Whatever is put in and taken out: what comes out is what went in and was not
// superseded, in order, and the sizes add up.
func TestQueueModel(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var q queue
		var model []queued
		next := [3]uint64{}
		for range 300 {
			if rng.IntN(3) == 0 {
				most := rng.IntN(2000)
				got := q.take(nil, most)
				require.True(t, len(got) > 0 || len(model) == 0)
				if len(got) > 0 {
					require.Equal(t, model[:len(got)], got)
				}
				sum := 0
				for _, m := range got {
					sum += m.size
				}
				require.True(t, len(got) <= 1 || sum <= most)
				model = model[len(got):]
				continue
			}
			group := rng.IntN(len(next))
			if rng.IntN(20) == 0 {
				next[group] -= min(next[group], uint64(rng.IntN(5)))
			} else {
				next[group]++
			}
			m := queuedAppend(uint64(group), next[group])
			var kept []queued
			removed, bytes := 0, 0
			for _, old := range model {
				if old.msg.Group == m.msg.Group && old.msg.Body.(wire.Raft).GetIndex() >= next[group] {
					removed++
					bytes += old.size
				} else {
					kept = append(kept, old)
				}
			}
			messages, freed := q.supersede(m.msg)
			require.Equal(t, []int{removed, bytes}, []int{messages, freed})
			q.put(m)
			model = append(kept, m)
			require.Equal(t, len(model), q.len())
		}
	}
}

// On a connection: the gauges follow, and the peer gets no copy.
func TestSupersededAppends(t *testing.T) {
	l := listen(t)
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()}})
	// The dial waits for an answer to its hello, and the queue with it.
	send := func(index uint64) { a.Send([]wire.Message{appends(1, 2, index, 1000)}) }
	for _, index := range []uint64{10, 13, 16, 10, 14} {
		send(index)
	}
	s := a.Stats().Peers[2][wire.ClassAppend]
	require.Equal(t, uint64(3), s.Superseded)
	require.Equal(t, 2, s.QueueMessages)
	require.Less(t, s.QueueBytes, 2500)
	c, err := l.Accept()
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = wire.ReadHello(c)
	require.NoError(t, err)
	require.NoError(t, wire.Answer{Kinds: wire.AllKinds}.Write(c))
	payload, err := wire.ReadFrame(c, wire.FrameMessages, 1<<20, nil)
	require.NoError(t, err)
	var got []uint64
	_, err = wire.DecodeMessages(payload, func(m wire.Message) { got = append(got, m.Body.(wire.Raft).GetIndex()) })
	require.NoError(t, err)
	require.Equal(t, []uint64{10, 14}, got)
	require.Empty(t, box.lost, "it is nothing to report: the leader sends it again")
}

// Frames keep to the bound, also when many small messages wait.
func TestFramesKeepToTheBound(t *testing.T) {
	la, lb := listen(t), listen(t)
	peers := map[uint64]string{1: la.Addr().String(), 2: lb.Addr().String()}
	a, _ := start(t, Config{Node: 1, Listener: la, Peers: peers, MaxFrameBytes: 4 << 10})
	b, box := start(t, Config{Node: 2, Listener: lb, Peers: peers, MaxFrameBytes: 4 << 10})
	for i := range uint64(500) {
		a.Send([]wire.Message{appends(1, 2, i, 1000)})
	}
	for i := range uint64(500) {
		require.Equal(t, i, box.next(t).Body.(wire.Raft).GetIndex())
	}
	require.Zero(t, b.Stats().BadFrames)
}
