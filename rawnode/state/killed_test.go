// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
)

// unlocked is a file system whose locks ended with the process that held them.
type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// A process is killed before any operation on its disk. The next one finds in the caches of the operating system what was
// not synced, and its Load calls that durable: hosts drop the log up to there. So it must survive a power failure.
func TestStateThatAKilledProcessLeftIsDurable(t *testing.T) {
	from := open(t, vfs.NewMem(), state.Options{})
	apply(t, from, 9, "x")
	received, err := from.Snapshot()
	require.NoError(t, err)
	body := bodyOf(t, received)

	type killed struct{}
	for at := 1; ; at++ {
		mem, n := vfs.NewCrashableMem(), 0
		o := state.Options{CheckpointBytes: 200, Inline: true, Dir: "a/b/state"}
		ended := func() (ended bool) {
			defer func() {
				if died := recover(); died != nil && died != (killed{}) {
					panic(died)
				}
			}()
			o.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					if n++; n == at {
						panic(killed{})
					}
				}
				return nil
			}))
			m, err := state.OpenMemory(newTally, o)
			require.NoError(t, err)
			for i := uint64(1); i <= 8; i++ {
				apply(t, m, i, "a", "b")
			}
			require.NoError(t, m.Restore(received.Meta(), bytes.NewReader(body)))
			return true
		}()
		if ended {
			require.Greater(t, at, 30, "operations of the workload")
			return
		}
		o.FS = unlocked{mem}
		m, err := state.OpenMemory(newTally, o)
		require.NoError(t, err)
		found, _, err := m.Load()
		require.NoError(t, err)
		o.FS = mem.CrashClone(vfs.CrashCloneCfg{}) // power fails
		m, err = state.OpenMemory(newTally, o)
		require.NoError(t, err)
		durable, _, err := m.Load()
		require.NoError(t, err)
		require.Equal(t, found, durable, "killed before operation %d", at)
	}
}

// A state goes back to an earlier snapshot of its own, as when a recovery is taken back. If the disk fails, or power, the
// state is as before, or goes back as a whole, and a later start does not find what was taken back.
func TestStateGoesBackInOneStep(t *testing.T) {
	for at := 1; ; at++ {
		mem, n, breaks := vfs.NewCrashableMem(), 0, false
		var image *vfs.MemFS
		m := open(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if breaks && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				if n++; n == at {
					image = mem.CrashClone(vfs.CrashCloneCfg{})
					return syscall.EIO
				}
			}
			return nil
		})), state.Options{})
		apply(t, m, 5, "a")
		snap, err := m.Snapshot()
		require.NoError(t, err)
		apply(t, m, 9, "b")
		require.NoError(t, m.Checkpoint())
		breaks = true
		failed := m.Restore(snap.Meta(), bytes.NewReader(bodyOf(t, snap)))
		breaks = false
		if n < at {
			require.NoError(t, failed)
			require.Greater(t, at, 7, "operations of Restore")
			left := open(t, mem.CrashClone(vfs.CrashCloneCfg{}), state.Options{})
			require.EqualValues(t, 5, left.Applied())
			require.Equal(t, `{"a":1}`, text(left))
			return
		}
		crashed := open(t, image, state.Options{})
		require.Contains(t, []uint64{5, 9}, crashed.Applied(), "operation %d", at)
		require.Equal(t, `{"a":1,"b":1}`, text(m))
		durable, err := m.Durable()
		require.NoError(t, err)
		require.GreaterOrEqual(t, open(t, unlocked{mem}, state.Options{}).Applied(), durable, "operation %d", at)
		require.NoError(t, m.Checkpoint())
		left := open(t, mem.CrashClone(vfs.CrashCloneCfg{}), state.Options{})
		require.EqualValues(t, 9, left.Applied(), "operation %d", at)
	}
}

// Power fails at any operation, and of the names that were not synced any survive: later ones, too, without earlier ones. The limits
// of sessions are there with each checkpoint that was made with them, also where an earlier process was killed before it
// had synced their name.
func TestCheckpointSurvivesWithItsLimitsOnly(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%v", killed), func(t *testing.T) { limitsSurvive(t, killed) })
	}
}

func limitsSurvive(t *testing.T, killed bool) {
	few := &session.Limits{Sessions: 1, Results: 1, ResultBytes: 100}
	mem, found := vfs.NewCrashableMem(), 0
	var m *state.Memory[*tally]
	look := func() {
		for seed := range uint64(8) {
			durable := uint64(0)
			if m != nil {
				durable, _ = m.Durable()
			}
			image := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 7))})
			left, err := state.OpenMemory(newTally, state.Options{FS: image, Dir: "state", Sessions: &session.DefaultLimits})
			require.NoError(t, err)
			require.GreaterOrEqual(t, left.Applied(), durable)
			require.NoError(t, left.Close())
			if left.Applied() > 0 {
				found++
				_, err = state.OpenMemory(newTally, state.Options{FS: image, Dir: "state", Sessions: few})
				require.ErrorIs(t, err, state.ErrLimits)
			}
		}
	}
	if killed {
		require.NoError(t, open(t, mem, state.Options{}).Close())
		f, err := mem.Create("state/session-limits", vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = io.WriteString(f, envelope.Describe(&session.DefaultLimits))
		require.NoError(t, errors.Join(err, f.Sync(), f.Close())) // but not its name
	}
	m = open(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			look()
		}
		return nil
	})), state.Options{Sessions: &session.DefaultLimits})
	for i := uint64(1); i <= 3; i++ {
		apply(t, m, i, string(state.Plain([]byte("a"))))
		require.NoError(t, m.Checkpoint())
	}
	require.NotZero(t, found)
}

// bodyOf reads a snapshot to its end, and closes it.
func bodyOf(t *testing.T, snap rawnode.Snapshot) []byte {
	t.Helper()
	body, err := io.ReadAll(snap)
	require.NoError(t, err)
	require.NoError(t, snap.Close())
	return body
}
