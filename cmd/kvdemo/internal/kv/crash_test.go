// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// promise is what a crash must leave of two groups.
type promise struct{ one, two uint64 }

// crasher takes a copy of a file system, as a crash would leave it, before each
// of some operations.
type crasher struct {
	fs    *vfs.MemFS
	every uint64

	ops      atomic.Uint64
	promised atomic.Pointer[promise]

	mu   sync.Mutex
	left []leftover
}

type leftover struct {
	fs       *vfs.MemFS
	promised promise
	op       string
}

func (c *crasher) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	n := c.ops.Add(1)
	if n%c.every != 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// What was promised before the crash must be there after it.
	promised := *c.promised.Load()
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 0, 50, 100}[n/c.every%4], RNG: rand.New(rand.NewPCG(n, 1))}
	c.left = append(c.left, leftover{c.fs.CrashClone(cfg), promised, fmt.Sprint(n, " ", op.Kind, " ", op.Path)})
	return nil
}

func (c *crasher) String() string { return "crasher" }

// A crash before any operation on the disk, of a workload of two groups with
// flushes, large values and snapshots, leaves each group at a state that it had,
// not older than it promised.
func TestCrashAnywhere(t *testing.T) {
	every := uint64(3)
	if testing.Short() {
		every = 11
	}
	c := &crasher{fs: vfs.NewCrashableMem(), every: every}
	c.promised.Store(&promise{})
	db, err := Open("state", testIdentity, Options{FS: errorfs.Wrap(c.fs, c), MemTableBytes: 256 << 10})
	require.NoError(t, err)
	one, err := db.Group(1)
	require.NoError(t, err)
	two, err := db.Group(2)
	require.NoError(t, err)
	twos := crashWorkload(t, c, db, one, two)
	require.NoError(t, db.Close())
	t.Logf("%d operations, %d crashes", c.ops.Load(), len(c.left))
	require.NotEmpty(t, c.left)
	seen := map[promise]bool{}
	for _, l := range c.left {
		seen[requireLeft(t, l, twos)] = true
	}
	require.Greater(t, len(seen), 3, "crashes came at too few states")
}

// crashWorkload writes values that say at which index they were written.
// Returned is by which index group two was restored, from group one.
func crashWorkload(t *testing.T, c *crasher, db *DB, one, two *Store) map[uint64]uint64 {
	restored := map[uint64]uint64{}
	note := func() {
		p := *c.promised.Load()
		d, err := one.Durable()
		require.NoError(t, err)
		p.one = max(p.one, d)
		d, err = two.Durable()
		require.NoError(t, err)
		p.two = max(p.two, d)
		c.promised.Store(&p)
	}
	for round := range 8 {
		for range 6 {
			index := one.Applied() + 1
			value := pattern(30_000, byte(index))
			apply(t, one, put("index", fmt.Sprint(index)), put(fmt.Sprint("key", index%5), string(value)))
			apply(t, two, put("index", fmt.Sprint(two.Applied()+1)))
			note()
		}
		apply(t, one, append(uploadOf(UploadID{byte(round)}, "large", modelValue), put("index", fmt.Sprint(one.Applied()+1)))...)
		switch round % 3 {
		case 0:
			require.NoError(t, db.Flush())
		case 1:
			for one.Applied() <= two.Applied() {
				apply(t, one, put("index", fmt.Sprint(one.Applied()+1)))
			}
			require.NoError(t, restore(two, one.Applied(), "host", snapshotBytes(t, one)))
			restored[one.Applied()] = one.Applied()
		}
		note()
	}
	return restored
}

// requireLeft opens what a crash left, and returns how far each group is.
func requireLeft(t *testing.T, l leftover, restored map[uint64]uint64) promise {
	db, err := Open("state", testIdentity, Options{FS: l.fs})
	require.NoError(t, err, l.op)
	defer func() { require.NoError(t, db.Close()) }()
	var got promise
	for id, want := range map[uint64]uint64{1: l.promised.one, 2: l.promised.two} {
		s, err := db.Group(id)
		require.NoError(t, err, l.op)
		applied := s.Applied()
		require.GreaterOrEqual(t, applied, want, "group %d after a crash before %s", id, l.op)
		if applied > 0 {
			b, _, err := s.Get("index")
			require.NoError(t, err, l.op)
			require.Equal(t, fmt.Sprint(applied), string(b), "group %d after a crash before %s", id, l.op)
		}
		if restored[applied] != 0 && id == 2 {
			require.Equal(t, modelValue, readAll(t, s, "large"))
		}
		requireNoOrphans(t, s)
		if id == 1 {
			got.one = applied
		} else {
			got.two = applied
		}
	}
	return got
}
