// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
	"github.com/weftraft/weft/rawnode/state/internal/frames"
)

// restoreBatchBytes is how much of a snapshot is written in one batch.
const restoreBatchBytes = 1 << 20

// Restore implements [rawnode.StateMachine]. Since Pebble keeps the order of writes
// through a crash, the record that makes a generation the state is there only if all of
// the generation is.
func (s *State) Restore(to rawnode.SnapshotMeta, body io.Reader) error {
	p, err := s.db.Use()
	if err != nil {
		return err
	}
	defer s.db.Release()
	if err := s.ready(); err != nil {
		return err
	}
	if to.Index == 0 {
		return fmt.Errorf("%w: a snapshot of index 0, want 1 or more", state.ErrInvalid)
	}
	back := to.Index < s.meta.applied
	old, fresh := s.meta.generation, s.meta.generation+1
	if err := s.remove(p, fresh); err != nil { // what a Restore has left that a host's end cut short
		return err
	}
	r := &restorer{s: s, db: p, generation: fresh, frames: &frames.Reader{From: body, Number: 1}}
	if err := r.run(); err != nil {
		err = fmt.Errorf("restore a snapshot of index %d: %w", to.Index, err)
		if s.writer.Left() {
			s.broken = err // what the batch writes is removed by the next Restore, or start
			return err
		}
		return errors.Join(err, s.remove(p, fresh))
	}
	if err := s.replace(p, meta{fresh, to.Index}, to.Host, old); err != nil {
		s.broken = fmt.Errorf("restore a snapshot of index %d: %w", to.Index, err)
		return s.broken
	}
	if back {
		s.mark.durable.Store(to.Index) // which else only goes up
	}
	return nil
}

// replace makes a generation the state, durably, and removes the old one.
func (s *State) replace(p *pebble.DB, m meta, host []byte, old uint64) error {
	b := p.NewBatch()
	err := errors.Join(b.Set(metaKey(s.group, 'm'), m.encode(), nil), put(b, metaKey(s.group, 'h'), host), s.keepLimits(b))
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := s.commit(b); err != nil {
		return err
	}
	if _, err := s.reload(p); err != nil {
		return err
	}
	if err := s.remove(p, old); err != nil {
		return err
	}
	return s.writer.Do(func(p *pebble.DB) error { return p.Flush() })
}

// remove removes a generation.
func (s *State) remove(p *pebble.DB, generation uint64) error {
	prefix := generationKey(s.group, generation)
	b := p.NewBatch()
	if err := b.DeleteRange(prefix, after(prefix), nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return s.commit(b)
}

// restorer writes a snapshot's contents into an empty generation.
type restorer struct {
	s          *State
	db         *pebble.DB
	generation uint64
	frames     *frames.Reader
	batch      *pebble.Batch
}

func (r *restorer) run() (err error) {
	r.batch = r.db.NewBatch()
	defer func() { err = errors.Join(err, r.batch.Close()) }()
	if err := r.sessions(); err != nil {
		return err
	}
	values := bufio.NewReaderSize(r.frames, 64<<10)
	for {
		more, err := r.value(values)
		if r.frames.Err != nil {
			return r.frames.Err
		}
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if r.batch.Len() >= restoreBatchBytes {
			if err := r.commit(); err != nil {
				return err
			}
		}
	}
	if err := r.frames.AtEnd(); err != nil {
		return err
	}
	return r.commit()
}

// commit writes what was collected. While there is no room nothing piles up.
func (r *restorer) commit() error {
	if err := r.s.ready(); err != nil {
		return err
	}
	full := r.batch
	r.batch = r.db.NewBatch()
	return r.s.commit(full)
}

// sessions writes the rows of sessions, up to the first frame of another kind.
func (r *restorer) sessions() error {
	rows := map[session.ID][]byte{}
	for {
		if err := r.frames.Next(); err != nil {
			return err
		}
		if r.frames.Kind != frames.Session {
			break
		}
		id, row, ok := envelope.ParseRow(r.frames.Data)
		if !ok {
			return fmt.Errorf("%w: frame %d is no row of a session", state.ErrDamaged, r.frames.Number-1)
		}
		rows[id] = row
		if err := r.batch.Set(sessionKey(r.s.group, r.generation, id), row, nil); err != nil {
			return err
		}
	}
	if r.s.limits == nil {
		if len(rows) > 0 {
			return fmt.Errorf("%w: GroupOptions.Sessions is nil, the snapshot has sessions: set the limits that all replicas have", state.ErrInvalid)
		}
		return nil
	}
	_, err := envelope.Load(*r.s.limits, envelope.Rows(rows)) // before it is the state
	return err
}

// value reads one key and its value. It returns false at the end of all pieces.
func (r *restorer) value(from *bufio.Reader) (bool, error) {
	if _, err := from.Peek(1); errors.Is(err, io.EOF) {
		return false, nil
	}
	key, err := r.bytes(from, "a key", MaxKeyBytes)
	if err != nil {
		return false, err
	}
	value, err := r.bytes(from, "a value", MaxValueBytes)
	if err != nil {
		return false, err
	}
	return true, r.batch.Set(append(partKey(r.s.group, r.generation, partUser), key...), value, nil)
}

// bytes reads bytes behind their length.
func (r *restorer) bytes(from *bufio.Reader, of string, limit uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(from)
	if err != nil {
		return nil, fmt.Errorf("%w: the length of %s: %w", state.ErrDamaged, of, err)
	}
	if n > limit {
		return nil, fmt.Errorf("%w: %s of %d bytes, the bound is %d", state.ErrDamaged, of, n, limit)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(from, b); err != nil {
		return nil, fmt.Errorf("%w: %s ends early: %w", state.ErrDamaged, of, err)
	}
	return b, nil
}
