// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/storage"
)

// fragile is a log whose next write panics after breaks is set. A turn can write the log directly.
type fragile struct {
	replicatest.MemLog
	breaks atomic.Bool
}

func (l *fragile) TryAppend(w storage.Write, done func(error)) error {
	if l.breaks.Load() {
		panic("the log fell apart")
	}
	return l.Append(w, done)
}

// alone starts a host that is the only member of its group.
func alone(t *testing.T) (*Host, *fragile) {
	log := &fragile{MemLog: replicatest.NewMemLog()}
	h, err := New(Config{
		Replica: ReplicaConfig{ID: 1, Group: 7, Log: log, Peers: []uint64{1}}, StateMachine: &journal{},
		Transport: tapped{make(chan wire.Message, 10_000), nil}, TickInterval: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	_, err = h.Propose(t.Context(), []byte("first"))
	require.NoError(t, err)
	return h, log
}

// The loop takes every input that arrives while another goroutine has the replica.
func TestLoopTakesTheNextTurn(t *testing.T) {
	h, _ := alone(t)
	defer func() { require.NoError(t, h.Stop(t.Context())) }()
	for range 20 {
		h.driver.mu.Lock()
		done := make(chan error, 10)
		for range cap(done) {
			go func() {
				_, err := h.Propose(t.Context(), []byte("command"))
				done <- err
			}()
		}
		require.Eventually(t, func() bool {
			h.inbox.mu.Lock()
			defer h.inbox.mu.Unlock()
			return h.inbox.calls == cap(done)
		}, time.Minute, time.Millisecond)
		select {
		case err := <-done:
			t.Fatalf("ended without a turn: %v", err)
		default:
		}
		h.driver.mu.Unlock()
		for range cap(done) {
			require.NoError(t, <-done)
		}
	}
}

// While a turn hangs, calls whose contexts end leave nothing behind: their callers call again, and each call may have megabytes.
func TestCallsThatEndDuringATurnThatHangsLeaveNothing(t *testing.T) {
	h, _ := alone(t)
	defer func() { require.NoError(t, h.Stop(t.Context())) }()
	h.driver.mu.Lock()
	defer h.driver.mu.Unlock()
	waiting := func() (calls, bytes int) { // stages may end their work just now
		h.inbox.mu.Lock()
		defer h.inbox.mu.Unlock()
		for _, in := range h.inbox.items {
			if in.call != nil || in.cancel != nil {
				calls++
			}
		}
		return calls, h.inbox.waiting()
	}
	_, bytes := waiting()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := h.Propose(ctx, make([]byte, 1<<20))
			if !errors.Is(err, ErrRefused) || !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	require.Eventually(t, func() bool {
		n, _ := waiting()
		return n == 10
	}, time.Minute, time.Millisecond)
	cancel()
	all.Wait()
	left, kept := waiting()
	require.Zero(t, left)
	require.Equal(t, bytes, kept)
}

// A host that has ended takes no turn.
func TestHostThatHasEndedTakesNoTurn(t *testing.T) {
	h, log := alone(t)
	require.NoError(t, h.Stop(t.Context()))
	log.breaks.Store(true) // so that a turn would panic
	h.ReceiveNext(wire.Message{Group: 7, From: 2, To: 1, Body: wire.Transfer{Term: 1, Transferee: 2}})
	h.Received(false)
	_, err := h.Propose(t.Context(), []byte("late"))
	require.ErrorIs(t, err, ErrStopped)
}

// A panic in a turn ends the process, although the caller would recover from the panic, because the
// replica may be halfway through a change.
func TestPanicInTurnEndsProcess(t *testing.T) {
	const child = "WEFT_TEST_PANIC_IN_A_TURN"
	if os.Getenv(child) == "" {
		for _, taker := range []string{"loop", "connection"} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestPanicInTurnEndsProcess$")
			cmd.Env = append(os.Environ(), child+"="+taker)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(out), "the log fell apart")
			require.Contains(t, string(out), "TryAppend", "the stack of the panic")
			require.NotContains(t, string(out), "recovered")
		}
		return
	}
	h, log := alone(t)
	log.breaks.Store(true)
	defer func() {
		fmt.Println("recovered:", recover())
		select {}
	}()
	if os.Getenv(child) == "loop" {
		_, err := h.Propose(t.Context(), []byte("command"))
		t.Fatalf("the call returned although its turn panicked: %v", err)
	}
	require.NoError(t, h.inbox.call(&hostCall{op: opPropose, command: []byte("command"), deadline: h.now() + time.Hour, ended: make(chan callEnd, 1)}))
	h.Received(false) // takes the turn, unless the loop does
	select {}
}
