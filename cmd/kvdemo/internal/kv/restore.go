// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/rawnode"
)

const (
	// restoreBatchBytes is how much of a snapshot is written in one batch.
	restoreBatchBytes = 1 << 20
	// maxNameBytes bounds a name in a snapshot.
	maxNameBytes = max(MaxKeyBytes, numberBytes+MaxMemberBytes)
	// maxRecordBytes bounds a value in a snapshot.
	maxRecordBytes = MaxInlineBytes + 64
)

// Restore implements rawnode.StateMachine: it replaces the group's whole state
// by a snapshot, durably, and all or nothing. After an error the state is the
// one before; after a crash it is that or the new one. Other groups go on
// meanwhile. Bytes that are not a whole snapshot of that index are refused with
// errSnapshot; an error of body other than io.EOF is returned.
//
// The records go into a generation of their own, which nobody looks at. Then one
// write to meta makes it the state. Pebble keeps the order of writes through a
// crash, so when meta is there, so is the rest.
func (s *Store) Restore(to rawnode.SnapshotMeta, body io.Reader) error {
	p, err := s.db.Use()
	if err != nil {
		return err
	}
	defer s.db.Release()
	if s.broken != nil {
		return s.broken
	}
	if s.meta.generation == math.MaxUint32 {
		return fmt.Errorf("%w: group %d has restored %d snapshots, its last", ErrInvalid, s.group, s.meta.generation)
	}
	old := s.space()
	fresh := space{s.group, old.generation + 1}
	t, err := newSnapshotReader(s, p, body).restore(fresh, to.Index)
	if err != nil {
		if dropped := s.drop(fresh); dropped != nil {
			return s.breaks(errors.Join(err, dropped)) // Load removes what there is
		}
		return err
	}
	m := meta{generation: fresh.generation, applied: to.Index, position: t.position}
	record := append(m.append(nil), to.Host...)
	if err := s.become(record, t); err != nil {
		return s.breaks(fmt.Errorf("restore snapshot: %w", err))
	}
	s.meta, s.host, s.tables = m, bytes.Clone(to.Host), t
	s.publish()
	// Memory is at the new state now, so what fails is not an error of the
	// snapshot any more.
	if err := s.durably(old); err != nil {
		return s.breaks(err)
	}
	return nil
}

// become writes the meta record that makes a restored state the group's.
func (s *Store) become(record []byte, t *tables) error {
	return s.changes.Do(func(p *pebble.DB) error {
		if err := s.db.raise(p, t.level()); err != nil {
			return err
		}
		return p.Set(s.metaKey, record, pebble.NoSync)
	})
}

// durably removes the old generation and makes the new one durable.
func (s *Store) durably(old space) error {
	if err := s.drop(old); err != nil {
		return err
	}
	return s.changes.Do(func(p *pebble.DB) error { return p.Flush() })
}

// drop removes a generation.
func (s *Store) drop(sp space) error {
	prefix := generationKey(sp.group, sp.generation)
	if err := s.remove(prefix, prefixEnd(prefix)); err != nil {
		return fmt.Errorf("remove an old state: %w", err)
	}
	return nil
}

// snapshotReader reads and sums; whatever is wrong it reports as errSnapshot,
// with the place.
type snapshotReader struct {
	s       *Store
	db      *pebble.DB
	r       *bufio.Reader
	sum     hash.Hash32
	n       int64
	records uint64
	last    []byte // section and name of the record before
}

func newSnapshotReader(s *Store, db *pebble.DB, r io.Reader) *snapshotReader {
	return &snapshotReader{s: s, db: db, r: bufio.NewReaderSize(r, 64<<10), sum: crc32.New(castagnoli)}
}

// restore writes the records into a generation that is empty, and returns its
// tables.
func (r *snapshotReader) restore(sp space, index uint64) (*tables, error) {
	position, err := r.header(index)
	if err != nil {
		return nil, err
	}
	b := newBuilder(position)
	for more := true; more; {
		// While the disk is full nothing piles up in memory.
		if err := r.s.changes.Ready(); err != nil {
			return nil, err
		}
		if more, err = r.batch(sp, b); err != nil {
			return nil, err
		}
	}
	if err := r.trailer(); err != nil {
		return nil, err
	}
	t, err := b.finish()
	if err != nil {
		return nil, r.bad("%v", err)
	}
	return t, nil
}

func (r *snapshotReader) bad(what string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s; nothing was changed, the leader sends it again", errSnapshot, r.n, fmt.Sprintf(what, args...))
}

