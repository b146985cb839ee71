// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A frame is the unit of the log: a header, a meta part with everything except the
// entries themselves, and a body of encoded entries. DESIGN.md has the layout byte by
// byte.
//
// One checksum covers header and meta, and each entry has its own, in the meta. So a
// restart finds every entry without reading bodies, and an entry is read back and
// checked alone.
const (
	frameMagic   = 0x31464c57 // "WLF1", little endian
	headerLen    = 56
	frameAlign   = 8
	maxMetaBytes = 1 << 28
	maxBodyBytes = 1 << 30

	// A segment not yet full takes one more frame of any size; offsets in a segment fit
	// 32 bits.
	maxFileBytes = 1<<32 - 1
)

// frameKind is the kind of a frame's meta part.
type frameKind uint8

const (
	frameBegin  frameKind = 1 // the first of a segment: its owner
	frameWrite  frameKind = 2 // a record of one group
	frameMark   frameKind = 3 // nothing: only the header's durable counts
	frameSeal   frameKind = 4 // the last of a segment
	framePurged frameKind = 5 // the oldest segment needed
	frameIndex  frameKind = 6 // the segment's contents, so that a restart reads nothing else of the segment
)

// frameHeader is the decoded header.
type frameHeader struct {
	segment uint64 // number of the segment; bytes left from a file's earlier life have another
	seq     uint64 // 1, 2, 3, ... through the whole log
	// durable is the last frame known as synced at the writing of this one. By durable
	// a restart tells a torn tail from damage: a frame called durable by a later frame
	// must exist.
	durable uint64
	group   uint64
	metaLen uint32
	bodyLen uint32
	kind    frameKind
}

// frameLen returns the bytes a frame takes, with its padding.
func frameLen(metaLen, bodyLen int) int64 {
	return (int64(headerLen) + int64(metaLen) + int64(bodyLen) + frameAlign - 1) &^ (frameAlign - 1)
}

func (h *frameHeader) len() int64 { return frameLen(int(h.metaLen), int(h.bodyLen)) }

// checksum seeds the frames' checksums with the directory's salt. Without the salt a
// client could store bytes in the form of a frame, and confuse the search for frames
// behind a torn one.
type checksum struct{ seed uint32 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newChecksum(salt uint64) checksum {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], salt)
	return checksum{seed: crc32.Checksum(b[:], castagnoli)}
}

func (c checksum) of(headerTail, meta []byte) uint32 {
	return crc32.Update(crc32.Update(c.seed, castagnoli, headerTail), castagnoli, meta)
}

// appendFrameHead appends the header and meta of a frame to buf.
func appendFrameHead(buf []byte, sum checksum, h frameHeader, meta []byte) []byte {
	at := len(buf)
	buf = append(buf, make([]byte, headerLen)...)
	b := buf[at:]
	binary.LittleEndian.PutUint32(b[0:], frameMagic)
	binary.LittleEndian.PutUint64(b[8:], h.segment)
	binary.LittleEndian.PutUint64(b[16:], h.seq)
	binary.LittleEndian.PutUint64(b[24:], h.durable)
	binary.LittleEndian.PutUint64(b[32:], h.group)
	binary.LittleEndian.PutUint32(b[40:], uint32(len(meta)))
	binary.LittleEndian.PutUint32(b[44:], h.bodyLen)
	b[48] = byte(h.kind)
	binary.LittleEndian.PutUint32(b[4:], sum.of(b[8:headerLen], meta))
	return append(buf, meta...)
}

var errNoFrame = errors.New("no valid frame")

// parseFrameHeader decodes a header without checking its sum: the returned lengths are
// bounded, but not yet trustworthy.
func parseFrameHeader(b []byte) (frameHeader, error) {
	if len(b) < headerLen {
		return frameHeader{}, fmt.Errorf("%w: %d bytes are left, a header takes %d", errNoFrame, len(b), headerLen)
	}
	if m := binary.LittleEndian.Uint32(b); m != frameMagic {
		return frameHeader{}, fmt.Errorf("%w: magic number is %#x", errNoFrame, m)
	}
	h := frameHeader{
		segment: binary.LittleEndian.Uint64(b[8:]),
		seq:     binary.LittleEndian.Uint64(b[16:]),
		durable: binary.LittleEndian.Uint64(b[24:]),
		group:   binary.LittleEndian.Uint64(b[32:]),
		metaLen: binary.LittleEndian.Uint32(b[40:]),
		bodyLen: binary.LittleEndian.Uint32(b[44:]),
		kind:    frameKind(b[48]),
	}
	if h.metaLen > maxMetaBytes || h.bodyLen > maxBodyBytes {
		return frameHeader{}, fmt.Errorf("%w: lengths are %d and %d", errNoFrame, h.metaLen, h.bodyLen)
	}
	return h, nil
}

// checkFrameHead checks a header and its meta against the sum in the header.
func checkFrameHead(sum checksum, header, meta []byte) error {
	want := binary.LittleEndian.Uint32(header[4:])
	if got := sum.of(header[8:headerLen], meta); got != want {
		return fmt.Errorf("%w: checksum is %#x, expected %#x", errNoFrame, got, want)
	}
	return nil
}
