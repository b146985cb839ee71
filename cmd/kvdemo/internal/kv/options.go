// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// Options configures [Open].
type Options struct {
	// Identity is written when the directory is made and compared afterwards.
	Identity Identity
	// FS is the file system; nil means the operating system's.
	FS vfs.FS
	// MemTableBytes is how much is applied before Pebble flushes by itself. What
	// the log replays after a crash, and what waits in memory for a slow or full
	// disk, is at most some times that. 0 means the default of package pebblestate.
	MemTableBytes uint64
	// CacheBytes is what Pebble's cache of blocks has at least; 0 means
	// that package's default. Memtables that are not in use leave their room to it.
	CacheBytes int64
	// Logf is told of what an operator may want to know; nil means silence.
	Logf func(format string, args ...any)

	retry    time.Duration // of the gate; 0: its default
	patience time.Duration // of Open and Close; 0: the database's default
	// adjust, unless nil, may change Pebble's options, in tests.
	adjust func(*pebble.Options)
}

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
}

// baseOptions are those of the database.
func (db *DB) baseOptions() pebblestate.Options {
	o := db.opts
	return pebblestate.Options{
		Dir: db.dir, FS: o.FS, MemTableBytes: o.MemTableBytes, CacheBytes: o.CacheBytes, Retry: o.retry, Patience: o.patience, Logf: o.Logf,
		Adjust: func(p *pebble.Options) {
			// What a group was before it restored a snapshot is given free soon.
			p.FlushDelayDeleteRange = 10 * time.Second
			for i := range p.Levels {
				p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
				p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.FastestCompression }
			}
			if o.adjust != nil {
				o.adjust(p)
			}
		},
	}
}

// DiskBytes returns the size of the state's files. Pebble's own number leaves
// blob files out that it found when it opened.
func (db *DB) DiskBytes() uint64 {
	names, err := db.opts.FS.List(db.dir)
	if err != nil {
		return 0
	}
	n := uint64(0)
	for _, name := range names {
		// A file that has gone meanwhile takes no room.
		if info, err := db.opts.FS.Stat(db.opts.FS.PathJoin(db.dir, name)); err == nil {
			n += uint64(info.Size())
		}
	}
	return n
}

// WrittenBytes returns how much was written to the state's files since Open.
// Pebble's own numbers count blob files twice that a flush made.
func (db *DB) WrittenBytes() uint64 { return db.Written() }

// damage marks Pebble's reports of corruption as ErrDamaged.
func damage(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
