// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// snapshotMagic begins a snapshot; its last byte is the format version.
//
// Then come the applied index (8 bytes), the host's bytes (a uvarint length and
// so many), and each key in ascending order: uvarint length of the key, the
// key, uvarint length of the record, the record (checksum and value, as
// stored). A key of length 0 ends them. The number of keys (8 bytes) and the
// CRC-32C of everything before it (4 bytes) end the snapshot. Integers of fixed
// size are big-endian.
const snapshotMagic = "weftkvs\x01"

// Snapshot is a state as it was at one log index, for reading while the store
// goes on. Close it soon: what it refers to stays on disk until then.
type Snapshot struct {
	gen   *generation
	snap  *pebble.Snapshot
	index uint64
	host  []byte

	closeOnce sync.Once
	closeErr  error
}

// Snapshot returns the current state. It must be called by the goroutine that
// applies, between two batches.
func (s *Store) Snapshot() (*Snapshot, error) {
	gen, err := s.acquire()
	if err != nil {
		return nil, err
	}
	snap := gen.db.NewSnapshot()
	host, err := get(snap, keyHost)
	if err != nil {
		err = errors.Join(err, snap.Close())
		gen.release()
		return nil, err
	}
	return &Snapshot{gen: gen, snap: snap, index: gen.applied.Load(), host: host}, nil
}

// Index returns the log index of the state.
func (s *Snapshot) Index() uint64 { return s.index }

// Close gives the state free. Closing twice does no harm.
func (s *Snapshot) Close() error {
	s.closeOnce.Do(func() {
		s.closeErr = s.snap.Close()
		s.gen.release()
	})
	return s.closeErr
}

// WriteTo streams the snapshot: see snapshotMagic. It implements io.WriterTo.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	sw := newSnapshotWriter(w)
	sw.write([]byte(snapshotMagic))
	sw.write(binary.BigEndian.AppendUint64(nil, s.index))
	sw.writeBytes(s.host)
	it, err := s.snap.NewIter(&pebble.IterOptions{LowerBound: []byte{dataPrefix}, UpperBound: []byte{dataEnd}})
	if err != nil {
		return sw.n, damage(err)
	}
	for ok := it.First(); ok && sw.err == nil; ok = it.Next() {
		sw.record(it)
	}
	err = errors.Join(sw.err, damage(it.Error()), it.Close())
	if err != nil {
		return sw.n, fmt.Errorf("write snapshot: %w", err)
	}
	return sw.end()
}

// snapshotWriter writes and sums, and keeps the first error.
type snapshotWriter struct {
	w    *bufio.Writer
	sum  hash.Hash32
	n    int64
	keys uint64
	err  error
	tmp  []byte
}

func newSnapshotWriter(w io.Writer) *snapshotWriter {
	return &snapshotWriter{w: bufio.NewWriterSize(w, 64<<10), sum: crc32.New(castagnoli)}
}

func (w *snapshotWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	_, _ = w.sum.Write(b) // a hash.Hash never fails
	n, err := w.w.Write(b)
	w.n += int64(n)
	w.err = err
}

// writeBytes writes a length and so many bytes.
func (w *snapshotWriter) writeBytes(b []byte) {
	w.tmp = binary.AppendUvarint(w.tmp[:0], uint64(len(b)))
	w.write(w.tmp)
	w.write(b)
}

// record writes the key that it stands on, comparing its checksum first: damage
// must not spread to another node.
func (w *snapshotWriter) record(it *pebble.Iterator) {
	record, err := it.ValueAndErr()
	key := it.Key()[1:]
	if err == nil {
		_, err = openRecord(key, record)
	}
	if err != nil {
		w.err = damage(err)
		return
	}
	w.writeBytes(key)
	w.writeBytes(record)
	w.keys++
}

func (w *snapshotWriter) end() (int64, error) {
	w.writeBytes(nil)
	w.write(binary.BigEndian.AppendUint64(nil, w.keys))
	w.write(binary.BigEndian.AppendUint32(nil, w.sum.Sum32()))
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.err != nil {
		return w.n, fmt.Errorf("write snapshot: %w", w.err)
	}
	return w.n, nil
}
