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

// Base is a Pebble database below replicated states, whatever the keys are. The states of [DB] are on one; a
// state with a layout of its own is on the same: it writes each batch of commands, with the index of the log, by
// a Writer, and asks a Mark how far the state is durable. The methods may be called by several goroutines.
type Base struct {
	*Database
	opts    Options
	flushes atomic.Uint64 // that have ended
	metrics atomic.Pointer[pebble.Metrics]
}

type (
	// Database is Pebble behind a gate: while the disk is full, changes wait for room, and reads go on; after
	// another failure nothing is written any more. Use gets Pebble, for reads, until Release.
	Database = gate.Database[*pebble.DB]
	// Writer is a group's way to change the database: it does not wait for room any longer than its host lives.
	Writer = gate.Writer[*pebble.DB]
)

// NewWriter returns the way of one group to change the database.
func (b *Base) NewWriter() *Writer { return gate.NewWriter(b.Database) }

// DB is a Pebble database with the states of any number of groups of a node. Its methods
// may be called by several goroutines.
type DB struct {
	*Base

	mu     sync.Mutex
	groups map[uint64]*State
}

// Open opens the database in opts.Dir, or makes an empty one. Errors wrap
// [state.ErrInvalid], [state.ErrLocked], [state.ErrIdentity], [state.ErrVersion],
// [state.ErrDamaged] or [ErrFull] where one of these applies.
func Open(opts Options) (*DB, error) {
	db := &DB{groups: map[uint64]*State{}}
	var err error
	if db.Base, err = OpenBase(opts, opts.identify); err != nil {
		return nil, err
	}
	return db, nil
}

// OpenBase opens the database in opts.Dir, or makes an empty one, for a state with a layout of its own. The
// function identify compares whose state it is, and what version wrote it, in place of opts.Identity; an empty
// database gets its record there. Errors are those of [Open].
func OpenBase(opts Options, identify func(*pebble.DB) error) (*Base, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts.setDefaults()
	b := &Base{opts: opts}
	var err error
	b.Database, err = gate.Open(gate.DatabaseOptions{
		Options: gate.Options{Retry: opts.Retry, Logf: opts.Logf, Full: ErrFull, Failed: ErrFailed, Mark: damage},
		FS:      opts.FS, Dir: opts.Dir, Patience: opts.Patience,
		Closed: state.ErrClosed, Locked: state.ErrLocked, Interrupted: state.ErrInterrupted,
	}, func(g *gate.Gate) (*pebble.DB, error) {
		p, err := pebble.Open(opts.Dir, b.pebbleOptions(g))
		if err != nil {
			return nil, damage(err)
		}
		if err := identify(p); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// identify compares whose state it is.
func (o Options) identify(p *pebble.DB) error {
	want := append([]byte{formatVersion}, o.Identity...)
	found, ok, err := get(p, identityKey)
	switch {
	case err != nil:
		return err
	case ok && (len(found) == 0 || found[0] != formatVersion):
		return fmt.Errorf("%w: %x, this program reads %d: run the program that wrote it", state.ErrVersion, found[:min(1, len(found))], formatVersion)
	case ok && !bytes.Equal(found, want):
		return fmt.Errorf("%w: of %q, this is %q; give the directory of this node", state.ErrIdentity, found[1:], want[1:])
	case ok:
		return nil
	}
	return Found(p, identityKey, want)
}

// Found writes the record of whose state it is into an empty database.
func Found(p *pebble.DB, key, record []byte) error {
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
	if err := p.Set(key, record, pebble.NoSync); err != nil {
		return err
	}
	return p.Flush()
}

// Close flushes and closes the database. Hosts should have stopped, and snapshots have
// been closed; the last snapshot that is open still closes the database. While the disk
// is full, or does not answer, or after a failure, not everything is flushed, and an error
// says so; the log has what is missing. If the disk does not answer, the directory stays
// locked until the disk does. A second call returns [state.ErrClosed].
func (b *Base) Close() error { return b.Database.Close() }

// Flush makes everything durable that was applied before. While the disk is full, or
// when it becomes so, it returns [ErrFull] at once.
func (b *Base) Flush() error { return b.Database.Flush() }

// Stalled returns nil while the state can be written. Otherwise the disk is full, and
// the error, which wraps [ErrFull], says where. Commands wait; reads go on.
func (b *Base) Stalled() error { return b.Database.Stalled() }

// Failed returns a channel that is closed when the disk has failed; Err then says how.
// The node must stop.
func (b *Base) Failed() <-chan struct{} { return b.Database.Dead() }

// Err returns nil, or why Failed is closed.
func (b *Base) Err() error { return b.Database.Failure() }

// Metrics returns Pebble's own, or nil after Close. While the disk is full, when Pebble
// itself would wait for room, Metrics returns those of the last call, nil if there was none.
func (b *Base) Metrics() *pebble.Metrics {
	return gate.Latest(b.Database, &b.metrics, (*pebble.DB).Metrics)
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

// Mark is how far a group's state is durable: the index in the record of one key, as of the last flush. Its
// methods may be called by several goroutines.
type Mark struct {
	base    *Base
	key     []byte
	parse   func(record []byte) (index uint64, err error) // nil is no record
	durable atomic.Uint64                                 // as of seen
	seen    atomic.Uint64                                 // flushes of the database then
}

// NewMark returns the mark at a key, of a state that was found at an index when the database was opened.
func (b *Base) NewMark(key []byte, found uint64, parse func(record []byte) (index uint64, err error)) *Mark {
	m := &Mark{base: b, key: key, parse: parse}
	m.durable.Store(found) // without a log of its own, Pebble opens what was flushed
	return m
}

// Durable returns the index up to which the state survives a crash.
func (m *Mark) Durable() (uint64, error) {
	p, err := m.base.Use()
	if err != nil {
		return 0, err
	}
	defer m.base.Release()
	flushes := m.base.flushes.Load()
	if flushes == m.seen.Load() {
		return m.durable.Load(), nil
	}
	it, err := p.NewIter(&pebble.IterOptions{LowerBound: m.key, UpperBound: after(m.key), OnlyReadGuaranteedDurable: true})
	if err != nil {
		return 0, damage(err)
	}
	index := uint64(0)
	var record []byte
	if it.First() {
		record, err = it.ValueAndErr()
	}
	if err == nil {
		index, err = m.parse(record)
	}
	if err := errors.Join(damage(err), damage(it.Error()), it.Close()); err != nil {
		return 0, err
	}
	raise(&m.durable, index) // two callers may have read different flushes: the later one counts
	raise(&m.seen, flushes)
	return m.durable.Load(), nil
}

// raise stores v unless there is more.
func raise(a *atomic.Uint64, v uint64) {
	for old := a.Load(); old < v && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}
