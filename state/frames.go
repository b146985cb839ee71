// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A checkpoint is a sequence of frames: a header, rows of sessions, pieces of what
// Machine.Write wrote, an end. A snapshot's body is the same without the header,
// which the host carries. A frame is a kind, a length, a checksum, and data; the
// checksum covers the frame's number, so that no frame can be missing, doubled or moved.
const (
	formatVersion = 1

	frameHeader  = 'h' // version, index, identity, host's bytes
	frameSession = 's' // id as a uvarint, row
	framePiece   = 'p'
	frameEnd     = 'e' // version, bytes of all pieces

	frameHead  = 1 + 4 + 4
	pieceBytes = 64 << 10
	// maxFrame bounds what a reader takes: a header, or a session's row.
	maxFrame = 32 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers a frame's number, kind and data.
func checksum(number uint64, kind byte, data []byte) uint32 {
	var head [9]byte
	binary.LittleEndian.PutUint64(head[:], number)
	head[8] = kind
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, data)
}

// frameWriter writes frames; as an io.Writer, pieces.
type frameWriter struct {
	to     io.Writer
	check  func() error // asked before each frame; not nil: why to give up
	number uint64
	total  uint64 // bytes of pieces
	piece  []byte
	err    error
}

func (w *frameWriter) frame(kind byte, data []byte) error {
	if w.err == nil && w.check != nil {
		w.err = w.check()
	}
	if w.err == nil && len(data) > maxFrame {
		w.err = fmt.Errorf("%w: a frame of %d bytes, the bound is %d", ErrInvalid, len(data), maxFrame)
	}
	if w.err != nil {
		return w.err
	}
	head := [frameHead]byte{kind}
	binary.LittleEndian.PutUint32(head[1:], uint32(len(data)))
	binary.LittleEndian.PutUint32(head[5:], checksum(w.number, kind, data))
	w.number++
	for _, b := range [][]byte{head[:], data} {
		if _, err := w.to.Write(b); err != nil {
			w.err = err
			return err
		}
	}
	return nil
}

// Write implements io.Writer.
func (w *frameWriter) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		if w.piece == nil {
			w.piece = make([]byte, 0, pieceBytes)
		}
		n := copy(w.piece[len(w.piece):pieceBytes], b)
		w.piece = w.piece[:len(w.piece)+n]
		b = b[n:]
		written += n
		if len(w.piece) == pieceBytes {
			if err := w.flush(); err != nil {
				return written - n, err
			}
		}
	}
	return written, nil
}

func (w *frameWriter) flush() error {
	if len(w.piece) == 0 {
		return w.err
	}
	w.total += uint64(len(w.piece))
	err := w.frame(framePiece, w.piece)
	w.piece = w.piece[:0]
	return err
}

// end writes the last frame.
func (w *frameWriter) end() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.frame(frameEnd, binary.AppendUvarint([]byte{formatVersion}, w.total))
}

// frameReader reads frames and checks them; as an io.Reader, it yields the pieces.
type frameReader struct {
	from   io.Reader
	number uint64
	total  uint64
	kind   byte // of the present frame; 0: none was read
	data   []byte
	buf    []byte
	err    error
}

// next reads a frame. What is wrong with it wraps ErrDamaged; an error of the source is
// returned as it is, but for io.EOF, which no source has in front of the last frame.
func (r *frameReader) next() error {
	if r.err != nil {
		return r.err
	}
	r.err = r.read()
	if errors.Is(r.err, io.EOF) || errors.Is(r.err, io.ErrUnexpectedEOF) {
		r.err = fmt.Errorf("%w: it ends in frame %d, before its end", ErrDamaged, r.number)
	}
	return r.err
}

func (r *frameReader) read() error {
	var head [frameHead]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > maxFrame {
		return fmt.Errorf("%w: frame %d has %d bytes, the bound is %d", ErrDamaged, r.number, n, maxFrame)
	}
	if err := r.fill(int(n)); err != nil {
		return err
	}
	if sum := checksum(r.number, head[0], r.data); sum != binary.LittleEndian.Uint32(head[5:]) {
		return fmt.Errorf("%w: frame %d has another checksum than it had when it was written", ErrDamaged, r.number)
	}
	r.number++
	r.kind = head[0]
	if r.kind == framePiece {
		r.total += uint64(len(r.data))
	}
	return nil
}

// fill reads the data of a frame; the buffer grows with what comes, as the length may
// be a lie.
func (r *frameReader) fill(n int) error {
	r.buf = r.buf[:0]
	for len(r.buf) < n {
		step := min(n-len(r.buf), max(pieceBytes, len(r.buf)))
		at := len(r.buf)
		if cap(r.buf) < at+step {
			r.buf = append(make([]byte, 0, at+step), r.buf...)
		}
		r.buf = r.buf[:at+step]
		if _, err := io.ReadFull(r.from, r.buf[at:]); err != nil {
			return err
		}
	}
	r.data = r.buf
	return nil
}

// Read implements io.Reader: the pieces, until another frame comes.
func (r *frameReader) Read(b []byte) (int, error) {
	for r.kind == framePiece && len(r.data) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	if r.kind != framePiece {
		return 0, io.EOF
	}
	n := copy(b, r.data)
	r.data = r.data[n:]
	return n, nil
}

// atEnd skips to the last frame and compares it.
func (r *frameReader) atEnd() error {
	for r.kind == framePiece {
		if err := r.next(); err != nil {
			return err
		}
	}
	if r.kind != frameEnd || len(r.data) == 0 {
		return fmt.Errorf("%w: frame %d is of kind %q, want the end", ErrDamaged, r.number-1, r.kind)
	}
	if r.data[0] != formatVersion {
		return fmt.Errorf("%w: %d, this program reads %d", ErrVersion, r.data[0], formatVersion)
	}
	if total, n := binary.Uvarint(r.data[1:]); n <= 0 || total != r.total {
		return fmt.Errorf("%w: %d bytes of state, %d were written", ErrDamaged, r.total, total)
	}
	var more [1]byte
	switch n, err := io.ReadFull(r.from, more[:]); {
	case n > 0:
		return fmt.Errorf("%w: it goes on behind its end", ErrDamaged)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}
