// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// hanging is a state with a method that hangs until released is closed.
type hanging struct {
	*counts
	method   string
	on       atomic.Bool // the method hangs from now on
	hangs    atomic.Int64
	released chan struct{}
}

func (s *hanging) hang(method string) {
	if s.method == method && s.on.Load() {
		s.hangs.Add(1)
		<-s.released
	}
}

func (s *hanging) Apply(b rawnode.Batch) ([]any, error) {
	s.hang("Apply")
	return s.counts.Apply(b)
}

func (s *hanging) Durable() (uint64, error) {
	s.hang("Durable")
	return s.counts.Durable()
}

func (s *hanging) Interrupt(error) { s.hang("Interrupt") }

// hangingLog is a log whose Append hangs.
type hangingLog struct {
	rawnode.Log
	*hanging
}

func (l hangingLog) Append(w storage.Write, done func(error)) error {
	l.hang("Append")
	return l.Log.Append(w, done)
}

func (l hangingLog) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	l.hang("Entries")
	return l.Log.Entries(lo, hi, maxSize)
}

// hangingTransport is a transport whose Send hangs, against the contract of Transport.
type hangingTransport struct {
	rawnode.Transport
	*hanging
}

func (tr hangingTransport) Send(messages []wire.Message) {
	tr.hang("Send")
	tr.Transport.Send(messages)
}

// Whichever part hangs, Stop returns when its context ends, with an error that gives the reason and
// names the part; and returns nil after the part has ended.
func TestStopReturnsAtContextEndWhicheverPartHangs(t *testing.T) {
	for method, want := range map[string]string{
		"Apply": "the state machine", "Durable": "the state machine", "Append": "the log", "Interrupt": "the state machine, in Interrupt",
	} {
		t.Run(method, func(t *testing.T) {
			var sm *hanging
			inBubble(t, 3, func(cfg *rawnode.Config) {
				if cfg.Replica.ID != 1 {
					return
				}
				sm = &hanging{counts: newCounts(1), method: method, released: make(chan struct{})}
				cfg.StateMachine = sm
				cfg.Replica.Log = hangingLog{cfg.Replica.Log, sm}
			}, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
				must(t, hosts[1], "before")
				sm.on.Store(true)
				go func() { _, _ = hosts[1].Propose(within(time.Minute), []byte("x")) }()
				time.Sleep(time.Second)
				for i, patience := range []time.Duration{5 * time.Second, 0, time.Second} {
					begin := time.Now()
					err := hosts[1].Stop(within(patience))
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.ErrorIs(t, err, rawnode.ErrNotEnded)
					require.ErrorContains(t, err, want)
					took := time.Since(begin)
					require.GreaterOrEqual(t, took, patience)
					if i == 0 {
						patience += time.Second // once, for the goroutines that were told to end
					}
					require.LessOrEqual(t, took, patience)
				}
				close(sm.released)
				require.NoError(t, hosts[1].Stop(within(time.Minute)))
				require.NoError(t, hosts[1].Stop(within(0)), "a second time")
				require.NoError(t, hosts[1].Err(), "the host has not failed")
			})
		})
	}
}

// A leader that is stopped hands leadership over before it ends, within an election timeout: so the test has virtual time.
func TestLeaderThatIsStoppedHandsLeadershipOver(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core replica.NewCore) {
		inBubble(t, 3, func(cfg *rawnode.Config) { cfg.Replica.Core = core }, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
			must(t, hosts[1], "before")
			old := hosts[hosts[1].Status().Lead]
			require.NoError(t, old.Stop(within(10*time.Second)))
			require.NotEqual(t, raft.StateLeader, old.Status().Role)
		})
	})
}

// A transport whose Send waits, against its contract, blocks the loop, and with it Status. The test
// runs in real time, because virtual time stands still while a goroutine waits for a mutex.
func TestStopWithStuckTransportKeepsItsContext(t *testing.T) {
	sm := &hanging{counts: newCounts(1), method: "Send", released: make(chan struct{})}
	onHub(t, 1, func(cfg *rawnode.Config) {
		cfg.Replica.Peers, cfg.TickInterval = []uint64{1, 2}, hostTick
		cfg.Transport = hangingTransport{cfg.Transport, sm}
	}, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
		sm.on.Store(true)
		require.Eventually(t, func() bool { return sm.hangs.Load() > 0 }, time.Minute, hostTick)
		err := hosts[1].Stop(within(20 * hostTick))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, rawnode.ErrNotEnded)
		require.ErrorContains(t, err, "the loop")
		close(sm.released)
		require.NoError(t, hosts[1].Stop(within(time.Minute)))
	})
}

// waiting is a state whose Apply and Restore wait for room until Interrupt.
type waiting struct {
	*counts
	mu          sync.Mutex
	room        sync.Cond
	full        bool
	interrupted error
	waits       int // calls that wait now
}

func newWaiting() *waiting {
	w := &waiting{counts: newCounts(1)}
	w.room.L = &w.mu
	return w
}

func (w *waiting) fill(full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.full = full
	w.room.Broadcast()
}

func (w *waiting) wait() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits++
	for w.full && w.interrupted == nil {
		w.room.Wait()
	}
	w.waits--
	return w.interrupted
}

func (w *waiting) Apply(b rawnode.Batch) ([]any, error) {
	if err := w.wait(); err != nil {
		return nil, err
	}
	return w.counts.Apply(b)
}

func (w *waiting) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	if err := w.wait(); err != nil {
		return err
	}
	return w.counts.Restore(meta, body)
}

// Interrupt implements rawnode.Interruptible.
func (w *waiting) Interrupt(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interrupted = reason
	w.room.Broadcast()
}

// A state machine that waits for room is interrupted when no caller waits for its results any more.
// No later step is applied then.
func TestStopInterruptsStateMachineThatWaits(t *testing.T) {
	states := map[uint64]*waiting{}
	inBubble(t, 3, func(cfg *rawnode.Config) {
		states[cfg.Replica.ID] = newWaiting()
		cfg.StateMachine = states[cfg.Replica.ID]
	}, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
		must(t, hosts[1], "before")
		lead := hosts[1].Status().Lead
		follower, other := lead%3+1, (lead+1)%3+1
		synctest.Wait()
		index, _, _ := states[follower].Load()
		states[follower].fill(true)
		for range 10 {
			must(t, hosts[other], "while it waits")
		}
		begin := time.Now()
		require.NoError(t, hosts[follower].Stop(within(time.Minute)), "nobody waits for anything here")
		require.Less(t, time.Since(begin), time.Second)
		require.ErrorIs(t, states[follower].interrupted, rawnode.ErrStopped)
		after, _, _ := states[follower].Load()
		require.Equal(t, index, after)
		require.NoError(t, hosts[follower].Err())

		// A waiting caller is released when the context ends.
		states[other].fill(true)
		ended := make(chan error, 1)
		go func() {
			_, err := hosts[other].Propose(within(time.Hour), []byte("under way"))
			ended <- err
		}()
		synctest.Wait()
		begin = time.Now()
		err := hosts[other].Stop(within(3 * time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, errors.Is(err, rawnode.ErrNotEnded), "all has: %v", err)
		require.Equal(t, 3*time.Second, time.Since(begin))
		require.ErrorIs(t, <-ended, rawnode.ErrStopped)
	})
}
