// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
)

// Apply applies one command: it reads and writes through tx and returns a result for the
// caller of Propose, any value, an error too. What it writes, and the result, must be a
// function of the state and the command alone, or replicas come to different states. An
// error err is one of the database, and stops the host, at all replicas and at each start if the
// command is the cause: what is wrong with a command, such as a key above [MaxKeyBytes], is a
// result. The command may be kept, and must not be changed.
type Apply func(tx *Tx, command []byte) (result any, err error)

// State is one group's state: a [rawnode.StateMachine]. Host and readers may use it at
// the same time.
type State struct {
	db     *DB
	writer *Writer // Interrupt is for any goroutine, all else for the one that applies
	group  uint64
	apply  Apply
	limits *session.Limits
	query  func(Reader, []byte) ([]byte, error) // nil: without

	// What follows is the apply goroutine's.
	meta     meta
	sessions *envelope.Sessions // nil: without
	kept     bool               // the database has the limits of sessions
	broken   error              // set when memory and database may differ, until Load

	mark *Mark
}

// Static checks of what a host looks for.
var (
	_ rawnode.StateMachine  = (*State)(nil)
	_ rawnode.Interruptible = (*State)(nil)
	_ rawnode.Querier       = (*State)(nil)
	_ rawnode.ResultEncoder = (*State)(nil)
)

// Group returns the state of a group, of any number; it is empty if it is new. A group
// is asked for once, until Close.
func (db *DB) Group(group uint64, apply Apply, o GroupOptions) (*State, error) {
	if apply == nil {
		return nil, fmt.Errorf("%w: apply is nil, want a function that applies a command", state.ErrInvalid)
	}
	if o.Sessions != nil {
		if err := envelope.CheckLimits(*o.Sessions); err != nil {
			return nil, fmt.Errorf("%w: GroupOptions.Sessions: %w", state.ErrInvalid, err)
		}
	}
	p, err := db.Use()
	if err != nil {
		return nil, err
	}
	defer db.Release()
	s := &State{db: db, writer: db.NewWriter(), group: group, apply: apply, limits: o.Sessions, query: o.Query}
	if err := s.begin(p); err != nil {
		return nil, fmt.Errorf("open state of group %d in %s: %w", group, db.opts.Dir, err)
	}
	return s, nil
}

// begin finds the state, and removes what a crash left of others.
func (s *State) begin(p *pebble.DB) error {
	s.db.mu.Lock()
	taken := s.db.groups[s.group] != nil
	if !taken {
		s.db.groups[s.group] = s
	}
	s.db.mu.Unlock()
	if taken {
		return fmt.Errorf("%w: the group's state is open already", state.ErrInvalid)
	}
	err := s.find(p)
	if err != nil {
		s.db.mu.Lock()
		defer s.db.mu.Unlock()
		delete(s.db.groups, s.group)
	}
	return err
}

// find is begin without the mutex, because removing may wait for room on the disk.
func (s *State) find(p *pebble.DB) error {
	if _, err := s.reload(p); err != nil {
		return err
	}
	all := append([]byte{prefixState}, metaKey(s.group, 0)[1:9]...)
	own := generationKey(s.group, s.meta.generation)
	for _, r := range [][2][]byte{{all, own}, {after(own), after(all)}} {
		if err := s.removeIfAny(p, r[0], r[1]); err != nil {
			return err
		}
	}
	s.mark = s.db.NewMark(metaKey(s.group, 'm'), s.meta.applied, func(record []byte) (uint64, error) {
		m, err := decodeMeta(record)
		return m.applied, err
	})
	return nil
}

// removeIfAny removes a range of keys that may be empty.
func (s *State) removeIfAny(p *pebble.DB, from, to []byte) error {
	it, err := p.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damage(err)
	}
	any := it.First()
	if err := errors.Join(damage(it.Error()), it.Close()); err != nil || !any {
		return err
	}
	return p.DeleteRange(from, to, pebble.NoSync)
}

