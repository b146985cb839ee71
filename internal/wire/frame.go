// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
)

// Sizes and limits, in bytes.
const (
	// HeaderLen is the length of a frame's header.
	HeaderLen = 12
	// MaxHelloLen bounds the payload of a hello and its answer, so that a
	// stranger cannot make a node set memory aside.
	MaxHelloLen = 4 << 10
	// maxReasonLen bounds texts in messages; longer ones are cut.
	maxReasonLen = 1 << 10
	// DefaultMaxFrame is a frame limit for messages of a few megabytes.
	DefaultMaxFrame = 64 << 20
	// MaxFrame bounds frame limits.
	MaxFrame = maxBody
)

// Version is the version of the frame format.
const Version = 1

// FrameType is the type of a frame's payload. The numbers are part of the format.
type FrameType uint8

// The frame types.
const (
	FrameMessages FrameType = 1 + iota
	frameHello
	frameAnswer
	endOfFrameTypes
)

var (
	// ErrFrame wraps the mistake in a frame or in one of its messages. The frame's
	// connection is of no further use.
	ErrFrame = errors.New("wire: bad frame")
	// ErrTooLarge says that a frame is over the limit.
	ErrTooLarge = errors.New("wire: frame too large")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header precedes a frame's payload.
type Header struct {
	typ    FrameType
	length uint32
	crc    uint32
}

// Length returns how long the payload is, in bytes.
func (h Header) Length() int { return int(h.length) }

func (h Header) put(b []byte) {
	b[0], b[1], b[2], b[3] = 'W', 'f', Version, byte(h.typ)
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint32(b[8:], h.crc)
}

func parseHeader(b []byte) (Header, error) {
	if b[0] != 'W' || b[1] != 'f' {
		return Header{}, fmt.Errorf("%w: it begins with %#02x %#02x, not with the magic %q; is this a Weft peer?", ErrFrame, b[0], b[1], "Wf")
	}
	if b[2] != Version {
		return Header{}, fmt.Errorf("%w: version %d, this node speaks %d", ErrFrame, b[2], Version)
	}
	h := Header{typ: FrameType(b[3]), length: binary.LittleEndian.Uint32(b[4:]), crc: binary.LittleEndian.Uint32(b[8:])}
	if h.typ == 0 || h.typ >= endOfFrameTypes {
		return Header{}, fmt.Errorf("%w: unknown type %d", ErrFrame, b[3])
	}
	return h, nil
}

// ReadFrame reads one frame of type want, with a payload of at most limit bytes, into
// buf or a larger buffer. The payload is valid until buf is used again. An error of r
// is returned unchanged; io.EOF only before the first byte.
func ReadFrame(r io.Reader, want FrameType, limit int, buf []byte) (payload []byte, err error) {
	h, err := readHeader(r, want, limit)
	if err != nil {
		return nil, err
	}
	return h.ReadPayload(r, buf)
}

// readHeader reads the header of a frame, as ReadFrame does.
func readHeader(r io.Reader, want FrameType, limit int) (Header, error) {
	var head [HeaderLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Header{}, err
	}
	return ParseHeader(head[:], want, limit)
}

// ParseHeader is readHeader for HeaderLen bytes that have been read.
func ParseHeader(b []byte, want FrameType, limit int) (Header, error) {
	h, err := parseHeader(b)
	switch {
	case err != nil:
		return Header{}, err
	case h.typ != want:
		return Header{}, fmt.Errorf("%w: type %d where %d belongs", ErrFrame, h.typ, want)
	case int64(h.length) > int64(limit):
		return Header{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, h.length, limit)
	}
	return h, nil
}

// ReadPayload reads the part behind the header, as ReadFrame does.
func (h Header) ReadPayload(r io.Reader, buf []byte) ([]byte, error) {
	payload, err := readPayload(r, int(h.length), buf)
	if err != nil {
		return nil, err
	}
	if sum := crc32.Checksum(payload, castagnoli); sum != h.crc {
		return nil, fmt.Errorf("%w: checksum %08x, the header says %08x", ErrFrame, sum, h.crc)
	}
	return payload, nil
}

// A length in a header gets growStep bytes of memory before any promised byte has come,
// and then growFactor times the bytes received. So a liar costs little, most frames are
// read in one go, and an eighth of a large frame is copied.
const (
	growStep   = 2 << 20
	growFactor = 7
)

func readPayload(r io.Reader, n int, buf []byte) ([]byte, error) {
	buf = buf[:0]
	for len(buf) < n {
		have := len(buf)
		step := min(n-have, max(growStep, cap(buf)-have, growFactor*have))
		if cap(buf)-have < step {
			grown := make([]byte, have, have+step)
			copy(grown, buf)
			buf = grown
		}
		buf = buf[:have+step]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return buf, nil
}

// Frame is an encoded frame. Large payloads are not copied: the frame holds on to its
// messages until written or Reset.
type Frame struct {
	enc  encoder
	bufs net.Buffers
}

// Reset empties the frame, and lets go of its messages.
func (f *Frame) Reset() {
	f.enc.reset()
	clear(f.bufs[:cap(f.bufs)])
	f.bufs = f.bufs[:0]
}

// Len returns the length of the frame so far, header included.
func (f *Frame) Len() int { return f.enc.len() }

// seal ends the frame and returns its bytes in pieces, which are valid until Reset.
func (f *Frame) seal(typ FrameType) net.Buffers {
	bufs, crc := f.enc.seal(f.bufs[:0])
	f.bufs = bufs
	Header{typ: typ, length: uint32(f.Len() - HeaderLen), crc: crc}.put(f.enc.arena)
	return bufs
}

// Messages returns the messages appended since Reset as one frame, in pieces: large
// payloads are the very bytes of the messages. The frame must be Reset before further
// use, and not before the pieces are written.
func (f *Frame) Messages() net.Buffers { return f.seal(FrameMessages) }

// writeTo seals the frame and writes it.
func (f *Frame) writeTo(w io.Writer, typ FrameType) (int64, error) {
	out := f.seal(typ) // WriteTo consumes its receiver
	return out.WriteTo(w)
}

// WriteMessages writes the messages appended since Reset as one frame.
func (f *Frame) WriteMessages(w io.Writer) (int64, error) { return f.writeTo(w, FrameMessages) }
