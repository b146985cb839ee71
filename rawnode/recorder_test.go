// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// records is a Recorder that keeps all reports.
type records struct {
	mu       sync.Mutex
	proposed []rawnode.CommandTimes
	reads    []recordedRead
	sent     []rawnode.SnapshotTimes
	restored []rawnode.SnapshotTimes
}

type recordedRead struct {
	policy rawnode.ReadPolicy
	by     rawnode.ServedBy
	took   time.Duration
}

func (r *records) Proposed(t rawnode.CommandTimes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proposed = append(r.proposed, t)
}

func (r *records) Read(policy rawnode.ReadPolicy, by rawnode.ServedBy, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads = append(r.reads, recordedRead{policy, by, took})
}

func (r *records) SnapshotSent(t rawnode.SnapshotTimes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, t)
}

func (r *records) SnapshotRestored(t rawnode.SnapshotTimes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restored = append(r.restored, t)
}

// lastRestored returns the last report of a restored snapshot, or nil.
func (r *records) lastRestored() *rawnode.SnapshotTimes {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.restored) == 0 {
		return nil
	}
	return &r.restored[len(r.restored)-1]
}

// slowLog takes a while for each write.
type slowLog struct {
	rawnode.Log
	takes time.Duration
}

func (l slowLog) Append(w storage.Write, done func(error)) error {
	time.Sleep(l.takes)
	return l.Log.Append(w, done)
}

// slowState takes a while for each step.
type slowState struct {
	rawnode.StateMachine
	takes time.Duration
}

func (s slowState) Apply(b rawnode.Batch) ([]any, error) {
	if len(b.Commands) > 0 {
		time.Sleep(s.takes)
	}
	return s.StateMachine.Apply(b)
}

// The parts of a command's time are the times of the stages (queue, log, state machine), to the
// nanosecond in virtual time.
func TestRecorderIsToldHowTheTimeOfACallPassed(t *testing.T) {
	const writes, applies = 7 * time.Millisecond, 3 * time.Millisecond
	var r records
	inBubble(t, 1, func(c *rawnode.Config) {
		c.Recorder = &r
		c.Replica.Log = slowLog{c.Replica.Log, writes}
		c.StateMachine = slowState{c.StateMachine, applies}
		c.Replica.MaxBatches = 1
	}, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
		h := hosts[1]
		must(t, h, "to begin with")
		r.proposed = nil
		first := rawnode.CommandTimes{Sent: 0, Committed: writes, Applied: writes + applies}
		res, err := h.Propose(within(time.Minute), []byte("a"))
		require.NoError(t, err)
		require.Equal(t, first, res.Times)

		var both sync.WaitGroup
		both.Go(func() { _, _ = h.Propose(within(time.Minute), []byte("b")) })
		time.Sleep(time.Millisecond) // b is on its way, so c waits for its place
		both.Go(func() { _, _ = h.Propose(within(time.Minute), []byte("c")) })
		both.Go(func() {
			time.Sleep(writes) // b is committed for a millisecond, and not applied
			_, err := h.Read(within(time.Minute))
			require.NoError(t, err)
		})
		both.Wait()
		require.Len(t, r.proposed, 3)
		require.Equal(t, first, r.proposed[1])
		second := rawnode.CommandTimes{Sent: writes - time.Millisecond}
		second.Committed = second.Sent + writes
		second.Applied = second.Committed + applies
		require.Equal(t, second, r.proposed[2])
		require.Equal(t, []recordedRead{{rawnode.ReadIndex{}, rawnode.ServedByLeader, applies - time.Millisecond}}, r.reads)
	})
}

// Failed calls are not recorded: the duration of a failed call depends on the deadline of its
// caller.
func TestRecorderIsNotToldOfCallsThatFail(t *testing.T) {
	var r records
	inBubble(t, 3, func(c *rawnode.Config) {
		if c.Replica.ID == 1 {
			c.Recorder = &r
		}
	}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
		must(t, hosts[1], "a")
		_, err := hosts[1].ReadWith(within(time.Minute), rawnode.ReadOptions{Policy: rawnode.Local{}})
		require.NoError(t, err)
		net.setCut(1, true)
		_, err = hosts[1].Propose(within(time.Second), []byte("b"))
		require.Error(t, err)
		_, err = hosts[1].ReadWith(within(time.Second), rawnode.ReadOptions{Policy: rawnode.QuorumRead{}})
		require.Error(t, err)
		canceled, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = hosts[1].Propose(canceled, []byte("c"))
		require.Error(t, err)
		net.setCut(1, false)
		require.Len(t, r.proposed, 1)
		require.Equal(t, []recordedRead{{rawnode.Local{}, rawnode.ServedStale, 0}}, r.reads)
	})
}

// Both ends of a snapshot tell their recorders, of the same bytes.
func TestRecorderIsToldOfSnapshotsAtBothEnds(t *testing.T) {
	recorders := map[uint64]*records{1: {}, 2: {}, 3: {}}
	inBubble(t, 3, func(c *rawnode.Config) {
		c.Recorder = recorders[c.Replica.ID]
		c.Replica.RetainEntries, c.ChunkBytes = 5, 16
	}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
		net.setCut(3, true)
		for range 60 {
			must(t, hosts[1], "a")
		}
		net.heal(3)
		behind := recorders[3]
		ended := func() bool {
			return behind.lastRestored() != nil && hosts[3].Status().Applied >= hosts[1].Status().Commit
		}
		for range 10_000 { // of virtual time
			if ended() {
				break
			}
			time.Sleep(bubbleTick)
		}
		require.True(t, ended(), "node 3 got no snapshot")
		got := behind.lastRestored()
		require.NoError(t, got.Err)
		require.Greater(t, got.Bytes, int64(16), "several chunks")
		synctest.Wait() // the sender hears of the end after the receiver
		sender := recorders[got.Peer]
		sender.mu.Lock()
		defer sender.mu.Unlock()
		require.Contains(t, sender.sent, rawnode.SnapshotTimes{Peer: 3, Bytes: got.Bytes, Took: got.Took})
	})
}

// A call allocates the same with a recorder that allocates nothing as without a recorder.
func TestRecorderCostsNoAllocation(t *testing.T) {
	allocations := func(recorder rawnode.Recorder) (n float64) {
		onHub(t, 1, func(c *rawnode.Config) { c.Recorder, c.TickInterval = recorder, 2*bubbleTick },
			func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
				h, ctx := hosts[1], context.Background()
				must(t, h, "a")
				n = testing.AllocsPerRun(300, func() {
					if _, err := h.ReadAt(ctx, rawnode.Local{}); err != nil {
						t.Error(err)
					}
				})
			})
		return n
	}
	without := allocations(nil)
	require.LessOrEqual(t, allocations(nothing{}), without)
}

// nothing is a Recorder without effect.
type nothing struct{}

func (nothing) Proposed(rawnode.CommandTimes)                            {}
func (nothing) Read(rawnode.ReadPolicy, rawnode.ServedBy, time.Duration) {}
func (nothing) SnapshotSent(rawnode.SnapshotTimes)                       {}
func (nothing) SnapshotRestored(rawnode.SnapshotTimes)                   {}
