// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/internal/gate"
	"github.com/weftraft/weft/rawnode/state"
)

// DB is a Pebble database with the states of any number of groups of a node. Its methods
// may be called by several goroutines.
type DB struct {
	opts    Options
	base    *database
	flushes atomic.Uint64 // that have ended
	metrics atomic.Pointer[pebble.Metrics]

	mu     sync.Mutex
	groups map[uint64]*State
}

// database is Pebble behind a gate, and writer a group's way to change the database.
type (
	database = gate.Database[*pebble.DB]
	writer   = gate.Writer[*pebble.DB]
)

// Open opens the database in opts.Dir, or makes an empty one. Errors wrap
// [state.ErrInvalid], [state.ErrLocked], [state.ErrIdentity], [state.ErrVersion],
// [state.ErrDamaged] or [ErrFull] where one of these applies.
func Open(opts Options) (*DB, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts.setDefaults()
	db := &DB{opts: opts, groups: map[uint64]*State{}}
	var err error
	db.base, err = gate.Open(gate.DatabaseOptions{
		Options: gate.Options{Logf: opts.Logf, Full: ErrFull, Failed: ErrFailed, Mark: damage},
		FS:      opts.FS, Dir: opts.Dir,
		Closed: state.ErrClosed, Locked: state.ErrLocked, Interrupted: state.ErrInterrupted,
	}, db.open)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// open opens Pebble, and compares whose state it is.
func (db *DB) open(g *gate.Gate) (*pebble.DB, error) {
	p, err := pebble.Open(db.opts.Dir, db.pebbleOptions(g))
	if err != nil {
		return nil, damage(err)
	}
	if err := db.identify(p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (db *DB) identify(p *pebble.DB) error {
	want := append([]byte{formatVersion}, db.opts.Identity...)
	found, ok, err := get(p, identityKey)
	switch {
	case err != nil:
		return err
	case ok && (len(found) == 0 || found[0] != formatVersion):
		return fmt.Errorf("%w: %x, this program reads %d", state.ErrVersion, found, formatVersion)
	case ok && !bytes.Equal(found, want):
		return fmt.Errorf("%w: of %q, this is %q; give the directory of this node", state.ErrIdentity, found[1:], want[1:])
	case ok:
		return nil
	}
	it, err := p.NewIter(nil)
	if err != nil {
		return damage(err)
	}
	empty := !it.First()
	if err := errors.Join(damage(it.Error()), it.Close()); err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%w: there are keys, and no record of whose they are", state.ErrDamaged)
	}
	if err := p.Set(identityKey, want, pebble.NoSync); err != nil {
		return err
	}
	return p.Flush()
}

// Close flushes and closes the database. Hosts should have stopped, and snapshots have
// been closed; the last snapshot that is open still closes the database. While the disk
// is full, or does not answer, or after a failure, not everything is flushed, and an error
// says so; the log has what is missing. If the disk does not answer, the directory stays
// locked until the disk does. A second call returns [state.ErrClosed].
func (db *DB) Close() error { return db.base.Close() }

// Flush makes everything durable that was applied before. While the disk is full, or
// when it becomes so, it returns [ErrFull] at once.
func (db *DB) Flush() error { return db.base.Flush() }

// Stalled returns nil while the state can be written. Otherwise the disk is full, and
// the error, which wraps [ErrFull], says where. Commands wait; reads go on.
func (db *DB) Stalled() error { return db.base.Stalled() }

// Failed returns a channel that is closed when the disk has failed; Err then says how.
// The node must stop.
func (db *DB) Failed() <-chan struct{} { return db.base.Dead() }

// Err returns nil, or why Failed is closed.
func (db *DB) Err() error { return db.base.Failure() }

// Metrics returns Pebble's own, or nil after Close. While the disk is full, when Pebble
// itself would wait for room, Metrics returns those of the last call, nil if there was none.
func (db *DB) Metrics() *pebble.Metrics {
	return gate.Latest(db.base, &db.metrics, (*pebble.DB).Metrics)
}

// get returns a copy of a value.
func get(r pebble.Reader, key []byte) (value []byte, found bool, err error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, damage(err)
	}
	return append([]byte{}, v...), true, closer.Close()
}