// read fills b.
func (r *snapshotReader) read(b []byte) error {
	n, err := io.ReadFull(r.r, b)
	r.n += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.bad("it ends early")
	}
	if err != nil {
		return fmt.Errorf("receive snapshot: %w", err)
	}
	_, _ = r.sum.Write(b) // a hash.Hash never fails
	return nil
}

// ReadByte implements io.ByteReader for binary.ReadUvarint.
func (r *snapshotReader) ReadByte() (byte, error) {
	var b [1]byte
	err := r.read(b[:])
	return b[0], err
}

// bytes reads bytes with their length in front, which is at most limit.
func (r *snapshotReader) bytes(of string, limit int) ([]byte, error) {
	before := r.n
	n, err := binary.ReadUvarint(r)
	switch {
	case err != nil && r.n-before == binary.MaxVarintLen64:
		return nil, r.bad("length of %s: %v", of, err) // not an error of read
	case err != nil:
		return nil, fmt.Errorf("length of %s: %w", of, err)
	case n > uint64(limit):
		return nil, r.bad("length of %s: %d, want at most %d", of, n, limit)
	}
	b := make([]byte, n)
	return b, r.read(b)
}

// header reads up to the first record and returns the position.
func (r *snapshotReader) header(index uint64) (uint64, error) {
	head := make([]byte, len(snapshotMagic)+1+16)
	if err := r.read(head); err != nil {
		return 0, err
	}
	if magic := head[:len(snapshotMagic)]; string(magic) != snapshotMagic {
		return 0, r.bad("it begins with %q, want %q", magic, snapshotMagic)
	}
	if v := head[len(snapshotMagic)]; v < oldestFormat || v > formatVersion {
		return 0, r.bad("it has the format version %d, want %d to %d", v, oldestFormat, formatVersion)
	}
	head = head[len(snapshotMagic)+1:]
	if got := binary.BigEndian.Uint64(head); got != index {
		return 0, r.bad("it is of index %d, announced was %d", got, index)
	}
	return binary.BigEndian.Uint64(head[8:]), nil
}

// batch writes some records. It returns false at their end.
func (r *snapshotReader) batch(sp space, to *builder) (bool, error) {
	b := r.db.NewBatchWithSize(restoreBatchBytes + 128<<10)
	more, err := true, error(nil)
	for more && err == nil && b.Len() < restoreBatchBytes {
		more, err = r.record(sp, b, to)
	}
	if err != nil {
		return false, errors.Join(err, b.Close())
	}
	return more, r.s.commit(b)
}

// record reads one record into the batch. It returns false at the end.
func (r *snapshotReader) record(sp space, b *pebble.Batch, to *builder) (bool, error) {
	sec, err := r.ReadByte()
	if err != nil || sec == 0 {
		return false, err
	}
	name, err := r.bytes("a name", maxNameBytes)
	if err != nil {
		return false, err
	}
	at := append([]byte{sec}, name...)
	if bytes.Compare(at, r.last) <= 0 {
		return false, r.bad("record %q follows %q", at, r.last)
	}
	r.last = at
	value, err := r.bytes("a record", maxRecordBytes)
	if err != nil {
		return false, err
	}
	if err := to.add(section(sec), name, value); err != nil {
		return false, r.bad("%v", err)
	}
	r.records++
	err = b.Set(sp.key(section(sec), name), value, nil)
	if ref, ok := to.tables.large[string(name)]; ok && section(sec) == secData {
		err = errors.Join(err, b.Set(sp.key(secLarge, name), ref.encode(), nil))
	}
	if section(sec) == secMember {
		err = errors.Join(err, b.Set(sp.key(secScore, to.indexed), scoreRow(to.indexed), nil))
	}
	if section(sec) == secDeadline {
		err = errors.Join(err, b.Set(sp.key(secDue, append(slices.Clone(value), name...)), nil, nil))
	}
	return true, err
}

// trailer compares the number of records and the checksum of it all, and that
// nothing follows.
func (r *snapshotReader) trailer() error {
	var count [8]byte
	if err := r.read(count[:]); err != nil {
		return err
	}
	if want := binary.BigEndian.Uint64(count[:]); want != r.records {
		return r.bad("it has %d records, announced were %d", r.records, want)
	}
	got := r.sum.Sum32()
	var sum [4]byte
	if err := r.read(sum[:]); err != nil {
		return err
	}
	if want := binary.BigEndian.Uint32(sum[:]); want != got {
		return r.bad("its checksum is %08x, want %08x", got, want)
	}
	switch _, err := r.r.ReadByte(); {
	case err == nil:
		return r.bad("more bytes follow its end")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("receive snapshot: %w", err)
	}
	return nil
}
