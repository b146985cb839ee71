// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/rawnode/wire"
)

// When too much waits, control messages are dropped and others make their
// connection wait: until there is room, or nobody reads any more.
func TestInboxBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(typ pb.MessageType) wire.Message { return received(typ, nil) }
		size := of(pb.MsgApp).Size()
		b := newInbox(3 * size)
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
		require.True(t, b.post(func(*Replica) {}), "calls do not wait")
		synctest.Wait()
		require.Equal(t, 6, got)
		st, _ = b.statistics()
		require.Equal(t, time.Second, st.Queued, "the age of the oldest")

		require.Len(t, b.close(), 4)
		synctest.Wait()
		require.Equal(t, 7, got, "all are let go")
		require.False(t, b.post(func(*Replica) {}))
	})
}

func TestStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done []int
		s := newStage(func(i int) {
			time.Sleep(time.Second)
			done = append(done, i)
		})
		for i := range 3 {
			s.put(i, 10)
		}
		go s.run()
		synctest.Wait()
		time.Sleep(5 * time.Second)
		s.close()
		s.put(9, 10)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, done, "in order")
		require.Equal(t, StageStats{Items: 3, Bytes: 30, Busy: 3 * time.Second, Queued: 3 * time.Second}, s.statistics())
	})
}
