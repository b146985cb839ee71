// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// From level 3 on, a key has a revision: that of its last event, so one number tells
// where a put took effect, what a watch is to begin behind, and whether the key is still as
// it was put. Comparisons of transactions look at it, as at the modification revision of
// etcd. A key without a value has the revision 0.
//
// The revision stands in a row beside the record, because a list of keys tells the size of
// a value by that of its record, without reading it. A key that was changed last before
// the group got to level 3 has no row. It has the revision of the raise, which is greater
// than that of its last event: a comparison may fail without need, but none holds that
// should not. The row of the empty name has the revision of the raise.

// LevelOfRevisions is the level from which on keys have revisions.
const LevelOfRevisions = 3

func encodeRevision(r uint64) []byte { return binary.BigEndian.AppendUint64(nil, r) }

// decodeRevision reads a row of secRevision.
func decodeRevision(name, b []byte) (uint64, error) {
	if len(b) == 8 {
		if r := binary.BigEndian.Uint64(b); r > 0 {
			return r, nil
		}
	}
	return 0, fmt.Errorf("%w: the revision of key %q is %x", ErrDamaged, name, b[:min(len(b), 16)])
}

// storedRevision returns what stands in the row of a name, 0 if there is none.
func storedRevision(r source, sp space, name []byte) (uint64, error) {
	b, err := r.get(sp.key(secRevision, name))
	if b == nil || err != nil {
		return 0, err
	}
	return decodeRevision(name, b)
}

// stamp has a key have the revision of the command under way, or none.
func (w *writer) stamp(kind EventKind, key []byte) error {
	if w.tables.level() < LevelOfRevisions {
		return nil
	}
	revision := w.tables.position
	if kind == EventDelete || kind == EventExpire {
		revision = 0
	}
	if w.touched != nil {
		if w.revisions == nil {
			w.revisions = map[string]uint64{}
		}
		w.revisions[string(key)] = revision
	}
	if revision == 0 {
		return w.delete(secRevision, key)
	}
	return w.set(secRevision, key, encodeRevision(revision))
}

// raised notes the revision of a raise from a level without revisions of keys.
func (w *writer) raised(before int) error {
	t := w.tables
	if before >= LevelOfRevisions || t.level() < LevelOfRevisions {
		return nil
	}
	t.raised = t.position
	return w.set(secRevision, nil, encodeRevision(t.raised))
}

// revision returns a key's revision as of the commands before this one.
func (w *writer) revision(key []byte) (uint64, error) {
	exists, err := w.has(key)
	if !exists || err != nil {
		return 0, err
	}
	revision, known := w.revisions[string(key)]
	if !known {
		revision, err = storedRevision(present{w.pebble}, w.space, key)
	}
	return max(revision, w.tables.raised), err
}

// KeyRevision returns the revision at which a key was changed last, 0 if it has no value
// or the group is of a level below 3. A value that is read afterwards is not older.
func (s *Store) KeyRevision(key string) (revision uint64, err error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	v, err := s.view()
	if err != nil {
		return 0, err
	}
	raised, err := storedRevision(v.now, v.space, nil)
	if raised > 0 && err == nil {
		var stored []byte
		if stored, err = v.now.get(v.space.key(secData, []byte(key))); stored != nil && err == nil {
			revision, err = storedRevision(v.now, v.space, []byte(key))
			revision = max(revision, raised)
		}
	}
	return revision, errors.Join(err, v.close())
}
