// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package frames is the form in which the adapters of package state write states: into
// checkpoints, and into the bodies of snapshots.
//
// A frame is a kind, a length, a checksum, and data. The checksum covers the frame's
// number, so that no frame can be missing, doubled or moved. Rows of sessions come
// first, then the pieces of a state, then the end; in a checkpoint there is a header
// in front.
package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Version is that of the format.
const Version = 1

// The kinds of frames.
const (
	Header  = 'h' // of a checkpoint; its owner knows what is in it
	Session = 's' // id as a uvarint, row
	Piece   = 'p' // of the state
	End     = 'e' // version, bytes of all pieces
)

const (
	headBytes  = 1 + 4 + 4
	pieceBytes = 64 << 10
	// maxFrame bounds what a reader takes: a header, or a session's row.
	maxFrame = 32 << 20
)

// Errors, wrapped with details.
var (
	ErrDamaged  = errors.New("state: damaged")
	ErrVersion  = errors.New("state: unknown format version")
	errTooLarge = errors.New("state: a frame is too large")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers a frame's number, kind and data.
func checksum(number uint64, kind byte, data []byte) uint32 {
	var head [9]byte
	binary.LittleEndian.PutUint64(head[:], number)
	head[8] = kind
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, data)
}

// Writer writes frames; as an io.Writer, pieces.
type Writer struct {
	To     io.Writer
	Check  func() error // asked before each frame unless nil; an error: why to give up
	Number uint64       // of the next frame; without a header the first has 1
	Err    error        // the first that there was

	total uint64 // bytes of pieces
	piece []byte
}

// Frame writes one frame.
func (w *Writer) Frame(kind byte, data []byte) error {
	if w.Err == nil && w.Check != nil {
		w.Err = w.Check()
	}
	if w.Err == nil && len(data) > maxFrame {
		w.Err = fmt.Errorf("%w: %d bytes, the bound is %d", errTooLarge, len(data), maxFrame)
	}
	if w.Err != nil {
		return w.Err
	}
	head := [headBytes]byte{kind}
	binary.LittleEndian.PutUint32(head[1:], uint32(len(data)))
	binary.LittleEndian.PutUint32(head[5:], checksum(w.Number, kind, data))
	w.Number++
	for _, b := range [][]byte{head[:], data} {
		if _, err := w.To.Write(b); err != nil {
			w.Err = err
			return err
		}
	}
	return nil
}

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
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

func (w *Writer) flush() error {
	if len(w.piece) == 0 {
		return w.Err
	}
	w.total += uint64(len(w.piece))
	err := w.Frame(Piece, w.piece)
	w.piece = w.piece[:0]
	return err
}

// End writes the last frame.
func (w *Writer) End() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.Frame(End, binary.AppendUvarint([]byte{Version}, w.total))
}

// Reader reads frames and checks them; as an io.Reader, it yields the pieces.
type Reader struct {
	From   io.Reader
	Number uint64 // of the next frame; without a header the first has 1
	Kind   byte   // of the present frame; 0: none was read
	Data   []byte // of the present frame, until the next is read
	Err    error  // the first that there was

	total uint64
	at    int64 // of the next frame, in bytes
	buf   []byte
}

// Next reads a frame. What is wrong with it wraps ErrDamaged; an error of the source is
// returned as it is, but for io.EOF, which no source has in front of the last frame.
func (r *Reader) Next() error {
	if r.Err != nil {
		return r.Err
	}
	r.Err = r.read()
	if errors.Is(r.Err, io.EOF) || errors.Is(r.Err, io.ErrUnexpectedEOF) {
		r.Err = fmt.Errorf("%w: it ends in frame %d, which begins at byte %d, before its end", ErrDamaged, r.Number, r.at)
	}
	return r.Err
}

func (r *Reader) read() error {
	var head [headBytes]byte
	if _, err := io.ReadFull(r.From, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > maxFrame {
		return fmt.Errorf("%w: frame %d, at byte %d, has %d bytes, the bound is %d", ErrDamaged, r.Number, r.at, n, maxFrame)
	}
	if err := r.fill(int(n)); err != nil {
		return err
	}
	if sum := checksum(r.Number, head[0], r.Data); sum != binary.LittleEndian.Uint32(head[5:]) {
		return fmt.Errorf("%w: frame %d, at byte %d, has another checksum than it had when it was written", ErrDamaged, r.Number, r.at)
	}
	r.Number++
	r.at += headBytes + int64(n)
	r.Kind = head[0]
	if r.Kind == Piece {
		r.total += uint64(len(r.Data))
	}
	return nil
}

// fill reads the data of a frame; the buffer grows with what comes, as the length may
// be a lie.
func (r *Reader) fill(n int) error {
	r.buf = r.buf[:0]
	for len(r.buf) < n {
		step := min(n-len(r.buf), max(pieceBytes, len(r.buf)))
		at := len(r.buf)
		if cap(r.buf) < at+step {
			r.buf = append(make([]byte, 0, at+step), r.buf...)
		}
		r.buf = r.buf[:at+step]
		if _, err := io.ReadFull(r.From, r.buf[at:]); err != nil {
			return err
		}
	}
	r.Data = r.buf
	return nil
}

// Read implements io.Reader: the pieces, until another frame comes.
func (r *Reader) Read(b []byte) (int, error) {
	for r.Kind == Piece && len(r.Data) == 0 {
		if err := r.Next(); err != nil {
			return 0, err
		}
	}
	if r.Kind != Piece {
		return 0, io.EOF
	}
	n := copy(b, r.Data)
	r.Data = r.Data[n:]
	return n, nil
}

// AtEnd skips to the last frame and compares it.
func (r *Reader) AtEnd() error {
	for r.Kind == Piece {
		if err := r.Next(); err != nil {
			return err
		}
	}
	if r.Kind != End || len(r.Data) == 0 {
		return fmt.Errorf("%w: frame %d is of kind %q, want the end", ErrDamaged, r.Number-1, r.Kind)
	}
	if r.Data[0] != Version {
		return fmt.Errorf("%w: %d, this program reads %d", ErrVersion, r.Data[0], Version)
	}
	if total, n := binary.Uvarint(r.Data[1:]); n <= 0 || total != r.total {
		return fmt.Errorf("%w: %d bytes of state, %d were written", ErrDamaged, r.total, total)
	}
	var more [1]byte
	switch n, err := io.ReadFull(r.From, more[:]); {
	case n > 0:
		return fmt.Errorf("%w: it goes on behind its end", ErrDamaged)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}
