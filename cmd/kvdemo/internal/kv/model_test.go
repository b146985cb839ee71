// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/rawnode/session"
)

// image is what a group's state is at one log index, as a model sees it.
type image struct {
	host    string
	data    map[string]string
	system  map[string]string
	last    map[session.ID]uint64 // sequence applied last
	result  map[session.ID]Result // of it
	uploads map[UploadID]map[int]bool
}

func newImage() image {
	return image{
		data: map[string]string{}, system: map[string]string{}, last: map[session.ID]uint64{},
		result: map[session.ID]Result{}, uploads: map[UploadID]map[int]bool{},
	}
}

func (i image) clone() image {
	c := image{
		host: i.host, data: maps.Clone(i.data), system: maps.Clone(i.system), last: maps.Clone(i.last),
		result: maps.Clone(i.result), uploads: map[UploadID]map[int]bool{},
	}
	for id, parts := range i.uploads {
		c.uploads[id] = maps.Clone(parts)
	}
	return c
}

// track is a group and its model: an image for each index that it could come
// back to.
type track struct {
	id      uint64
	store   *Store
	images  map[uint64]image
	index   uint64
	durable uint64 // the store said that it keeps this much
}

// machine drives a database of several groups.
type machine struct {
	fs      *vfs.MemFS
	db      *DB
	groups  []*track
	crashes uint64
	// changed are the groups to look at.
	changed map[*track]bool
}

func newMachine(t require.TestingT, groups int) *machine {
	m := &machine{fs: vfs.NewCrashableMem(), changed: map[*track]bool{}}
	for id := range groups {
		m.groups = append(m.groups, &track{id: uint64(id + 1), images: map[uint64]image{0: newImage()}})
	}
	m.open(t)
	return m
}

func (m *machine) open(t require.TestingT) {
	db, err := Open("state", testIdentity, Options{FS: m.fs, MemTableBytes: 256 << 10, CacheBytes: 1 << 20})
	require.NoError(t, err)
	m.db = db
	for _, g := range m.groups {
		g.store, err = m.db.Group(g.id)
		require.NoError(t, err)
		g.comeBack(t)
		m.changed[g] = true
	}
}

// comeBack checks that the store opened at a state it once had, no older than
// it promised, and goes on from there.
func (g *track) comeBack(t require.TestingT) {
	g.index = g.store.Applied()
	require.GreaterOrEqual(t, g.index, g.durable)
	require.Contains(t, g.images, g.index, "the store came back at an index that no batch ended at")
	maps.DeleteFunc(g.images, func(i uint64, _ image) bool { return i > g.index })
}

func (m *machine) draw(t *rapid.T) *track {
	return m.groups[rapid.IntRange(0, len(m.groups)-1).Draw(t, "group")]
}

var modelKeys = []string{"a", "a/b", "a/b/c", "b", "ÿ", "zz"}

// apply draws a batch and applies it to both.
func (m *machine) apply(t *rapid.T) {
	g := m.draw(t)
	m.changed[g] = true
	state := g.images[g.index].clone()
	var commands [][]byte
	var want []Result
	for range rapid.IntRange(0, 6).Draw(t, "commands") {
		c, r := state.step(t)
		commands, want = append(commands, c), append(want, r)
	}
	var host []byte
	if rapid.Bool().Draw(t, "host") {
		state.host = fmt.Sprint("host ", g.index)
		host = []byte(state.host)
	}
	g.index += rapid.Uint64Range(1, 3).Draw(t, "step")
	before := g.store.Revision()
	got := applyAt(t, g.store, g.index, host, commands...)
	for i := range want {
		require.ErrorIs(t, got[i].Err, want[i].Err)
		if op := Op(commands[i][0] &^ inSession); (op == OpPut || op == OpDelete || op == OpFinish) && want[i].Err == nil && !want[i].Repeated {
			want[i].Revision = before + uint64(i) + 1
		}
		got[i].Err, want[i].Err = nil, nil
		require.Equal(t, want[i], got[i], "%q", commands[i][:min(20, len(commands[i]))])
	}
	g.images[g.index] = state
}

