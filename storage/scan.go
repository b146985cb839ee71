// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// scanner reads the frames of one segment file.
type scanner struct {
	seg  *segment
	size int64 // of the file
	sum  checksum
	read *int64 // counts bytes

	// window is how much is read at once, at least.
	window int64
	// buf holds the bytes of the file from off on.
	buf []byte
	off int64
}

var magicBytes = binary.LittleEndian.AppendUint32(nil, frameMagic)

// Windows of a scan: large for reading with bodies, small for skipping bodies.
const (
	scanBytes  = 1 << 20
	skimBytes  = 16 << 10
	beginBytes = headerLen + beginMetaLen
)

// bytes returns n bytes of the file, which are valid until the next call.
func (s *scanner) bytes(off int64, n int) ([]byte, error) {
	if off < 0 || off+int64(n) > s.size {
		return nil, fmt.Errorf("%w: %d bytes at byte %d, the file has %d", errNoFrame, n, off, s.size)
	}
	if off >= s.off && off+int64(n) <= s.off+int64(len(s.buf)) {
		return s.buf[off-s.off:][:n], nil
	}
	want := int(min(max(int64(n), s.window), s.size-off))
	if cap(s.buf) < want {
		s.buf = make([]byte, want)
	}
	s.buf, s.off = s.buf[:want], off
	*s.read += int64(want)
	if _, err := s.seg.file.ReadAt(s.buf, off); err != nil && !errors.Is(err, io.EOF) {
		s.buf = s.buf[:0]
		return nil, fmt.Errorf("storage: reading segment %d at byte %d: %w", s.seg.number, off, err)
	}
	return s.buf[:n], nil
}

// head reads header and meta of the frame at off, and checks them. Any error except a
// failing disk's wraps errNoFrame.
func (s *scanner) head(off int64) (h frameHeader, meta []byte, err error) {
	b, err := s.bytes(off, headerLen)
	if err != nil {
		return h, nil, err
	}
	if h, err = parseFrameHeader(b); err != nil {
		return h, nil, err
	}
	if h.segment != s.seg.number {
		return h, nil, fmt.Errorf("%w: the frame is of segment %d", errNoFrame, h.segment)
	}
	if off+headerLen+int64(h.metaLen)+int64(h.bodyLen) > s.size {
		return h, nil, fmt.Errorf("%w: the frame ends behind the file", errNoFrame)
	}
	if b, err = s.bytes(off, headerLen+int(h.metaLen)); err != nil {
		return h, nil, err
	}
	meta = b[headerLen:]
	return h, meta, checkFrameHead(s.sum, b[:headerLen], meta)
}

// checkBody checks the entries of a frame whose body is at off. It returns the number
// of right entries, from the first on.
func (s *scanner) checkBody(off int64, rows []row) (int, error) {
	for i, r := range rows {
		b, err := s.bytes(off, int(r.size))
		if err != nil {
			return i, err
		}
		if crc32.Checksum(b, castagnoli) != r.crc {
			return i, fmt.Errorf("%w: the checksum of entry %d of %d does not match", errNoFrame, i+1, len(rows))
		}
		off += int64(r.size)
	}
	return len(rows), nil
}

// find returns the first valid frame, at or behind off, accepted by ok. The header is
// judged before its sum is made: entries may hold bytes that look like headers of long
// frames, and a sum for each would take hours.
func (s *scanner) find(off int64, ok func(int64, frameHeader) bool) (int64, bool, error) {
	for ; ; off += frameAlign {
		at, h, found, err := s.header(off)
		if !found || err != nil {
			return 0, false, err
		}
		if off = at; !ok(at, h) {
			continue
		}
		switch _, _, err := s.head(at); {
		case err == nil:
			return at, true, nil
		case !errors.Is(err, errNoFrame):
			return 0, false, err
		}
	}
}

// header returns the first place, at or behind off, of what looks like a header of this
// segment, without comparing its sum.
func (s *scanner) header(off int64) (int64, frameHeader, bool, error) {
	for off+headerLen <= s.size {
		if _, err := s.bytes(off, headerLen); err != nil {
			return 0, frameHeader{}, false, err
		}
		window := s.buf[off-s.off:]
		i := bytes.Index(window, magicBytes)
		if i < 0 {
			off += int64(len(window)) &^ (frameAlign - 1)
			continue
		}
		if off += int64(i) &^ (frameAlign - 1); i%frameAlign == 0 && off+headerLen <= s.size {
			b, err := s.bytes(off, headerLen)
			if err != nil {
				return 0, frameHeader{}, false, err
			}
			if h, err := parseFrameHeader(b); err == nil && h.segment == s.seg.number {
				return off, h, true, nil
			}
		}
		off += frameAlign
	}
	return 0, frameHeader{}, false, nil
}

// remains returns where the traces of torn frames behind off end. In a recycled
// file only headers accepted by ok count: other bytes are older than the segment.
func (s *scanner) remains(off int64, recycled bool, ok func(int64, frameHeader) bool) (int64, error) {
	end := off
	for recycled {
		at, h, found, err := s.header(off)
		if !found || err != nil {
			return end, err
		}
		if off = at + frameAlign; ok(at, h) {
			end = max(end, min(s.size, at+h.len()))
		}
	}
	for at := off; at < s.size; at += scanBytes {
		b, err := s.bytes(at, int(min(scanBytes, s.size-at)))
		if err != nil {
			return 0, err
		}
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
			end = at + int64(n)
		}
	}
	return end, nil
}
