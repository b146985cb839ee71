// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"sync/atomic"

	"github.com/weftraft/weft/rawnode/session"
)

// tables are what Apply has to know without a look at the database. All of it is
// in the database too, written with the commands that change it.
type tables struct {
	// position is meta.position of the state.
	position uint64
	sessions *session.Table
	uploads  uploads
	// large has each key with a large value, so that whoever overwrites it
	// finds its parts. It takes some hundred bytes for a value of a megabyte
	// and more.
	large map[string]largeRef
	// system has the system keys: at most maxSystemBytes.
	system      map[string][]byte
	systemBytes int // of keys and values
	// deadlines is how many keys have one.
	deadlines int64
	// sorted is how many sorted sets there are. While there is one, a command that
	// replaces a value looks whether it is a set.
	sorted int64
	// raised is the revision at which the group got to level 3, 0 before.
	raised uint64
}

// largeRef says where the parts of a large value are.
type largeRef struct {
	number uint64
	size   int64
}

func (r largeRef) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), r.number)
	return binary.BigEndian.AppendUint64(b, uint64(r.size))
}

func newTables() *tables {
	sessions, err := session.New(sessionLimits)
	if err != nil { // constants
		panic(err)
	}
	return &tables{
		sessions: sessions,
		uploads:  newUploads(),
		large:    map[string]largeRef{},
		system:   map[string][]byte{},
	}
}

// loadTables reads the tables of a generation.
func loadTables(r source, sp space, position uint64) (*tables, error) {
	t := newTables()
	t.position = position
	err := errors.Join(
		scan(r, sp, secSystem, func(name, value []byte) error {
			t.setSystem(string(name), append([]byte(nil), value...))
			return nil
		}),
		scan(r, sp, secUpload, t.loadUpload),
		scan(r, sp, secLarge, func(name, value []byte) error {
			if len(value) != 16 {
				return fmt.Errorf("%w: where key %q has its value is %x", ErrDamaged, name, value)
			}
			t.large[string(name)] = largeRef{binary.BigEndian.Uint64(value), int64(binary.BigEndian.Uint64(value[8:]))}
			return nil
		}),
		scan(r, sp, secDeadline, func([]byte, []byte) error {
			t.deadlines++
			return nil
		}),
		t.loadSorted(r, sp),
	)
	rows := map[session.ID][]byte{}
	err = errors.Join(err, scan(r, sp, secSession, func(name, value []byte) error {
		if len(name) != 8 {
			return fmt.Errorf("%w: a session has the key %x", ErrDamaged, name)
		}
		rows[session.ID(binary.BigEndian.Uint64(name))] = append([]byte(nil), value...)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	if t.raised, err = storedRevision(r, sp, nil); err != nil {
		return nil, err
	}
	if t.sessions, err = session.Load(sessionLimits, maps.All(rows)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return t, nil
}

// loadSorted counts the sorted sets, one seek for each.
func (t *tables) loadSorted(r source, sp space) error {
	lower := sp.key(secMember, nil)
	it, err := r.iter(lower, prefixEnd(lower))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; t.sorted++ {
		name := it.Key()[nameStart:]
		if len(name) < numberBytes {
			return errors.Join(fmt.Errorf("%w: a member of a sorted set has the key %x", ErrDamaged, name), it.Close())
		}
		ok = it.SeekGE(prefixEnd(it.Key()[:nameStart+numberBytes]))
	}
	return errors.Join(damage(it.Error()), it.Close())
}

// scan calls f with each name and value of a section, valid during the call.
func scan(r source, sp space, sec section, f func(name, value []byte) error) error {
	lower := sp.key(sec, nil)
	it, err := r.iter(lower, prefixEnd(lower))
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = f(it.Key()[nameStart:], value)
		}
	}
	return errors.Join(damage(err), damage(it.Error()), it.Close())
}

// setSystem sets a system key; no value removes it.
func (t *tables) setSystem(name string, value []byte) {
	if old, ok := t.system[name]; ok {
		t.systemBytes -= len(name) + len(old)
		delete(t.system, name)
	}
	if len(value) > 0 {
		t.system[name] = value
		t.systemBytes += len(name) + len(value)
	}
}

// upload is one that is under way.
type upload struct {
	id     UploadID
	number uint64 // names its parts in secPart; greater than that of any before
	size   int64  // of the whole value
	have   uint64 // the set of parts that are there
	used   uint64 // position when it got a part last
	sums   [maxParts]uint32
}

// encode returns number, size, have, used, and the checksum of each part there.
func (u *upload) encode() []byte {
	b := make([]byte, 0, 32+4*bits.OnesCount64(u.have))
	for _, v := range []uint64{u.number, uint64(u.size), u.have, u.used} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	for _, i := range members(u.have) {
		b = binary.BigEndian.AppendUint32(b, u.sums[i])
	}
	return b
}

func decodeUpload(id, b []byte) (*upload, error) {
	u := &upload{}
	bad := func() (*upload, error) {
		return nil, fmt.Errorf("%w: the record of upload %x is %x", ErrDamaged, id, b[:min(len(b), 32)])
	}
	if len(id) != len(u.id) || len(b) < 32 {
		return bad()
	}
	u.id = UploadID(id)
	u.number, u.size = binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:]))
	u.have, u.used = binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[24:])
	if u.size < 1 || u.size > MaxValueBytes || u.have == 0 || u.have&^u.all() != 0 || len(b) != 32+4*bits.OnesCount64(u.have) {
		return bad()
	}
	for n, i := range members(u.have) {
		u.sums[i] = binary.BigEndian.Uint32(b[32+4*n:])
	}
	return u, nil
}