// step draws a command, changes the image, and says what its result must be.
func (i *image) step(t *rapid.T) ([]byte, Result) {
	key := rapid.SampledFrom(modelKeys).Draw(t, "key")
	c := Command{Key: key}
	switch op := rapid.IntRange(0, 13).Draw(t, "op"); op {
	case 0:
		return []byte{99, 9, 9}, Result{Err: ErrInvalid}
	case 1:
		id := session.ID(len(i.last) + 1)
		i.last[id] = 0
		return Command{Op: OpOpenSession}.Encode(), Result{Session: id}
	case 2, 3:
		return i.swap(t, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"))
	case 4:
		return i.part(t)
	case 5, 6, 7:
		c.Op = OpDelete
	default:
		c.Op = OpPut
		c.Value = pattern(rapid.SampledFrom([]int{0, 1, 48, 57, 3000, 20000}).Draw(t, "size"), rapid.Byte().Draw(t, "seed"))
	}
	if n := len(i.last); n > 0 && rapid.Bool().Draw(t, "in session") {
		c.Session = session.ID(rapid.IntRange(1, n).Draw(t, "session"))
		c.Sequence = max(1, i.last[c.Session]+rapid.Uint64Range(0, 2).Draw(t, "ahead"))
		if c.Sequence == i.last[c.Session] {
			r := i.result[c.Session]
			r.Repeated = true
			return c.Encode(), r
		}
	}
	var r Result
	if c.Op == OpDelete {
		_, r.Existed = i.data[key]
		delete(i.data, key)
	} else {
		i.data[key] = string(c.Value)
	}
	if c.Session != 0 {
		i.last[c.Session], i.result[c.Session] = c.Sequence, r
	}
	return c.Encode(), r
}

// swap draws a change of a system key.
func (i *image) swap(t *rapid.T, name string) ([]byte, Result) {
	c := Command{Op: OpSystem, Key: name, Value: []byte(rapid.SampledFrom([]string{"", "1", "22"}).Draw(t, "value"))}
	if rapid.Bool().Draw(t, "right") {
		c.Want = []byte(i.system[name])
	} else {
		c.Want = []byte("something else")
		return c.Encode(), Result{Value: bytesOrNil(i.system[name])}
	}
	i.system[name] = string(c.Value)
	if len(c.Value) == 0 {
		delete(i.system, name)
	}
	return c.Encode(), Result{Swapped: true, Value: bytesOrNil(i.system[name])}
}

func bytesOrNil(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// modelValue is an upload of two parts, the second of which is short.
var modelValue = pattern(PartBytes+77, 5)

// part draws a step of an upload: a part, its end, or giving it up.
func (i *image) part(t *rapid.T) ([]byte, Result) {
	id := UploadID{rapid.Byte().Draw(t, "upload") % 2}
	key := rapid.SampledFrom(modelKeys).Draw(t, "key")
	commands := uploadOf(id, key, modelValue)
	have := i.uploads[id]
	switch n := rapid.SampledFrom([]int{0, 1, 1, 2, 2, 3}).Draw(t, "which"); n {
	case 3:
		delete(i.uploads, id)
		return Command{Op: opAbort, Upload: id}.Encode(), Result{Existed: have != nil}
	case 2:
		switch {
		case have == nil:
			return commands[2], Result{Err: ErrNoUpload}
		case !have[0]:
			return commands[2], Result{Err: ErrParts, Missing: []int{0}}
		case !have[1]:
			return commands[2], Result{Err: ErrParts, Missing: []int{1}}
		}
		i.data[key] = string(modelValue)
		delete(i.uploads, id)
		return commands[2], Result{}
	default:
		if have == nil {
			i.uploads[id] = map[int]bool{}
		}
		i.uploads[id][n] = true
		return commands[n], Result{}
	}
}

// crash drops what is not synced, wholly or partly, and opens again.
func (m *machine) crash(t *rapid.T) {
	for _, g := range m.groups {
		d, err := g.store.Durable()
		require.NoError(t, err)
		g.durable = max(g.durable, d)
	}
	m.crashes++
	cfg := vfs.CrashCloneCfg{
		UnsyncedDataPercent: rapid.SampledFrom([]int{0, 0, 50, 100}).Draw(t, "kept"),
		RNG:                 rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), m.crashes)),
	}
	left := m.fs.CrashClone(cfg)
	require.NoError(t, m.db.Close())
	m.fs = left
	m.open(t)
}

func (m *machine) flush(t *rapid.T) {
	require.NoError(t, m.db.Flush())
	m.allDurable()
}

func (m *machine) allDurable() {
	for _, g := range m.groups {
		g.durable = g.index
	}
}

