// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
)

// received returns a message from node 2 to node 1.
func received(typ pb.MessageType) wire.Message {
	return wire.Message{Group: 7, From: 2, To: 1, Body: wire.Raft{Message: &pb.Message{
		Type: typ.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(9)),
	}}}
}

// Beyond the bound, control messages are dropped, and a message of another class makes its
// connection wait, until there is room or the inbox is closed.
func TestInboxBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(typ pb.MessageType) wire.Message { return received(typ) }
		size := replica.MemoryOf(of(pb.MsgApp))
		b := newInbox(inboxLimits{messages: 3 * size})
		for range 5 {
			b.receive(of(pb.MsgHeartbeat))
		}
		st, dropped := b.statistics()
		require.Equal(t, uint64(2), dropped)
		require.Equal(t, 3, st.Length)

		got := 0
		go func() {
			for range 7 {
				b.receive(of(pb.MsgApp))
				got++
			}
		}()
		synctest.Wait()
		require.Equal(t, 3, got)
		time.Sleep(time.Second)
		items := b.take(nil, time.Now())
		require.Len(t, items, 6)
		require.True(t, b.post(func(*replica.Replica) {}), "calls do not wait")
		synctest.Wait()
		require.Equal(t, 6, got)
		st, _ = b.statistics()
		require.Equal(t, time.Second, st.Queued, "the age of the oldest")

		require.Len(t, b.close(), 4)
		synctest.Wait()
		require.Equal(t, 7, got, "all are let go")
		require.False(t, b.post(func(*replica.Replica) {}))
	})
}

// Connections break again and again while a turn hangs, and tell each group each time. A turn has one word on each peer.
func TestInboxHasOneWordOnEachPeerThatIsUnreachable(t *testing.T) {
	h := &Host{inbox: newInbox(inboxLimits{}), out: &snapshotsOut{}}
	for range 2 {
		for range 1000 {
			h.Unreachable(2)
			h.Unreachable(3)
		}
		st, _ := h.inbox.statistics()
		require.Equal(t, 2, st.Length)
		require.Len(t, h.inbox.take(nil, time.Now()), 2, "what is lost during a turn is for the next")
	}
	h.inbox.close()
	h.Unreachable(2)
	require.Empty(t, h.inbox.items)
}

// The inbox refuses a call when the waiting calls have reached their bound.
func TestInboxRefusesCalls(t *testing.T) {
	budget := NewBudget(30)
	b := newInbox(inboxLimits{calls: 3, callBytes: 10, budget: budget})
	call := func(n int) *hostCall { return &hostCall{command: make([]byte, n)} }
	require.NoError(t, b.call(call(25)), "a single larger call passes the inbox; the replica refuses the call")
	require.ErrorIs(t, b.call(call(1)), ErrOverloaded)
	require.Len(t, b.take(nil, time.Now()), 1)
	require.NoError(t, b.call(call(4)))
	require.NoError(t, b.call(call(4)))
	require.ErrorIs(t, b.call(call(4)), ErrOverloaded)
	require.NoError(t, b.call(call(0)))
	require.ErrorIs(t, b.call(call(0)), ErrOverloaded)
	st, _ := b.statistics()
	require.Equal(t, uint64(3), st.Refused)
	require.Equal(t, 8, st.Waiting)
	require.Equal(t, int64(8), budget.Used())
	other := newInbox(inboxLimits{calls: 3, callBytes: 100, budget: budget})
	require.ErrorIs(t, other.call(call(23)), ErrOverloaded)
	require.Equal(t, uint64(1), budget.Refused())
	b.close()
	require.Zero(t, budget.Used())
	require.ErrorIs(t, b.call(call(1)), ErrStopped)
}

func TestStageWorksInOrderAndItsIdleGoroutineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done []int
		running := 0
		s := newStage(func(f func()) {
			running++
			go func() {
				f()
				running--
			}()
		}, func(i int) {
			time.Sleep(time.Second)
			done = append(done, i)
		})
		require.Zero(t, running, "no work, no goroutine")
		for i := range 3 {
			s.put(i, 10)
		}
		st := s.statistics()
		require.Equal(t, 3, st.Length)
		require.Equal(t, 30, st.Waiting)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, done, "in order")
		require.Equal(t, StageStats{Items: 3, Bytes: 30, Busy: 3 * time.Second, Queued: 3 * time.Second}, s.statistics())
		require.Equal(t, 1, running, "the goroutine waits for more work")
		for range lingers {
			s.reap()
		}
		synctest.Wait()
		require.Zero(t, running)
		s.put(3, 10)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3}, done)
		s.close()
		s.put(9, 10)
		synctest.Wait()
		require.Len(t, done, 4)
		require.Zero(t, running)
	})
}

// Hosts with the same tick share a goroutine, which ends with the last host.
func TestSharedTicker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, stopA := newTicks(time.Second, func() {})
		b, stopB := newTicks(time.Second, func() {})
		time.Sleep(time.Second + time.Millisecond)
		require.Len(t, a, 1)
		<-a
		time.Sleep(time.Second)
		require.Len(t, a, 1)
		require.Len(t, b, 1, "a tick that nobody has taken stands for all")
		stopA()
		<-a
		<-b
		time.Sleep(time.Second)
		require.Empty(t, a)
		require.Len(t, b, 1)
		stopB()
		time.Sleep(2 * time.Second)
		tickersMu.Lock()
		defer tickersMu.Unlock()
		require.Nil(t, tickers[time.Second])
	})
}

// The inbox counts a message by its size in memory, not by its size on the wire: an entry of two
// bytes is an object of more than a hundred bytes.
func TestInboxCountsMemory(t *testing.T) {
	const limit = 8 << 20
	m := received(pb.MsgApp)
	for range 1000 {
		m.Body.(wire.Raft).Message.Entries = append(m.Body.(wire.Raft).Message.Entries, &pb.Entry{})
	}
	b := newInbox(inboxLimits{messages: limit})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		if b.bytes[wire.ClassAppend] >= limit {
			break
		}
		b.receive(replicatest.Reread(m))
	}
	runtime.ReadMemStats(&after)
	took := after.TotalAlloc - before.TotalAlloc
	require.NotEmpty(t, b.items)
	require.Less(t, took, uint64(2*limit), "bytes allocated, encoding included")
}

// Questions and offers of snapshots wait for a turn like all else that peers send, within the bound of their class: while the
// log's disk hangs there is no turn, and the peers go on asking.
func TestOffersOfSnapshotsAreBounded(t *testing.T) {
	h := &Host{inbox: newInbox(inboxLimits{messages: 8 << 10})}
	h.out, h.served, h.fetched = &snapshotsOut{h: h}, &fetchesOut{h: h}, &fetchesIn{h: h}
	for i := range uint64(1000) {
		for _, body := range []wire.Body{wire.Offer{Stream: i, Sources: []uint64{3}}, wire.Fetch{Step: wire.FetchAsk, Stream: i}} {
			h.Receive(wire.Message{Group: 7, From: 2, To: 1, Body: body})
		}
	}
	st, dropped := h.inbox.statistics()
	require.Less(t, st.Length, 30)
	require.EqualValues(t, 2000-st.Length, dropped)
}

// A turn with very many inputs, as after a storm of messages, leaves no memory for as many at each group of the node.
func TestInboxForgetsTheMemoryOfALargeTurn(t *testing.T) {
	b := newInbox(inboxLimits{})
	for range 100_000 {
		b.post(func(*replica.Replica) {})
	}
	items := b.take(nil, time.Now())
	require.Len(t, items, 100_000)
	require.LessOrEqual(t, cap(b.take(items, time.Now())), 4096)
}
