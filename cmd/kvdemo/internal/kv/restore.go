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

	"github.com/cockroachdb/pebble/v2"
)

// restoreBatchBytes is how much of a snapshot is written in one batch.
const restoreBatchBytes = 4 << 20

// Restore replaces the whole state by a snapshot of the given index and the
// host's bytes, durably, and all or nothing: after an error or a crash the
// state is the one before, or after a crash the new one. Bytes that are not a
// whole snapshot of that index are refused with ErrSnapshot; an error of r other
// than io.EOF is returned.
func (s *Store) Restore(index uint64, host []byte, r io.Reader) error {
	numbers, err := s.generations()
	if err != nil {
		return err
	}
	if len(numbers) == 0 {
		return ErrClosed
	}
	gen, err := s.replace(numbers[len(numbers)-1]+1, func(db *pebble.DB) error {
		return restoreInto(db, index, host, r)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.gen
	s.gen = gen
	s.mu.Unlock()
	if old == nil {
		gen.release()
		return ErrClosed
	}
	old.outlived.Store(true)
	old.release()
	return nil
}

func restoreInto(db *pebble.DB, index uint64, host []byte, r io.Reader) error {
	sr := newSnapshotReader(r)
	got, err := sr.header()
	if err != nil {
		return err
	}
	if got != index {
		return fmt.Errorf("%w: it is of index %d, announced was %d", ErrSnapshot, got, index)
	}
	if err := sr.into(db); err != nil {
		return err
	}
	if err := sr.trailer(); err != nil {
		return err
	}
	if err := setOwn(db, index, host); err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	return nil
}

// snapshotReader reads and sums; whatever is wrong it reports as ErrSnapshot,
// with the place.
type snapshotReader struct {
	r    *bufio.Reader
	sum  hash.Hash32
	n    int64
	keys uint64
}

func newSnapshotReader(r io.Reader) *snapshotReader {
	return &snapshotReader{r: bufio.NewReaderSize(r, 64<<10), sum: crc32.New(castagnoli)}
}

func (r *snapshotReader) bad(what string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s; nothing was changed, the leader sends it again", ErrSnapshot, r.n, fmt.Sprintf(what, args...))
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

// length reads a uvarint that is at most limit.
func (r *snapshotReader) length(of string, limit int) (int, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, fmt.Errorf("length of %s: %w", of, err)
	}
	if n > uint64(limit) {
		return 0, r.bad("length of %s: %d, want at most %d", of, n, limit)
	}
	return int(n), nil
}

// header reads up to the first key and returns the index.
func (r *snapshotReader) header() (uint64, error) {
	head := make([]byte, len(snapshotMagic)+8)
	if err := r.read(head); err != nil {
		return 0, err
	}
	if magic := head[:len(snapshotMagic)]; string(magic) != snapshotMagic {
		return 0, r.bad("it begins with %q, want %q", magic, snapshotMagic)
	}
	return binary.BigEndian.Uint64(head[len(snapshotMagic):]), nil
}

// into writes all keys of the snapshot to db.
func (r *snapshotReader) into(db *pebble.DB) error {
	var last []byte
	for more := true; more; {
		b := db.NewBatch()
		var err error
		for more = true; more && err == nil && b.Len() < restoreBatchBytes; {
			more, err = r.record(b, &last)
		}
		if err == nil {
			err = b.Commit(pebble.NoSync)
		}
		if err := errors.Join(err, b.Close()); err != nil {
			return fmt.Errorf("restore snapshot: %w", err)
		}
	}
	return nil
}

// record reads one key into the batch and leaves it in last. It returns false
// at the end.
func (r *snapshotReader) record(b *pebble.Batch, last *[]byte) (bool, error) {
	n, err := r.length("a key", MaxKeyBytes)
	if err != nil || n == 0 {
		return false, err
	}
	key := make([]byte, n)
	if err := r.read(key); err != nil {
		return false, err
	}
	if r.keys > 0 && bytes.Compare(key, *last) <= 0 {
		return false, r.bad("key %q follows %q", key, *last)
	}
	size, err := r.length("a record", MaxValueBytes+sumBytes)
	if err != nil {
		return false, err
	}
	record := make([]byte, size)
	if err := r.read(record); err != nil {
		return false, err
	}
	if _, err := openRecord(key, record); err != nil {
		return false, r.bad("%v", err)
	}
	r.keys++
	*last = key
	return true, b.Set(dataKey(string(key)), record, nil)
}

// trailer compares the number of keys and the checksum of it all, and that
// nothing follows.
func (r *snapshotReader) trailer() error {
	var count [8]byte
	if err := r.read(count[:]); err != nil {
		return err
	}
	if want := binary.BigEndian.Uint64(count[:]); want != r.keys {
		return r.bad("it has %d keys, announced were %d", r.keys, want)
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
