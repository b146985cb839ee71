// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// formatVersion is the newest version of what this package writes in a directory, and
// oldestFormat the oldest that it reads. A directory is of the oldest until a group of
// it gets to level 1, and of those in between until it gets to the levels above: so long,
// the version before can go on with it.
const (
	formatVersion = 5
	oldestFormat  = 2
)

// Keys of the database, big-endian:
//
//	"\x00identity"                                        format version, cluster, node
//	1, group (8), 0 (4)                                   meta: see meta.encode
//	1, group (8), generation (4), section (1), name       all else
//
// A generation is a group's state between two snapshots that it restored. The
// one that counts is named by meta, so that writing meta is the switch.
var keyIdentity = []byte("\x00identity")

const groupsPrefix = 1

// section is a kind of records. The numbers are part of the format of database
// and snapshots; a snapshot has them in this order, so that what owns a part
// comes before the part.
type section byte

const (
	secData    section = 1 // key: record
	secSession section = 2 // id (8): what session.Table encodes; id 0 is its head
	secSystem  section = 3 // name: value
	secUpload  section = 4 // upload id (16): see upload.encode
	secPart    section = 5 // number (8), part (1): checksum and bytes
	// secLarge has a key for each large value: an index of secData, so that
	// the values' parts can be found without a search. Not in snapshots.
	secLarge section = 6 // key: number (8), size (8)
	// From level 1 on:
	secDeadline section = 7 // key: deadline in milliseconds since 1970 (8)
	// secDue is an index of secDeadline by time. Not in snapshots.
	secDue section = 8 // deadline (8), key: nothing
	// From level 2 on:
	secMember section = 9 // number of a sorted set (12), member: score, checksum
	// secScore is an index of secMember by score. Not in snapshots.
	secScore section = 10 // number of a sorted set (12), score (8), member: checksum
	// From level 3 on:
	secRevision section = 11 // key: revision of the last event (8); see revision.go
)

// Offsets in a key.
const (
	groupEnd      = 1 + 8
	generationEnd = groupEnd + 4
	nameStart     = generationEnd + 1
)

// metaKey returns the key of a group's meta record.
func metaKey(group uint64) []byte {
	return append(groupKey(group), 0, 0, 0, 0)
}

// groupKey returns the prefix of all keys of a group.
func groupKey(group uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{groupsPrefix}, group)
}

// generationKey returns the prefix of all keys of a generation.
func generationKey(group uint64, generation uint32) []byte {
	return binary.BigEndian.AppendUint32(groupKey(group), generation)
}

// space is a generation of a group.
type space struct {
	group      uint64
	generation uint32
}

// appendKey appends the database key of a record.
func (sp space) appendKey(b []byte, sec section, name []byte) []byte {
	b = append(b, groupsPrefix)
	b = binary.BigEndian.AppendUint64(b, sp.group)
	b = binary.BigEndian.AppendUint32(b, sp.generation)
	b = append(b, byte(sec))
	return append(b, name...)
}

func (sp space) key(sec section, name []byte) []byte {
	return sp.appendKey(make([]byte, 0, nameStart+len(name)), sec, name)
}

// partName returns the name of a part in secPart.
func partName(number uint64, part int) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 9), number), byte(part))
}

// prefixEnd returns the least key above all that begin with prefix. There must
// be one: prefix is not all 0xff.
func prefixEnd(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	end[len(end)-1]++
	return end
}

// GroupOf returns the group, 1 to groups, that a key belongs to: the FNV-1a hash
// (64 bits) of the key, mixed, modulo groups. It is part of the format: another
// hash would look for keys where they are not.
func GroupOf(key string, groups int) uint64 {
	if groups <= 1 {
		return 1
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash.Hash never fails
	v := h.Sum64()
	// The low bits of FNV-1a know little of a key's first bytes.
	v ^= v >> 32
	v *= 0x9e3779b97f4a7c15
	v ^= v >> 32
	return 1 + v%uint64(groups)
}