// restore gives one group the state of another, or of itself, at a later index.
func (m *machine) restore(t *rapid.T) {
	from, g := m.draw(t), m.draw(t)
	if from != g && from.index <= g.index { // a group never goes back
		state := from.images[from.index]
		from.index = g.index + 1
		applyAt(t, from.store, from.index, nil)
		from.images[from.index] = state
	}
	b := snapshotBytes(t, from.store)
	state := from.images[from.index].clone()
	state.host = "host of a snapshot"
	if rapid.Bool().Draw(t, "damaged") {
		damaged := slices.Clone(b)
		damaged[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 0x20
		require.ErrorIs(t, restore(g.store, from.index, state.host, damaged), errSnapshot)
	}
	require.NoError(t, restore(g.store, from.index, state.host, b))
	for _, g := range m.groups { // the others are to be as they were
		m.changed[g] = true
	}
	g.index = from.index
	g.images = map[uint64]image{g.index: state}
	g.durable = g.index
}

// check compares every answer of the stores with the model.
func (m *machine) check(t require.TestingT) {
	for _, g := range m.groups {
		require.Equal(t, g.index, g.store.Applied())
		d, err := g.store.Durable()
		require.NoError(t, err)
		require.LessOrEqual(t, g.durable, d)
		require.LessOrEqual(t, d, g.index)
		if m.changed[g] {
			g.images[g.index].check(t, g.store)
		}
	}
	clear(m.changed)
}

// check compares a store with the image.
func (i image) check(t require.TestingT, s *Store) {
	_, host, err := s.Load()
	require.NoError(t, err)
	require.Equal(t, i.host, string(host))
	got := map[string]string{}
	var after string
	for {
		page, err := s.List(Query{After: after, Limit: 2})
		require.NoError(t, err)
		for _, item := range page.Items {
			require.Greater(t, item.Key, after)
			after = item.Key
			value := readAll(t, s, item.Key)
			require.EqualValues(t, len(value), item.Size)
			got[item.Key] = string(value)
		}
		if page.Next == "" {
			break
		}
	}
	require.True(t, maps.Equal(i.data, got), "want keys %v, got %v", slices.Sorted(maps.Keys(i.data)), slices.Sorted(maps.Keys(got)))
	system, _, err := s.System()
	require.NoError(t, err)
	for name, value := range system {
		require.Equal(t, i.system[name], string(value))
	}
	require.Len(t, system, len(i.system))
	for _, id := range []UploadID{{0}, {1}} {
		u, err := s.Upload(id)
		if have := i.uploads[id]; have == nil {
			require.ErrorIs(t, err, ErrNoUpload)
		} else {
			require.NoError(t, err)
			require.Len(t, u.Missing, 2-len(have))
		}
	}
	_, _, err = s.Get("nothing")
	require.ErrorIs(t, err, ErrNotFound)
}

// Each group agrees with its model through batches, flushes, snapshots from
// group to group, crashes that lose unsynced data, and orderly restarts. At the
// end no part is left that nothing refers to.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, 3)
		defer func() { _ = m.db.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"apply":  m.apply,
			"apply2": m.apply,
			"apply3": m.apply,
			"crash":  m.crash,
			"flush":  m.flush,
			"reopen": func(t *rapid.T) {
				require.NoError(t, m.db.Close())
				m.allDurable() // Close flushes
				m.open(t)
			},
			"restore": m.restore,
			"":        func(t *rapid.T) { m.check(t) },
		})
		for _, g := range m.groups {
			requireNoOrphans(t, g.store)
		}
	})
}

// requireNoOrphans checks that each record of the database is one that the
// group's tables know: no part without an owner, no index without a value.
func requireNoOrphans(t require.TestingT, s *Store) {
	b := newBuilder(s.meta.position)
	for _, sec := range []section{secData, secSession, secSystem, secUpload, secPart, secDeadline, secMember, secRevision} {
		require.NoError(t, scan(present{inner(t, s.db)}, s.space(), sec, func(name, value []byte) error {
			return b.add(sec, slices.Clone(name), slices.Clone(value))
		}))
	}
	tables, err := b.finish()
	require.NoError(t, err)
	require.Equal(t, tables.sorted, s.tables.sorted)
	var scores, members [][]byte
	require.NoError(t, scan(present{inner(t, s.db)}, s.space(), secScore, func(name, value []byte) error {
		_, _, err := openScore(name, value)
		scores = append(scores, slices.Clone(name))
		return err
	}))
	require.NoError(t, scan(present{inner(t, s.db)}, s.space(), secMember, func(name, value []byte) error {
		score, err := openMember(name, value)
		members = append(members, setNumber(name).scoreName(score, name[numberBytes:]))
		return err
	}))
	slices.SortFunc(members, bytes.Compare)
	require.Equal(t, members, scores)
	require.Equal(t, tables.large, s.tables.large)
	stored := map[string]largeRef{}
	loaded, err := loadTables(present{inner(t, s.db)}, s.space(), s.meta.position)
	require.NoError(t, err)
	maps.Copy(stored, loaded.large)
	require.Equal(t, tables.large, stored)
	require.Equal(t, tables.sorted, loaded.sorted)
	require.Equal(t, []uint64{tables.raised, tables.raised}, []uint64{loaded.raised, s.tables.raised})
	require.Equal(t, tables.uploads.byID, s.tables.uploads.byID)
	require.Equal(t, tables.system, s.tables.system)
	require.Equal(t, maps.Collect(tables.sessions.All()), maps.Collect(s.tables.sessions.All()))
}
