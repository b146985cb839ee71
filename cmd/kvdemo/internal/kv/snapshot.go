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
)

// snapshotMagic begins a snapshot; its last byte is the format version.
//
// Then come the applied index (8 bytes) and each key in ascending order:
// uvarint length of the key, the key, uvarint length of the record, the record
// (checksum and value, as stored). A key of length 0 ends them. The number of
// keys (8 bytes) and the CRC-32C of everything before it (4 bytes) end the
// snapshot. Integers of fixed size are big-endian.
const snapshotMagic = "weftkvs\x01"

// Snapshot is a state as it was at one log index, for reading while the store
// goes on. Close it soon: what it refers to stays on disk until then. It is for
// one goroutine at a time.
type Snapshot struct {
	gen   *generation
	snap  *pebble.Snapshot
	index uint64
	host  []byte

	it   *pebble.Iterator // nil before the first Read
	buf  []byte           // what was produced last; its memory is used again
	off  int              // up to where buf has been read
	sum  hash.Hash32      // of what was produced
	keys uint64           // produced so far
	err  error            // what Read returns at the end of buf
}

// Snapshot returns the current state. It may be called while another goroutine
// applies.
func (s *Store) Snapshot() (*Snapshot, error) {
	gen, err := s.acquire()
	if err != nil {
		return nil, err
	}
	snap := &Snapshot{gen: gen, snap: gen.db.NewSnapshot(), sum: crc32.New(castagnoli)}
	applied, err1 := get(snap.snap, keyApplied)
	host, err2 := get(snap.snap, keyHost)
	index, err3 := parseIndex(applied)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	snap.index, snap.host = index, host
	snap.buf = append(snap.buf, snapshotMagic...)
	snap.buf = append(snap.buf, appendIndex(index)...)
	_, _ = snap.sum.Write(snap.buf) // a hash.Hash never fails
	return snap, nil
}

// Index returns the log index of the state.
func (s *Snapshot) Index() uint64 { return s.index }

// Host returns the host's own bytes as of the index.
func (s *Snapshot) Host() []byte { return s.host }

// Close gives the state free. Closing twice does no harm.
func (s *Snapshot) Close() error {
	if s.gen == nil {
		return nil
	}
	var err error
	if s.it != nil {
		err = s.it.Close()
	}
	err = errors.Join(err, s.snap.Close())
	s.gen.release()
	s.gen, s.buf, s.off, s.err = nil, nil, 0, ErrClosed
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

// produce puts the next key into buf, or the end, and then returns io.EOF.
func (s *Snapshot) produce() error {
	more, err := s.advance()
	if err != nil {
		return err
	}
	if !more {
		s.buf = binary.AppendUvarint(s.buf, 0)
		s.buf = binary.BigEndian.AppendUint64(s.buf, s.keys)
		_, _ = s.sum.Write(s.buf)
		s.buf = binary.BigEndian.AppendUint32(s.buf, s.sum.Sum32())
		return io.EOF
	}
	record, err := s.it.ValueAndErr()
	if err != nil {
		return damage(err)
	}
	key := s.it.Key()[1:]
	if _, err := openRecord(key, record); err != nil {
		return err
	}
	s.buf = binary.AppendUvarint(s.buf, uint64(len(key)))
	s.buf = append(s.buf, key...)
	s.buf = binary.AppendUvarint(s.buf, uint64(len(record)))
	s.buf = append(s.buf, record...)
	s.keys++
	_, _ = s.sum.Write(s.buf)
	return nil
}

// advance moves to the next key, if there is one.
func (s *Snapshot) advance() (bool, error) {
	if s.it != nil {
		return s.it.Next(), damage(s.it.Error())
	}
	var err error
	s.it, err = s.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{dataPrefix}, UpperBound: []byte{dataEnd}})
	if err != nil {
		return false, damage(err)
	}
	return s.it.First(), damage(s.it.Error())
}
