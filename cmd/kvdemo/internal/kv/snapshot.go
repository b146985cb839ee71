// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/rawnode"
)

// snapshotMagic begins a snapshot, before its format version (1 byte): 5 of a group of
// level 3, 4 of one of level 2, 3 of one of level 1, which a kvdemo that does not know the
// level refuses, else 2.
//
// Then come the applied index and the position (8 bytes each), and each record
// of the group but those of secLarge, secDue and secScore, in the order of the database: the section
// (1 byte), uvarint length of the name, the name, uvarint length of the value,
// the value as stored. A section 0 ends them. The number of records (8 bytes)
// and the CRC-32C of everything before it (4 bytes) end the snapshot. Integers
// of fixed size are big-endian.
const snapshotMagic = "weftkvs"

// Snapshot is a state as it was at one log index, for reading while the store
// goes on. Close it soon: what it refers to stays on disk until then. It is for
// one goroutine at a time.
type Snapshot struct {
	view *view
	meta rawnode.SnapshotMeta

	it      *pebble.Iterator // nil before the first Read
	buf     []byte           // what was produced last; its memory is used again
	off     int              // up to where buf has been read
	sum     hash.Hash32      // of what was produced
	records uint64           // produced so far
	places  *places          // of parts and members
	err     error            // what Read returns at the end of buf
}

// Snapshot implements rawnode.StateMachine: it returns the current state. It may
// be called while another goroutine applies.
func (s *Store) Snapshot() (rawnode.Snapshot, error) {
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	m, host, err := v.readMeta(s.metaKey)
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	snap := &Snapshot{
		view:   v,
		meta:   rawnode.SnapshotMeta{Index: m.applied, Host: host},
		sum:    crc32.New(castagnoli),
		places: newPlaces(),
	}
	level, err := snap.level()
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	snap.buf = append(append(snap.buf, snapshotMagic...), formatOf(level))
	snap.buf = binary.BigEndian.AppendUint64(snap.buf, m.applied)
	snap.buf = binary.BigEndian.AppendUint64(snap.buf, m.position)
	_, _ = snap.sum.Write(snap.buf) // a hash.Hash never fails
	return snap, nil
}

// readMeta returns what the state says of itself, and the host's bytes. If it was restored just now, the new state
// is in the view as well, as meta is written last, and it is the one to read.
func (v *view) readMeta(key []byte) (m meta, host []byte, err error) {
	b, err := v.now.get(key)
	if err != nil {
		return m, nil, err
	}
	if m, host, err = parseMeta(b); err == nil {
		v.space.generation = m.generation
	}
	return m, host, err
}

// Meta returns the log index of the state, and the host's bytes as of it.
func (s *Snapshot) Meta() rawnode.SnapshotMeta { return s.meta }

// Close gives the state free. Closing twice does no harm.
func (s *Snapshot) Close() error {
	if s.view == nil {
		return nil
	}
	var err error
	if s.it != nil {
		err = s.it.Close()
	}
	err = errors.Join(err, s.view.close())
	s.view, s.buf, s.off, s.err = nil, nil, 0, ErrClosed
	return err
}

// Read implements io.Reader: see snapshotMagic. A damaged value ends it with
// ErrDamaged, as damage must not spread to another node.
func (s *Snapshot) Read(p []byte) (int, error) {
	for s.off == len(s.buf) {
		if s.err != nil {
			return 0, s.err
		}
		s.buf, s.off = s.buf[:0], 0
		if s.err = s.produce(); s.err != nil && !errors.Is(s.err, io.EOF) {
			s.err, s.buf = fmt.Errorf("read the state for a snapshot: %w", s.err), nil
		}
	}
	n := copy(p, s.buf[s.off:])
	s.off += n
	return n, nil
}

// produce puts the next record into buf, or the end, and then returns io.EOF.
func (s *Snapshot) produce() error {
	more, err := s.advance()
	if err != nil {
		return err
	}
	if !more {
		s.buf = append(s.buf, 0)
		s.buf = binary.BigEndian.AppendUint64(s.buf, s.records)
		_, _ = s.sum.Write(s.buf)
		s.buf = binary.BigEndian.AppendUint32(s.buf, s.sum.Sum32())
		return io.EOF
	}
	value, err := s.it.ValueAndErr()
	if err != nil {
		return damage(err)
	}
	key := s.it.Key()
	sec, name := section(key[nameStart-1]), key[nameStart:]
	if err := s.places.check(sec, name, value); err != nil {
		return err
	}
	s.buf = append(s.buf, byte(sec))
	s.buf = appendBytes(s.buf, name)
	s.buf = appendBytes(s.buf, value)
	s.records++
	_, _ = s.sum.Write(s.buf)
	return nil
}

// advance moves to the next record, if there is one.
func (s *Snapshot) advance() (bool, error) {
	if s.it != nil {
		more := s.it.Next()
		for more {
			sec := section(s.it.Key()[nameStart-1])
			if sec != secLarge && sec != secDue && sec != secScore {
				break
			}
			more = s.it.SeekGE(s.view.space.key(sec+1, nil)) // behind the index
		}
		return more, damage(s.it.Error())
	}
	var err error
	s.it, err = s.view.now.iter(s.view.space.key(secData, nil), s.view.space.key(secRevision+1, nil))
	if err != nil {
		return false, err
	}
	return s.it.First(), damage(s.it.Error())
}

// level returns the level of the state.
func (s *Snapshot) level() (int, error) {
	b, err := s.view.now.get(s.view.space.key(secSystem, []byte(LevelKey)))
	return levelOf(b), err
}
