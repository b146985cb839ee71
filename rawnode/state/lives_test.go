// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
)

// moment is a state at an index.
type moment struct {
	index uint64
	text  string
}

// lives is the directory of a state, and the processes that have it one after the other. Each is killed at some
// operation on the disk, or power fails then; and at some operations there is no room.
type lives struct {
	t    *testing.T
	rng  *rand.Rand
	mem  *vfs.MemFS
	left int // operations until the process is killed
	full int // of how many one finds no room; 0: none

	// may are the states that a start may find: the last that is durable, and what came behind it.
	may []moment
	// kept are snapshots of states, with their bodies.
	kept []keptSnapshot

	found, restored, back, refused int
}

type keptSnapshot struct {
	meta rawnode.SnapshotMeta
	body []byte
	text string
}

var errKilled = errors.New("the process was killed")

func (l *lives) fs() vfs.FS {
	return unlocked{errorfs.Wrap(l.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileClose || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		if l.left--; l.left < 0 {
			return errKilled
		}
		if l.full > 0 && op.Kind != errorfs.OpRemove && l.rng.IntN(l.full) == 0 {
			return fmt.Errorf("%v %s: %w", op.Kind, op.Path, syscall.ENOSPC)
		}
		return nil
	}))}
}

// fails checks an error: there is one only without room, or behind the end of the process.
func (l *lives) fails(err error) bool {
	if err == nil {
		return false
	}
	if l.left >= 0 {
		require.ErrorIs(l.t, err, syscall.ENOSPC)
		l.refused++
	}
	return true
}

// live is one process.
func (l *lives) live() {
	l.left, l.full = l.rng.IntN([]int{10, 60, 400}[l.rng.IntN(3)]), []int{0, 0, 3, 10}[l.rng.IntN(4)]
	o := state.Options{FS: l.fs(), Dir: "state", Inline: true, CheckpointBytes: []int64{1, 2000}[l.rng.IntN(2)]}
	m, err := state.OpenMemory(newTally, o)
	if l.fails(err) {
		return
	}
	index, host, err := m.Load()
	require.NoError(l.t, err)
	now := moment{index, text(m)}
	require.Contains(l.t, l.may, now)
	if index > 0 {
		require.Equal(l.t, fmt.Sprint("host ", index), string(host))
	}
	l.may = []moment{now}
	l.found++
	for range l.rng.IntN(30) {
		if l.left < 0 {
			return
		}
		l.step(m)
	}
	if l.rng.IntN(2) == 0 {
		require.NoError(l.t, m.Close())
	}
}

// durable notes that the present state is, unless the process was killed in Restore or later.
func (l *lives) durable(m *state.Memory[*tally]) {
	if l.left < 0 {
		return
	}
	if index, err := m.Durable(); err == nil && index == m.Applied() {
		l.may = []moment{{index, text(m)}}
	}
}

func (l *lives) step(m *state.Memory[*tally]) {
	switch l.rng.IntN(8) {
	case 0:
		if !l.fails(m.Checkpoint()) {
			require.EqualValues(l.t, m.Applied(), must(m.Durable()))
		}
	case 1:
		snap, err := m.Snapshot()
		if !l.fails(err) && snap.Meta().Index > 0 {
			l.kept = append(l.kept, keptSnapshot{snap.Meta(), bodyOf(l.t, snap), text(m)})
		}
	case 2, 3:
		if len(l.kept) == 0 {
			return
		}
		l.restore(m, l.kept[l.rng.IntN(len(l.kept))])
	default:
		index := m.Applied() + 1 + l.rng.Uint64N(3)
		b := rawnode.Batch{Index: index, Host: fmt.Append(nil, "host ", index)}
		for range l.rng.IntN(4) {
			b.Commands = append(b.Commands, []byte{byte('a' + l.rng.IntN(26))})
		}
		_, err := m.Apply(b) // whatever becomes of a checkpoint
		require.NoError(l.t, err)
		l.may = append(l.may, moment{index, text(m)})
	}
	l.durable(m)
}

// restore restores a snapshot, of a higher index or a lower one.
func (l *lives) restore(m *state.Memory[*tally], s keptSnapshot) {
	before := moment{m.Applied(), text(m)}
	if s.meta.Index == before.index {
		return
	}
	l.may = append(l.may, moment{s.meta.Index, s.text})
	if l.fails(m.Restore(s.meta, bytes.NewReader(s.body))) {
		require.Equal(l.t, before, moment{m.Applied(), text(m)}, "the state is the old one")
		return
	}
	require.Equal(l.t, moment{s.meta.Index, s.text}, moment{m.Applied(), text(m)})
	require.EqualValues(l.t, s.meta.Index, must(m.Durable()))
	l.restored++
	if s.meta.Index < before.index {
		l.back++
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestStateOfManyLives: whatever kills processes that have a directory one after the other, each finds the last durable
// state or one behind it, whole and with its host's bytes; also where states went back, and where there was no room.
func TestStateOfManyLives(t *testing.T) {
	found, restored, back, refused := 0, 0, 0, 0
	for seed := range uint64(150) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 31))
			l := &lives{t: t, rng: rng, mem: vfs.NewCrashableMem(), may: []moment{{0, text(open(t, vfs.NewMem(), state.Options{}))}}}
			for range 30 {
				l.live()
				if rng.IntN(2) == 0 {
					// MemFS draws in the order of a map: the rest of the story does not hang on how often.
					l.mem = l.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[rng.IntN(3)], RNG: rand.New(rand.NewPCG(rng.Uint64(), 1))})
				}
			}
			found, restored, back, refused = found+l.found, restored+l.restored, back+l.back, refused+l.refused
		})
	}
	t.Logf("%d starts, %d snapshots restored, %d of a lower index, %d times no room", found, restored, back, refused)
	require.Positive(t, back)
	require.Positive(t, refused)
}
