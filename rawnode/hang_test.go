// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
)

// A disk that hangs in a read hangs a turn. Each call ends with its context and a second, with a
// verdict that holds when the disk answers again; the status says what hangs. The test runs in real
// time, because a turn holds a mutex.
func TestCallsKeepTheirContextsWhileTheLogHangsInARead(t *testing.T) {
	sm := &hanging{counts: newCounts(1), method: "Entries", released: make(chan struct{})}
	onHub(t, 1, func(cfg *rawnode.Config) {
		cfg.StateMachine, cfg.Replica.Log = sm, hangingLog{cfg.Replica.Log, sm}
		cfg.TickInterval, cfg.DefaultTimeout = hostTick, 20*hostTick
	}, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
		h := hosts[1]
		must(t, h, "before")
		require.NotZero(t, h.Status().Applied)
		sm.on.Store(true)
		go func() { _, _ = h.Propose(within(time.Minute), []byte("hangs")) }()
		require.Eventually(t, func() bool { return sm.hangs.Load() > 0 }, time.Minute, hostTick)

		const patience = time.Minute // a call without a bound takes longer
		var all sync.WaitGroup
		for name, call := range calls {
			for bound, ctx := range map[string]context.Context{"deadline": within(20 * hostTick), "none": t.Context()} {
				all.Go(func() {
					done := make(chan error, 1)
					go func() { done <- call(ctx, h) }()
					select {
					case err := <-done:
						if err == nil {
							t.Errorf("%s, %s: no error", name, bound)
						}
					case <-time.After(patience):
						t.Errorf("%s, %s: it outlives its context", name, bound)
					}
				})
			}
		}
		_, err := h.Propose(within(20*hostTick), []byte("withdrawn"))
		require.ErrorIs(t, err, rawnode.ErrRefused, "no turn has seen the command")
		require.ErrorIs(t, err, rawnode.ErrNotEnded)
		require.ErrorIs(t, err, rawnode.ErrTimeout)
		s := h.Status()
		require.ErrorIs(t, s.Stalled, rawnode.ErrNotEnded)
		require.ErrorContains(t, s.Stalled, "reads the log")
		require.NotZero(t, s.Applied, "as last known")
		_, err = h.LeaseStatus(within(20 * hostTick))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		all.Wait()

		close(sm.released)
		must(t, h, "after")
		require.Zero(t, sm.times("withdrawn"))
		require.NoError(t, h.Status().Stalled)
	})
}

// An Apply that has run for seconds is logged, and so is its end.
func TestSlowApplyIsLogged(t *testing.T) {
	var lines lockedBuffer
	var sm *hanging
	inBubble(t, 1, func(cfg *rawnode.Config) {
		sm = &hanging{counts: newCounts(1), method: "Apply", released: make(chan struct{})}
		cfg.StateMachine, cfg.Logger = sm, slog.New(slog.NewTextHandler(&lines, nil))
	}, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
		must(t, hosts[1], "before")
		sm.on.Store(true)
		_, err := hosts[1].Propose(within(3*time.Second), []byte("slow"))
		require.ErrorIs(t, err, rawnode.ErrUnknown)
		require.NotContains(t, lines.String(), "does not return")
		time.Sleep(2 * time.Second)
		require.Contains(t, lines.String(), `part="the state machine, in Apply or Durable" for=4s`)
		time.Sleep(4 * time.Second)
		require.Contains(t, lines.String(), "for=8s")
		close(sm.released)
		time.Sleep(time.Second)
		require.Contains(t, lines.String(), "the part has returned")
	})
}
