// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// segment is one file of the log.
type segment struct {
	number uint64

	// live is the bytes in the file still held by a group: entries, and parts of its
	// state. While less than half of the log is live, segments are purged.
	live atomic.Int64

	// size is the bytes of frames, allocated the bytes of the file; only the writer and
	// Open change both.
	size, allocated atomic.Int64

	// mu lets the file be closed only between reads.
	mu   sync.RWMutex
	file vfs.File // nil once the segment is purged or the engine closed
}

// errGone says that a segment was purged under a reader; the reader then finds the
// entry in its new place.
var errGone = errors.New("storage: the segment is gone")

func (s *segment) readAt(b []byte, off int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.file == nil {
		return errGone
	}
	if _, err := s.file.ReadAt(b, off); err != nil {
		return fmt.Errorf("storage: reading %d bytes at byte %d of segment %d: %w", len(b), off, s.number, err)
	}
	return nil
}

func (s *segment) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closeLocked()
}

func (s *segment) closeLocked() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// gather collects appends to a segment into few large writes. Small pieces are copied
// into a buffer; a large piece goes to the file system directly, because a copy would
// cost more than another system call.
type gather struct {
	seg *segment
	off int64 // where buf goes in the file
	buf []byte

	segmentBytes int64
	// fixed says that the file system cannot allocate ahead.
	fixed   bool
	written *atomic.Uint64
}

const (
	gatherBytes = 256 << 10
	directBytes = 16 << 10

	// A file grows by steps of a size between these two, so that most syncs find size
	// and blocks unchanged. A short segment wastes little.
	minStepBytes = 4 << 10
	maxStepBytes = 1 << 20
)

// end is the offset of the next byte.
func (g *gather) end() int64 { return g.off + int64(len(g.buf)) }

// reset starts over at offset off of a segment.
func (g *gather) reset(seg *segment, off int64) {
	g.seg, g.off, g.buf = seg, off, g.buf[:0]
}

// rewind takes back the bytes appended behind end. Bytes already in the file are
// written over: see "A full disk" in DESIGN.md.
func (g *gather) rewind(end int64) {
	if end < g.off {
		g.off, g.buf = end, g.buf[:0]
		return
	}
	g.buf = g.buf[:end-g.off]
}

// append appends b. The file system neither keeps nor changes b: WriteAt must not,
// whereas Write of a vfs.File may.
func (g *gather) append(b []byte) error {
	if len(b) < directBytes {
		g.buf = append(g.buf, b...)
		if len(g.buf) >= gatherBytes {
			return g.flush()
		}
		return nil
	}
	if err := g.flush(); err != nil {
		return err
	}
	return g.write(b)
}

// pad goes on to where the next frame may begin. Nobody looks at the bytes in between: behind
// a large piece, which is in the file already, zeros would only cost another write.
func (g *gather) pad() {
	if len(g.buf) == 0 {
		g.off = (g.off + frameAlign - 1) &^ (frameAlign - 1)
		return
	}
	for g.end()%frameAlign != 0 {
		g.buf = append(g.buf, 0)
	}
}

func (g *gather) flush() error {
	if len(g.buf) == 0 {
		return nil
	}
	if err := g.write(g.buf); err != nil {
		return err
	}
	g.buf = g.buf[:0]
	return nil
}

// write writes b at off, all or nothing: after a lack of room all of b is written
// again.
func (g *gather) write(b []byte) error {
	if err := g.grow(g.off + int64(len(b))); err != nil {
		return err
	}
	n, err := g.seg.file.WriteAt(b, g.off)
	g.written.Add(uint64(n))
	if err != nil {
		return fmt.Errorf("storage: writing %d bytes at byte %d of segment %d: %w", len(b), g.off, g.seg.number, err)
	}
	g.off += int64(n)
	return nil
}

// step is by how much the file grows at a time.
func (g *gather) step() int64 {
	return min(max(g.end(), minStepBytes), maxStepBytes, max(g.segmentBytes/64, minStepBytes))
}

// ahead lets the file grow ahead of need.
func (g *gather) ahead() error {
	return g.grow(min(g.end()+g.step()/2, g.segmentBytes))
}

// grow gives the file blocks up to end, and for a seal behind end.
func (g *gather) grow(end int64) error {
	have := g.seg.allocated.Load()
	if end += headerLen; end <= have {
		return nil
	}
	want := end + g.step()
	if want > g.segmentBytes {
		want = max(end, g.segmentBytes+headerLen)
	}
	want = (want + minStepBytes - 1) &^ (minStepBytes - 1)
	if err := g.allocate(g.seg.file, have, want); err != nil {
		return fmt.Errorf("storage: making segment %d longer, from %d to %d bytes: %w", g.seg.number, have, want, err)
	}
	g.seg.allocated.Store(want)
	return nil
}

// allocate makes f longer, with blocks of its own if the file system supports it, and
// otherwise with a hole.
func (g *gather) allocate(f vfs.File, from, to int64) error {
	if !g.fixed {
		if err := f.Preallocate(from, to-from); noSpace(err) {
			return err
		} else if err != nil {
			g.fixed = true // only saves time
		}
	}
	_, err := f.WriteAt([]byte{0}, to-1)
	return err
}
