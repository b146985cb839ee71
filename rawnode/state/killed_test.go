// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
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

// bodyOf reads a snapshot to its end, and closes it.
func bodyOf(t *testing.T, snap rawnode.Snapshot) []byte {
	t.Helper()
	body, err := io.ReadAll(snap)
	require.NoError(t, err)
	require.NoError(t, snap.Close())
	return body
}
