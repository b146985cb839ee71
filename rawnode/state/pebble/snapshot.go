// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/internal/compare"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
	"github.com/weftraft/weft/rawnode/state/internal/frames"
)

// A snapshot's body is frames: the rows of sessions, then as pieces each key and value
// of the user, with their lengths in front.

// snapshot is a view of a state for another node. It is for one goroutine at a time.
type snapshot struct {
	s    *State
	meta rawnode.SnapshotMeta
	now  frozen
	it   *pebble.Iterator
	skip int // bytes of the generation's prefix
	buf  bytes.Buffer
	out  *frames.Writer
	next func(*snapshot) error // produces some; io.EOF at the end
	err  error
}

// Meta implements [rawnode.Snapshot].
func (s *snapshot) Meta() rawnode.SnapshotMeta { return s.meta }

// SnapshotBytes returns what the group takes of the disk, compressed, without what is in memory tables: see
// [rawnode.StateMachine]. It returns 0 if that cannot be read.
func (s *State) SnapshotBytes() int64 {
	p, err := s.db.Use()
	if err != nil {
		return 0
	}
	defer s.db.Release()
	n, err := p.EstimateDiskUsage(generationKey(s.group, s.meta.generation), generationKey(s.group, s.meta.generation+1))
	if err != nil {
		return 0
	}
	return int64(n)
}

// Snapshot implements [rawnode.StateMachine].
func (s *State) Snapshot() (rawnode.Snapshot, error) {
	db, err := s.db.Use()
	if err != nil {
		return nil, err
	}
	now, err := freeze(db)
	if err != nil {
		s.db.Release()
		return nil, err
	}
	p := &snapshot{s: s, now: now, next: (*snapshot).sessions}
	p.out = &frames.Writer{To: &p.buf, Number: 1}
	m, host, err := metaAndHost(now, s.group)
	if err == nil {
		p.meta = rawnode.SnapshotMeta{Index: m.applied, Host: host}
		prefix := generationKey(s.group, m.generation)
		p.skip = len(prefix)
		p.it, err = now.iter(prefix, after(prefix))
	}
	if err != nil {
		return nil, fmt.Errorf("open a snapshot of group %d: %w", s.group, errors.Join(damage(err), p.Close()))
	}
	return p, nil
}

// Digest has replicas compared: see Comparable in package weft. The sum is one of the keys and values
// of the user, and of the sessions, in their order.
func (s *State) Digest() (sum func(context.Context) (uint64, error), err error) {
	view, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (uint64, error) {
		total := compare.NewSum(ctx)
		_, err := io.Copy(total, view)
		return total.Sum64(), errors.Join(err, view.Close())
	}, nil
}

// Read implements [io.Reader].
func (s *snapshot) Read(b []byte) (int, error) {
	for s.buf.Len() == 0 {
		if s.err == nil {
			s.err = s.next(s)
			continue
		}
		return 0, s.err
	}
	return s.buf.Read(b)
}

// sessions produces the rows of sessions.
func (s *snapshot) sessions() error {
	for ok := s.it.First(); ok; ok = s.it.Next() {
		key := s.it.Key()[s.skip:]
		if key[0] != partSession {
			break
		}
		row, err := s.it.ValueAndErr()
		if err != nil {
			return damage(err)
		}
		if len(key) != 9 {
			return fmt.Errorf("%w: the key of a session is %x", state.ErrDamaged, key)
		}
		id := session.ID(binary.BigEndian.Uint64(key[1:]))
		if err := s.out.Frame(frames.Session, envelope.EncodeRow(id, row)); err != nil {
			return err
		}
	}
	s.next = (*snapshot).values
	return damage(s.it.Error())
}

// values produces some of the user's keys.
func (s *snapshot) values() error {
	for s.it.Valid() && s.buf.Len() == 0 {
		value, err := s.it.ValueAndErr()
		if err != nil {
			return damage(err)
		}
		for _, b := range [][]byte{s.it.Key()[s.skip+1:], value} {
			if _, err := s.out.Write(append(binary.AppendUvarint(nil, uint64(len(b))), b...)); err != nil {
				return err
			}
		}
		s.it.Next()
	}
	if s.it.Valid() {
		return nil
	}
	if err := s.it.Error(); err != nil {
		return damage(err)
	}
	if err := s.out.End(); err != nil {
		return err
	}
	return io.EOF
}

// Close lets go of the view. Closing twice does no harm.
func (s *snapshot) Close() (err error) {
	if s.now.at == nil {
		return nil
	}
	if s.it != nil {
		err = s.it.Close()
	}
	err = errors.Join(err, s.now.at.Close())
	s.s.db.Release()
	s.now, s.it, s.err = frozen{}, nil, state.ErrClosed
	s.buf.Reset()
	return err
}
