// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/rawnode"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// Store is the state of one group: a [rawnode.StateMachine], and what clients
// read. Apply and Restore are for one goroutine; everything else may be called
// by any.
type Store struct {
	db      *DB
	group   uint64
	metaKey []byte

	// Readers take the index first and the generation second, and Restore
	// changes them in the opposite order: so what is read is never older than
	// the index that is returned with it.
	applied    atomic.Uint64 // log index
	generation atomic.Uint32 // that readers look at
	revision   atomic.Uint64 // commands applied
	mark       *pebblestate.Mark

	system chan struct{} // a token after system keys changed
	gauges gauges
	// history is for those that watch.
	history history

	// Of the goroutine that applies, but for Interrupt:

	changes *pebblestate.Writer
	tables  *tables
	meta    meta // as of the last batch
	host    []byte
	// batch is used again and again.
	batch  *pebble.Batch
	writer writer // of the batch under way
	// broken says why nothing may be applied any more, until Load: memory and database
	// may differ.
	broken error
}

var (
	_ rawnode.StateMachine  = (*Store)(nil)
	_ rawnode.Interruptible = (*Store)(nil)
)

// meta is the part of a group's meta record that is the store's own. The host's
// bytes follow it.
type meta struct {
	// generation is the generation in force; 0 only before the first is written.
	generation uint32
	applied    uint64 // log index
	// position counts the commands that were applied: the clock by which
	// uploads age, the same at all replicas.
	position uint64
}

const metaBytes = 4 + 8 + 8

func (m meta) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, m.generation)
	b = binary.BigEndian.AppendUint64(b, m.applied)
	return binary.BigEndian.AppendUint64(b, m.position)
}

// parseMeta is the inverse of append; it returns the host's bytes too. An empty
// state has no record.
func parseMeta(b []byte) (meta, []byte, error) {
	if b == nil {
		return meta{generation: 1}, nil, nil
	}
	if len(b) < metaBytes {
		return meta{}, nil, fmt.Errorf("%w: its meta record is %x", ErrDamaged, b)
	}
	m := meta{
		generation: binary.BigEndian.Uint32(b),
		applied:    binary.BigEndian.Uint64(b[4:]),
		position:   binary.BigEndian.Uint64(b[12:]),
	}
	return m, b[metaBytes:], nil
}

func newStore(db *DB, group uint64) *Store {
	return &Store{db: db, group: group, metaKey: metaKey(group), changes: db.NewWriter(), system: make(chan struct{}, 1)}
}

// load finds out how far the state goes, and reads what Apply keeps in memory.
func (s *Store) load(p *pebble.DB) error {
	b, err := present{p}.get(s.metaKey)
	if err != nil {
		return err
	}
	if s.meta, s.host, err = parseMeta(b); err != nil {
		return err
	}
	if s.tables, err = loadTables(present{p}, s.space(), s.meta.position); err != nil {
		return err
	}
	if err := s.db.checkLevel(s.tables); err != nil {
		return err
	}
	s.publish()
	return s.sweep(p)
}

// publish shows readers a state that has come about otherwise than by Apply.
func (s *Store) publish() {
	s.generation.Store(s.meta.generation)
	s.revision.Store(s.meta.position)
	s.history.begin(s.meta.position)
	s.applied.Store(s.meta.applied)
	s.gauges.set(s.tables)
	s.notify()
}

// space is the generation that Apply writes to.
func (s *Store) space() space { return space{s.group, s.meta.generation} }

// sweep removes what a crash, or the end of a host, left of other generations.
func (s *Store) sweep(p *pebble.DB) error {
	first := generationKey(s.group, 1)
	current := generationKey(s.group, s.meta.generation)
	for _, span := range [][2][]byte{{first, current}, {prefixEnd(current), prefixEnd(groupKey(s.group))}} {
		if slices.Compare(span[0], span[1]) >= 0 {
			continue
		}
		it, err := present{p}.iter(span[0], span[1])
		if err != nil {
			return err
		}
		found := it.First()
		err = errors.Join(damage(it.Error()), it.Close())
		if found && err == nil {
			err = s.remove(span[0], span[1])
		}
		if err != nil {
			return fmt.Errorf("remove what an unfinished snapshot left: %w", err)
		}
	}
	return nil
}

// remove removes a range of keys.
func (s *Store) remove(from, to []byte) error {
	return s.changes.Do(func(p *pebble.DB) error { return p.DeleteRange(from, to, pebble.NoSync) })
}

// commit writes a batch that is used once.
func (s *Store) commit(b *pebble.Batch) error {
	return s.changes.Do(func(*pebble.DB) error { return errors.Join(b.Commit(pebble.NoSync), b.Close()) })
}

// Load implements rawnode.StateMachine. A batch that the last host has left, because the
// batch waited for room, is in the state or not. What another host of this process has
// applied is flushed first.
func (s *Store) Load() (applied uint64, host []byte, err error) {
	p, err := s.db.Use()
	if err != nil {
		return 0, nil, err
	}
	defer s.db.Release()
	if err := s.changes.Begin(); err != nil {
		return 0, nil, err
	}
	if s.broken != nil {
		if err := errors.Join(s.db.identify(p), s.load(p)); err != nil {
			return 0, nil, err
		}
		s.broken = nil
	}
	durable, err := s.Durable()
	if err == nil && durable < s.meta.applied {
		err = s.db.Flush()
	}
	return s.meta.applied, slices.Clone(s.host), err
}

// Interrupt implements rawnode.Interruptible: nothing waits for room any more, as the
// host has ended.
func (s *Store) Interrupt(reason error) { s.changes.Interrupt(reason) }

// Applied returns the log index up to which commands are applied.
func (s *Store) Applied() uint64 { return s.applied.Load() }

// Stalled is that of the database: Apply waits while it is not nil.
func (s *Store) Stalled() error { return s.db.Stalled() }

// Flush makes everything durable that any group applied before.
func (s *Store) Flush() error { return s.db.Flush() }

// Durable returns the log index up to which the state survives a crash without
// the log's help.
func (s *Store) Durable() (uint64, error) { return s.mark.Durable() }

// NumbersCommands implements weft.Numbered: revisions are numbers of commands.
func (s *Store) NumbersCommands() bool { return true }
