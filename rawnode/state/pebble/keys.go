// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate

import (
	"encoding/binary"
	"fmt"

	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
)

// The keys of a database:
//
//	0                              format version, identity
//	1, group, 'm'                  generation and log index of the state
//	1, group, 'h'                  the host's bytes
//	1, group, 'l'                  the limits of sessions, in words, if there are any
//	2, group, generation, 's', id  a session
//	2, group, generation, 'u', key a user's value
//
// Numbers have 8 bytes, big-endian, so that a group's generations follow each other.
const (
	formatVersion = 1

	prefixIdentity = 0
	prefixMeta     = 1
	prefixState    = 2

	partSession = 's'
	partUser    = 'u'
)

var identityKey = []byte{prefixIdentity}

func metaKey(group uint64, part byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{prefixMeta}, group), part)
}

// generationKey begins all keys of a generation.
func generationKey(group, generation uint64) []byte {
	b := make([]byte, 0, 64)
	b = binary.BigEndian.AppendUint64(append(b, prefixState), group)
	return binary.BigEndian.AppendUint64(b, generation)
}

// partKey begins all keys of a part of a generation.
func partKey(group, generation uint64, part byte) []byte {
	return append(generationKey(group, generation), part)
}

func sessionKey(group, generation uint64, id session.ID) []byte {
	return binary.BigEndian.AppendUint64(partKey(group, generation, partSession), uint64(id))
}

// after returns the least key above all that begin with a prefix. No prefix here is of
// 0xff alone.
func after(prefix []byte) []byte {
	end := append([]byte{}, prefix...)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}

// meta is what is kept of a group beside its keys.
type meta struct{ generation, applied uint64 }

func (m meta) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, m.generation), m.applied)
}

// decodeMeta takes nil for the meta of an empty group.
func decodeMeta(b []byte) (m meta, err error) {
	switch len(b) {
	case 0:
		return m, nil
	case 16:
		return meta{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
	}
	return m, fmt.Errorf("%w: the record of a group's index is %x", state.ErrDamaged, b)
}
