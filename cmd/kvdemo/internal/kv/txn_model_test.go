// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/rawnode"
)

// entry is a key as the model has it.
type entry struct {
	value    string // of a hash and a sorted set the list that it is
	deadline int64
	kind     byte
}

// txnModel is what transactions make of a state.
type txnModel map[string]entry

var txnKeys = []string{"a", "b", "c", "d"}

func (m txnModel) act(a Action) (r ActionResult) {
	old, ok := m[a.Key]
	switch a.Kind {
	case ActGet:
		if r.Existed = ok; old.kind != kindInline {
			r.Code = TxnWrongType
			return r
		}
		r.Value = bytesOrNil(old.value)
	case ActHas:
		r.Existed = ok
	case ActPut:
		if r.Existed = ok && a.Flags&^KeepDeadline != 0; a.Flags&ReturnOld != 0 {
			if old.kind != kindInline {
				r.Code = TxnWrongType
				return r
			}
			r.Value = bytesOrNil(old.value)
		}
		if a.Flags&IfAbsent != 0 && ok || a.Flags&IfPresent != 0 && !ok {
			r.Code = TxnSkipped
			return r
		}
		deadline := a.Deadline
		if a.Flags&KeepDeadline != 0 {
			deadline = old.deadline
		}
		m[a.Key] = entry{string(a.Value), deadline, kindInline}
	case ActDelete:
		if r.Existed = ok; a.Flags&ReturnOld != 0 {
			if old.kind != kindInline {
				r.Code = TxnWrongType
				return r
			}
			r.Value = bytesOrNil(old.value)
		}
		delete(m, a.Key)
	case ActAdd:
		if r.Existed = ok; old.kind != kindInline {
			r.Code = TxnWrongType
			return r
		}
		n, number := int64(0), true
		if ok {
			n, number = decimal([]byte(old.value))
		}
		if !number {
			r.Code = TxnNoNumber
			return r
		}
		r.Number = n + a.Delta
		m[a.Key] = entry{strconv.FormatInt(r.Number, 10), old.deadline, kindInline}
	case ActDeadline:
		if r.Existed = ok; ok {
			r.Code = m.setDeadline(a, old)
		}
	case ActTTL:
		r.Existed, r.Number = ok, old.deadline
	case ActType:
		if r.Existed = ok; ok {
			r.Number = map[byte]int64{kindInline: 1, kindHash: 2, kindSorted: 3}[old.kind]
		}
	case ActHash, ActHashSet, ActHashRemove:
		return m.actHash(a)
	default:
		return m.actSorted(a)
	}
	return r
}

func drawAction(t *rapid.T) Action {
	a := Action{Kind: ActionKind(rapid.IntRange(1, int(lastAct)).Draw(t, "kind")), Key: rapid.SampledFrom(txnKeys).Draw(t, "key")}
	switch a.Kind {
	case ActPut:
		a.Value = []byte(rapid.SampledFrom([]string{"1", "-7", "x", "07"}).Draw(t, "value"))
		a.Flags = rapid.SampledFrom([]ActionFlags{0, IfAbsent, IfPresent, KeepDeadline, ReturnOld, ReturnOld | IfAbsent, IfPresent | KeepDeadline}).Draw(t, "flags")
		if a.Flags&KeepDeadline == 0 {
			a.Deadline = rapid.Int64Range(0, 5).Draw(t, "deadline")
		}
	case ActDelete:
		a.Flags = rapid.SampledFrom([]ActionFlags{0, ReturnOld}).Draw(t, "flags")
	case ActAdd:
		a.Delta = rapid.Int64Range(-3, 3).Draw(t, "delta")
	case ActDeadline:
		a.Deadline = rapid.Int64Range(0, 5).Draw(t, "deadline")
		a.Flags = rapid.SampledFrom([]ActionFlags{0, IfAbsent, IfPresent, IfGreater, IfLess, IfPresent | IfLess, IfPresent | RemoveNow}).Draw(t, "flags")
	default:
		a.drawCollection(t)
	}
	return a
}

// revisionByEvents returns the revision of a key's last event, 0 if that removed the key.
func revisionByEvents(t require.TestingT, s *Store, key string) (revision uint64) {
	events, _, _, err := s.Events(1, maxEvents)
	require.NoError(t, err)
	for _, e := range events {
		switch {
		case e.Key != key:
		case e.Kind == EventDelete, e.Kind == EventExpire:
			revision = 0
		default:
			revision = e.Revision
		}
	}
	return revision
}

