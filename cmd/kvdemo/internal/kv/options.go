// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// Options are those of the database; [Open] sets the directory, and whose state it is.
type Options = pebblestate.Options

// baseOptions adds what suits the states of kvdemo.
func (db *DB) baseOptions(o Options) Options {
	adjust := o.Adjust
	o.Dir, o.Adjust = db.dir, func(p *pebble.Options) {
		// What a group was before it restored a snapshot is given free soon.
		p.FlushDelayDeleteRange = 10 * time.Second
		for i := range p.Levels {
			p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
			p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.FastestCompression }
		}
		if adjust != nil {
			adjust(p)
		}
	}
	return o
}

// DiskBytes returns the size of the state's files. Pebble's own number leaves
// blob files out that it found when it opened.
func (db *DB) DiskBytes() uint64 {
	names, err := db.fs.List(db.dir)
	if err != nil {
		return 0
	}
	n := uint64(0)
	for _, name := range names {
		// A file that has gone meanwhile takes no room.
		if info, err := db.fs.Stat(db.fs.PathJoin(db.dir, name)); err == nil {
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