// all is the set of all parts.
func (u *upload) all() uint64 { return 1<<partsOf(u.size) - 1 }

// storedBytes are what the parts take that are there.
func (u *upload) storedBytes() int64 {
	n := int64(0)
	for _, i := range members(u.have) {
		n += int64(partLen(u.size, i))
	}
	return n
}

// uploads are those of a group.
type uploads struct {
	byID map[UploadID]*upload
	// expiry is at most the position at which the next one is to be dropped.
	expiry uint64
}

func newUploads() uploads {
	return uploads{byID: map[UploadID]*upload{}, expiry: ^uint64(0)}
}

func (t *tables) loadUpload(name, value []byte) error {
	u, err := decodeUpload(name, value)
	if err != nil {
		return err
	}
	return t.addUpload(u)
}

// addUpload adds one that was stored.
func (t *tables) addUpload(u *upload) error {
	if u.used > t.position || u.number > t.position {
		return fmt.Errorf("%w: upload %v is of position %d, the state of %d", ErrDamaged, u.id, max(u.used, u.number), t.position)
	}
	t.uploads.byID[u.id] = u
	t.uploads.expiry = min(t.uploads.expiry, u.used+uploadLifetime)
	return nil
}

// idlest returns the upload that was idle for longest, nil if there is none. No
// two were used at the same position.
func (u *uploads) idlest() *upload {
	var idlest *upload
	for _, up := range u.byID {
		if idlest == nil || up.used < idlest.used {
			idlest = up
		}
	}
	return idlest
}

// Stats are numbers about a store, as of the last batch.
type Stats struct {
	Sessions    int64
	Uploads     int64 // under way
	UploadBytes int64 // stored of them
	LargeValues int64
}

// gauges are Stats for other goroutines.
type gauges struct{ sessions, uploads, uploadBytes, large, level, deadlines atomic.Int64 }

func (g *gauges) set(t *tables) {
	g.sessions.Store(int64(t.sessions.Len()))
	g.large.Store(int64(len(t.large)))
	g.level.Store(int64(t.level()))
	g.deadlines.Store(t.deadlines)
	if n := int64(len(t.uploads.byID)); n > 0 || g.uploads.Load() > 0 {
		bytes := int64(0)
		for _, u := range t.uploads.byID {
			bytes += u.storedBytes()
		}
		g.uploads.Store(n)
		g.uploadBytes.Store(bytes)
	}
}

// Stats returns the numbers.
func (s *Store) Stats() Stats {
	g := &s.gauges
	return Stats{
		Sessions: g.sessions.Load(), Uploads: g.uploads.Load(), UploadBytes: g.uploadBytes.Load(),
		LargeValues: g.large.Load(),
	}
}