// step draws a command, changes the model, and says what must come of it. Revisions of keys
// are those of the store's events.
func (m txnModel) step(t *rapid.T, s *Store) ([]byte, Result) {
	key := rapid.SampledFrom(txnKeys).Draw(t, "key")
	switch rapid.IntRange(0, 5).Draw(t, "op") {
	case 0:
		m[key] = entry{value: "1"}
		return put(key, "1"), Result{}
	case 1:
		_, ok := m[key]
		delete(m, key)
		return del(key), Result{Existed: ok}
	case 2:
		e := &Expire{Now: rapid.Int64Range(0, 5).Draw(t, "now"), Keys: txnKeys}
		n := int64(0)
		for key, have := range m {
			if have.deadline != 0 && have.deadline <= e.Now {
				delete(m, key)
				n++
			}
		}
		return Command{Op: OpExpire, Expire: e}.Encode(), Result{Expired: n}
	}
	x := Txn{}
	want := &TxnResult{Succeeded: true}
	for range rapid.IntRange(0, 2).Draw(t, "compares") {
		c := CompareValue(rapid.SampledFrom(txnKeys).Draw(t, "compared"), []byte("1"))
		c.Kind = CompareKind(rapid.IntRange(1, int(lastCompare)).Draw(t, "kind"))
		have, ok := m[c.Key]
		revision := revisionByEvents(t, s, c.Key)
		if c.Kind.byRevision() {
			c.Revision = revision + rapid.Uint64Range(0, 2).Draw(t, "more") - min(revision, 1)
		}
		want.Succeeded = want.Succeeded && map[CompareKind]bool{
			CompareAbsent: !ok, ComparePresent: ok, CompareDigest: ok && have.value == "1" && have.kind == kindInline,
			CompareRevision: c.Revision == revision, CompareChanged: ok && revision > c.Revision,
		}[c.Kind]
		x.Compares = append(x.Compares, c)
	}
	for range rapid.IntRange(0, 4).Draw(t, "actions") {
		x.Then, x.Else = append(x.Then, drawAction(t)), append(x.Else, drawAction(t))
	}
	list := x.Else
	if want.Succeeded {
		list = x.Then
	}
	want.Actions = make([]ActionResult, len(list))
	for i, a := range list {
		want.Actions[i] = m.act(a)
	}
	return Command{Op: OpTxn, Txn: &x}.Encode(), Result{Txn: want}
}

// compare compares a store with the model.
func (m txnModel) compare(t require.TestingT, s *Store) {
	page, err := s.List(Query{Digests: true})
	require.NoError(t, err)
	var keys []string
	for _, item := range page.Items {
		keys = append(keys, item.Key)
		d, err := s.Deadline(item.Key)
		require.NoError(t, err)
		want := m[item.Key]
		require.Equal(t, want.deadline, d)
		require.EqualValues(t, len(want.value), item.Size)
		digest := typedDigest(want.kind, []byte(want.value))
		if want.kind == kindInline {
			digest = sha256.Sum256([]byte(want.value))
			require.Equal(t, want.value, string(readAll(t, s, item.Key)))
		} else {
			_, err := s.Value(item.Key)
			require.ErrorIs(t, err, ErrType)
		}
		require.Equal(t, digest[:], item.SHA256)
	}
	require.Equal(t, slices.Sorted(maps.Keys(m)), keys)
	var due []string
	for now := range int64(6) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if m[key].deadline == now && now > 0 {
				due = append(due, key)
			}
		}
	}
	got, err := s.Due(5)
	require.NoError(t, err)
	require.Equal(t, due, got)
	require.EqualValues(t, len(due), s.Deadlines())
}

// Two replicas, one of which gets all commands one by one and the other in batches,
// restarts after crashes and goes on from snapshots, are what a model says.
func TestTransactionModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := openLevel(t, 3)
		fs := vfs.NewCrashableMem()
		var db *DB
		var two *Store
		open := func() {
			var err error
			db, err = Open("state", testIdentity, Options{FS: fs})
			require.NoError(t, err)
			two, err = db.Group(1)
			require.NoError(t, err)
		}
		open()
		log := [][]byte{raiseTo(3)}
		// catchUp brings the second replica to the end of the log in one batch.
		catchUp := func() {
			if from := two.Applied(); from < uint64(len(log)) {
				_, err := two.Apply(rawnode.Batch{Index: uint64(len(log)), Commands: log[from:]})
				require.NoError(t, err)
			}
		}
		model := txnModel{}
		t.Repeat(map[string]func(*rapid.T){
			"command": func(t *rapid.T) {
				c, want := model.step(t, one)
				log = append(log, c)
				got := apply(t, one, c)[0]
				require.NoError(t, got.Err)
				got.Revision = 0
				require.Equal(t, want, got)
			},
			"batch": func(*rapid.T) { catchUp() },
			"crash": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "flush") {
					require.NoError(t, db.Flush())
				}
				crashed := fs.CrashClone(vfs.CrashCloneCfg{})
				require.NoError(t, db.Close())
				fs = crashed
				open()
			},
			"snapshot": func(*rapid.T) {
				if two.Applied() < one.Applied() {
					require.NoError(t, restore(two, one.Applied(), "", snapshotBytes(t, one)))
				}
			},
			"": func(t *rapid.T) { model.compare(t, one) },
		})
		catchUp()
		model.compare(t, two)
		for _, key := range txnKeys {
			r, err := two.KeyRevision(key)
			require.NoError(t, err)
			require.Equal(t, revisionByEvents(t, one, key), r)
		}
		requireNoOrphans(t, one)
		requireNoOrphans(t, two)
		require.True(t, bytes.Equal(snapshotBytes(t, one), snapshotBytes(t, two)))
		require.NoError(t, errors.Join(db.Close(), one.db.Close()))
	})
}
