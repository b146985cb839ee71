// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
)

var errSnapshot = errors.New("nothing can be read")

// ownSnapshot is a state with a Snapshot given by the test.
type ownSnapshot struct {
	*counts
	snapshot func() (rawnode.Snapshot, error)
}

func (o ownSnapshot) Snapshot() (rawnode.Snapshot, error) { return o.snapshot() }

// A snapshot that fails, at either end, is sent again after a pause that grows, and each failure is
// counted. When the snapshot works again, the follower gets it.
func TestFailedSnapshotsAreRetriedWithPauses(t *testing.T) {
	for name, c := range map[string]struct {
		state func(id uint64, works func() bool) rawnode.StateMachine
		line  string
	}{
		"snapshot errs": {func(_ uint64, works func() bool) rawnode.StateMachine {
			state := newCounts(1)
			return ownSnapshot{state, func() (rawnode.Snapshot, error) {
				if works() {
					return state.Snapshot()
				}
				return nil, errSnapshot
			}}
		}, "nothing can be read"},
		"snapshot is nil": {func(_ uint64, works func() bool) rawnode.StateMachine {
			state := newCounts(1)
			return ownSnapshot{state, func() (rawnode.Snapshot, error) {
				if works() {
					return state.Snapshot()
				}
				return nil, nil
			}}
		}, "returned neither"},
		"restore errs": {func(_ uint64, works func() bool) rawnode.StateMachine {
			return failingRestore{newCounts(1), works}
		}, "nothing can be written"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines lockedBuffer
			until := 5 * time.Minute
			var begin time.Time
			works := func() bool { return time.Since(begin) > until }
			inBubble(t, 3, func(cfg *rawnode.Config) {
				begin = time.Now()
				cfg.Replica.RetainEntries = 5
				cfg.StateMachine = c.state(cfg.Replica.ID, works)
				cfg.Logger = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
				cfg.Replica.Logger = nil
			}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
				net.setCut(3, true)
				for i := range 50 {
					must(t, hosts[1], fmt.Sprint(i))
				}
				net.heal(3)
				time.Sleep(until - time.Since(begin))
				failed := uint64(0)
				for _, h := range hosts {
					failed += h.Status().Counters.SnapshotsFailed
				}
				require.Greater(t, failed, uint64(50), "the snapshot is tried again many times")
				require.Less(t, failed, uint64(250), "with pauses")
				require.Less(t, strings.Count(lines.String(), "snapshot not sent"), 250)
				require.Contains(t, lines.String(), c.line)
				if name == "restore errs" {
					require.InDelta(t, failed, hosts[3].Status().Counters.RestoresFailed, 2)
				}
				time.Sleep(30 * time.Second)
				require.NotZero(t, hosts[3].Status().Counters.SnapshotsInstalled)
				require.Equal(t, hosts[1].Status().Applied, hosts[3].Status().Applied)
			})
		})
	}
}

type failingRestore struct {
	*counts
	works func() bool
}

func (f failingRestore) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	if f.works() {
		return f.counts.Restore(meta, body)
	}
	return errors.New("nothing can be written")
}
