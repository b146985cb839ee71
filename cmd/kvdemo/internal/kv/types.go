// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"crypto/sha256"
	"errors"
)

// Type says what a key holds. The numbers are part of the log's format: ActType returns
// them.
type Type byte

// The types.
const (
	TypeString    Type = 1 // bytes
	TypeHash      Type = 2 // fields with values: see hash.go
	TypeSortedSet Type = 3 // members with scores: see sorted.go
)

// String returns the name that clients of Redis know, or "none".
func (t Type) String() string {
	switch t {
	case TypeString:
		return "string"
	case TypeHash:
		return "hash"
	case TypeSortedSet:
		return "zset"
	}
	return "none"
}

// ErrType says that the key holds a hash or a sorted set, and the call wants bytes. A
// client of Redis can read the key.
var ErrType = errors.New("the key holds a value of another type")

// typeOf returns the type of a record by its first byte.
func typeOf(stored []byte) Type {
	switch stored[0] {
	case kindHash:
		return TypeHash
	case kindSorted:
		return TypeSortedSet
	}
	return TypeString
}

// digest is what comparisons compare: the SHA-256 of a string, and of another type that
// of its kind and its record, which for a sorted set is the head. The head changes with
// each change of the set.
func (r record) digest() [sha256.Size]byte {
	switch {
	case r.large != nil:
		return r.large.sha256
	case r.kind == kindInline:
		return sha256.Sum256(r.value)
	}
	return typedDigest(r.kind, r.value)
}

func typedDigest(kind byte, b []byte) (d [sha256.Size]byte) {
	h := sha256.New()
	_, _ = h.Write([]byte{kind}) // a hash.Hash never fails
	_, _ = h.Write(b)
	h.Sum(d[:0])
	return d
}
