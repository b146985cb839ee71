// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A record in secData begins with its kind. One that is inline has the checksum
// of key and value, and the value. One that is large has the checksum of key and
// the rest, and where its parts are: see large. The others have the checksum of key,
// kind and the rest: a hash is its fields, a sorted set its head.
const (
	kindInline byte = 0
	kindLarge  byte = 1
	// From level 2 on:
	kindHash   byte = 2
	kindSorted byte = 3

	sumBytes   = 4
	inlineHead = 1 + sumBytes
	// number, size, upload id, SHA-256
	largeBytes = inlineHead + 8 + 8 + 16 + 32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is the checksum stored before a value. It covers the key, so that a value
// that turns up under another key is noticed.
func sum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// partSum is the checksum stored before a part. It covers its place.
func partSum(id UploadID, part int, b []byte) uint32 {
	place := append(id[:], byte(part))
	return crc32.Update(crc32.Checksum(place, castagnoli), castagnoli, b)
}

// large describes a value that is stored in parts.
type large struct {
	number uint64 // names its parts in secPart
	size   int64
	upload UploadID
	sha256 [32]byte
}

// encode returns the record of a large value.
func (l large) encode(key []byte) []byte {
	b := make([]byte, inlineHead, largeBytes)
	b[0] = kindLarge
	b = binary.BigEndian.AppendUint64(b, l.number)
	b = binary.BigEndian.AppendUint64(b, uint64(l.size))
	b = append(b, l.upload[:]...)
	b = append(b, l.sha256[:]...)
	binary.LittleEndian.PutUint32(b[1:], sum(key, b[inlineHead:]))
	return b
}

// record is what stands in secData under a key.
type record struct {
	kind   byte
	value  []byte // nil if large is set; of a sorted set what stands in the head
	large  *large
	sorted *head // of a sorted set
}

func (r record) size() int64 {
	if r.large != nil {
		return r.large.size
	}
	if r.sorted != nil {
		return int64(r.sorted.bytes)
	}
	return int64(len(r.value))
}

// openRecord takes a record apart and compares its checksum. The value shares
// b's memory.
func openRecord(key, b []byte) (record, error) {
	if len(b) < inlineHead || b[0] > kindSorted || b[0] == kindLarge && len(b) != largeBytes {
		return record{}, fmt.Errorf("%w: the record of key %q has %d bytes and begins with %x", ErrDamaged, key, len(b), b[:min(len(b), 1)])
	}
	rest := b[inlineHead:]
	got := sum(key, rest)
	if b[0] > kindLarge {
		got = typedSum(b[0], key, rest)
	}
	if want := binary.LittleEndian.Uint32(b[1:]); want != got {
		return record{}, fmt.Errorf("%w: the value of key %q (%d bytes) has checksum %08x, want %08x", ErrDamaged, key, len(rest), got, want)
	}
	switch b[0] {
	case kindInline, kindHash:
		return record{kind: b[0], value: rest}, nil
	case kindSorted:
		h, err := openHead(key, rest)
		return record{kind: b[0], value: rest, sorted: h}, err
	}
	l := &large{number: binary.BigEndian.Uint64(rest), size: int64(binary.BigEndian.Uint64(rest[8:]))}
	copy(l.upload[:], rest[16:])
	copy(l.sha256[:], rest[32:])
	if l.size < 1 || l.size > MaxValueBytes {
		return record{}, fmt.Errorf("%w: the value of key %q has %d bytes, want 1 to %d", ErrDamaged, key, l.size, int64(MaxValueBytes))
	}
	return record{kind: kindLarge, large: l}, nil
}

// openPart compares a part of a value with its checksum and returns its bytes.
func openPart(id UploadID, size int64, part int, b []byte) ([]byte, error) {
	if len(b) != sumBytes+partLen(size, part) {
		return nil, fmt.Errorf("%w: part %d of upload %v has %d bytes, want %d", ErrDamaged, part, id, len(b), sumBytes+partLen(size, part))
	}
	data := b[sumBytes:]
	if want, got := binary.LittleEndian.Uint32(b), partSum(id, part, data); want != got {
		return nil, fmt.Errorf("%w: part %d of upload %v has checksum %08x, want %08x", ErrDamaged, part, id, got, want)
	}
	return data, nil
}