// reload reads what is kept in memory beside the database, and returns the host's bytes.
func (s *State) reload(p *pebble.DB) (host []byte, err error) {
	m, host, err := metaAndHost(present{p}, s.group)
	if err != nil {
		return nil, err
	}
	limits, _, err := present{p}.get(metaKey(s.group, 'l'))
	if err != nil {
		return nil, err
	}
	if s.kept = len(limits) > 0; s.kept {
		if err := envelope.CheckKept(string(limits), s.limits); err != nil {
			return nil, err
		}
	}
	rows := map[session.ID][]byte{}
	prefix := partKey(s.group, m.generation, partSession)
	v := view{from: present{p}, prefix: prefix}
	err = v.Scan(nil, nil, func(key, value []byte) bool {
		if len(key) == 8 {
			rows[session.ID(binary.BigEndian.Uint64(key))] = bytes.Clone(value)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if s.limits == nil && len(rows) > 0 {
		return nil, fmt.Errorf("%w: GroupOptions.Sessions is nil, the state has %d rows of sessions: set the limits that all replicas have", state.ErrInvalid, len(rows))
	}
	if s.limits != nil {
		if s.sessions, err = envelope.Load(*s.limits, envelope.Rows(rows)); err != nil {
			return nil, err
		}
	}
	s.meta, s.broken = m, nil
	return host, nil
}

// metaOf reads where a group's state is.
func metaOf(r source, group uint64) (m meta, err error) {
	b, _, err := r.get(metaKey(group, 'm'))
	if err != nil {
		return m, err
	}
	return decodeMeta(b)
}

// metaAndHost reads where a group's state is, and the host's bytes.
func metaAndHost(r source, group uint64) (m meta, host []byte, err error) {
	if m, err = metaOf(r, group); err != nil {
		return m, nil, err
	}
	host, _, err = r.get(metaKey(group, 'h'))
	return m, host, err
}

// Load implements [rawnode.StateMachine]. What another host of the same State has applied
// is flushed first.
func (s *State) Load() (applied uint64, host []byte, err error) {
	p, err := s.db.Use()
	if err != nil {
		return 0, nil, err
	}
	defer s.db.Release()
	if err := s.writer.Begin(); err != nil {
		return 0, nil, err
	}
	if host, err = s.reload(p); err != nil {
		return 0, nil, err
	}
	durable, err := s.Durable()
	if err == nil && durable < s.meta.applied {
		err = s.db.Flush()
	}
	return s.meta.applied, host, err
}

// Interrupt implements [rawnode.Interruptible].
func (s *State) Interrupt(reason error) { s.writer.Interrupt(reason) }

// Settings is looked for by hosts: see [rawnode.StateMachine].
func (s *State) Settings() []rawnode.Setting { return envelope.Settings(s.limits) }

// Stalled returns nil while commands can be applied, and else why they wait: hosts look
// for it.
func (s *State) Stalled() error { return s.db.Stalled() }

// ready waits until the state can be changed.
func (s *State) ready() error {
	if s.broken != nil {
		return s.broken
	}
	return s.writer.Ready()
}

// Apply implements [rawnode.StateMachine]: the batch, its index and the host's bytes are
// one batch of the database.
func (s *State) Apply(b rawnode.Batch) ([]any, error) {
	p, err := s.db.Use()
	if err != nil {
		return nil, err
	}
	defer s.db.Release()
	if err := s.ready(); err != nil {
		return nil, err
	}
	if b.Index <= s.meta.applied {
		return nil, fmt.Errorf("%w: a batch of index %d for a state at index %d, want a higher one: nothing is applied twice", state.ErrInvalid, b.Index, s.meta.applied)
	}
	batch := p.NewIndexedBatchWithSize(room(b))
	results, err := s.fill(batch, b)
	if err != nil {
		err = errors.Join(err, batch.Close())
	} else {
		err = s.commit(batch)
	}
	if err != nil {
		s.broken = fmt.Errorf("apply a batch of index %d: %w", b.Index, err)
		return nil, s.broken
	}
	s.meta.applied, s.kept = b.Index, s.sessions != nil
	return results, nil
}

// commit writes a batch and closes it.
func (s *State) commit(batch *pebble.Batch) error {
	return s.writer.Do(func(*pebble.DB) error { return errors.Join(batch.Commit(pebble.NoSync), batch.Close()) })
}

// room is about what a batch takes whose commands are keys and values to be written. A batch that has to grow doubles, and copies all
// that it has.
func room(b rawnode.Batch) int {
	n := 1<<10 + len(b.Host)
	for _, c := range b.Commands {
		n += len(c) + 64 // a key's prefix, and the lengths
	}
	return n
}

// fill puts a batch of commands, and all that belongs to it, into a batch of the
// database.
func (s *State) fill(batch *pebble.Batch, b rawnode.Batch) ([]any, error) {
	tx := &Tx{view: view{from: present{batch}, prefix: partKey(s.group, s.meta.generation, partUser)}, batch: batch}
	results := make([]any, len(b.Commands))
	for i, c := range b.Commands {
		var err error
		if s.sessions == nil {
			results[i], err = s.apply(tx, c)
		} else {
			results[i], err = s.sessions.Apply(c, func(inner []byte) (any, error) { return s.apply(tx, inner) })
		}
		if err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
	}
	if s.sessions != nil {
		if err := s.keepLimits(batch); err != nil {
			return nil, err
		}
		for id, row := range s.sessions.Changes() {
			if err := put(batch, sessionKey(s.group, s.meta.generation, id), row); err != nil {
				return nil, err
			}
		}
	}
	err := batch.Set(metaKey(s.group, 'm'), meta{s.meta.generation, b.Index}.encode(), nil)
	if b.Host != nil {
		err = errors.Join(err, batch.Set(metaKey(s.group, 'h'), b.Host, nil))
	}
	return results, err
}

// keepLimits puts the limits of sessions into the first batch behind which they count.
func (s *State) keepLimits(b *pebble.Batch) error {
	if s.limits == nil || s.kept {
		return nil
	}
	return b.Set(metaKey(s.group, 'l'), []byte(envelope.Describe(s.limits)), nil)
}

// put sets a value, or removes the key if there is none.
func put(b *pebble.Batch, key, value []byte) error {
	if value == nil {
		return b.Delete(key, nil)
	}
	return b.Set(key, value, nil)
}

// Durable implements [rawnode.StateMachine].
func (s *State) Durable() (uint64, error) { return s.mark.Durable() }

// Query implements [rawnode.Querier], by GroupOptions.Query.
func (s *State) Query(_ context.Context, request []byte) (answer []byte, err error) {
	if s.query == nil {
		return nil, rawnode.ErrNoQueries
	}
	err = s.View(func(r Reader) (err error) {
		answer, err = s.query(r, request)
		return err
	})
	return answer, err
}

// EncodeResult implements [rawnode.ResultEncoder]: see [state.DecodeResult].
func (s *State) EncodeResult(result any) ([]byte, error) { return envelope.EncodeResult(result) }

// View calls f with the present state, between two batches of commands; commands go on
// meanwhile. The reader is valid until f returns. A read behind [rawnode.Host.Read] is
// linearizable.
func (s *State) View(f func(Reader) error) (err error) {
	p, err := s.db.Use()
	if err != nil {
		return err
	}
	defer s.db.Release()
	now, err := freeze(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, now.at.Close()) }()
	m, err := metaOf(now, s.group)
	if err != nil {
		return err
	}
	return f(&view{from: now, prefix: partKey(s.group, m.generation, partUser)})
}
