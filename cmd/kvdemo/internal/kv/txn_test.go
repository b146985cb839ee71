// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode/state"
)

// raiseLevel is the command that brings a group to level 1.
func raiseLevel() []byte { return raiseTo(1) }

// raiseTo brings a group of level 0 to a level.
func raiseTo(level int) []byte {
	return Command{Op: OpSystem, Key: LevelKey, Value: []byte(strconv.Itoa(level))}.Encode()
}

func txn(compares []Compare, then []Action, otherwise ...Action) []byte {
	return Command{Op: OpTxn, Txn: &Txn{Compares: compares, Then: then, Else: otherwise}}.Encode()
}

// act does one action in a transaction of its own.
func act(t require.TestingT, s *Store, a Action) ActionResult {
	r := apply(t, s, txn(nil, []Action{a}))[0]
	require.NoError(t, r.Err)
	require.Len(t, r.Txn.Actions, 1)
	return r.Txn.Actions[0]
}

// openLevel1 opens an empty group of level 1.
func openLevel1(t require.TestingT) *Store {
	_, s := openMem(t)
	require.NoError(t, apply(t, s, raiseLevel())[0].Err)
	return s
}

func TestEachActionSaysWhatCameOfIt(t *testing.T) {
	s := openLevel1(t)
	large := pattern(PartBytes+5, 1)
	apply(t, s, uploadOf(UploadID{1}, "large", large)...)
	for i, c := range []struct {
		a    Action
		want ActionResult
	}{
		{Action{Kind: ActGet, Key: "k"}, ActionResult{}},
		{Action{Kind: ActPut, Key: "k", Value: []byte("v"), Flags: IfPresent}, ActionResult{Code: TxnSkipped}},
		{Action{Kind: ActPut, Key: "k", Value: []byte("v"), Flags: IfAbsent}, ActionResult{}},
		{Action{Kind: ActPut, Key: "k", Value: []byte("w"), Flags: IfAbsent}, ActionResult{Code: TxnSkipped, Existed: true}},
		{Action{Kind: ActGet, Key: "k"}, ActionResult{Existed: true, Value: []byte("v")}},
		{Action{Kind: ActPut, Key: "k", Value: []byte("w"), Flags: ReturnOld, Deadline: 70}, ActionResult{Existed: true, Value: []byte("v")}},
		{Action{Kind: ActTTL, Key: "k"}, ActionResult{Existed: true, Number: 70}},
		{Action{Kind: ActPut, Key: "k", Value: []byte("x"), Flags: KeepDeadline}, ActionResult{}},
		{Action{Kind: ActTTL, Key: "k"}, ActionResult{Existed: true, Number: 70}},
		{Action{Kind: ActPut, Key: "k", Value: []byte("y")}, ActionResult{}},
		{Action{Kind: ActTTL, Key: "k"}, ActionResult{Existed: true}},
		{Action{Kind: ActDeadline, Key: "k", Deadline: 80}, ActionResult{Existed: true}},
		{Action{Kind: ActDeadline, Key: "none", Deadline: 80}, ActionResult{}},
		{Action{Kind: ActTTL, Key: "none"}, ActionResult{}},
		{Action{Kind: ActAdd, Key: "k", Delta: 1}, ActionResult{Code: TxnNoNumber, Existed: true}},
		{Action{Kind: ActAdd, Key: "n", Delta: -3}, ActionResult{Number: -3}},
		{Action{Kind: ActAdd, Key: "n", Delta: 5}, ActionResult{Existed: true, Number: 2}},
		{Action{Kind: ActAdd, Key: "n", Delta: math.MaxInt64}, ActionResult{Code: TxnOverflow, Existed: true}},
		{Action{Kind: ActGet, Key: "n"}, ActionResult{Existed: true, Value: []byte("2")}},
		{Action{Kind: ActHas, Key: "n"}, ActionResult{Existed: true}},
		{Action{Kind: ActDelete, Key: "n"}, ActionResult{Existed: true}},
		{Action{Kind: ActDelete, Key: "n"}, ActionResult{}},
		{Action{Kind: ActGet, Key: "large"}, ActionResult{Code: TxnLarge, Existed: true}},
		{Action{Kind: ActHas, Key: "large"}, ActionResult{Existed: true}},
		{Action{Kind: ActPut, Key: "large", Value: []byte("small")}, ActionResult{}},
		{Action{Kind: ActGet, Key: "large"}, ActionResult{Existed: true, Value: []byte("small")}},
	} {
		require.Equal(t, c.want, act(t, s, c.a), "step %d: %+v", i, c.a)
	}
	require.EqualValues(t, 1, s.Deadlines())
}

func TestTransactionDoesThenOrElse(t *testing.T) {
	s := openLevel1(t)
	large := pattern(PartBytes+5, 1)
	apply(t, s, uploadOf(UploadID{1}, "large", large)...)
	apply(t, s, put("k", "v"))
	then, otherwise := []Action{{Kind: ActPut, Key: "out", Value: []byte("then")}}, Action{Kind: ActPut, Key: "out", Value: []byte("else")}
	for _, c := range []struct {
		name     string
		compares []Compare
		want     bool
	}{
		{"nothing is compared", nil, true},
		{"value", []Compare{CompareValue("k", []byte("v"))}, true},
		{"other value", []Compare{CompareValue("k", []byte("w"))}, false},
		{"value of no key", []Compare{CompareValue("none", nil)}, false},
		{"present", []Compare{{Kind: ComparePresent, Key: "k"}}, true},
		{"absent", []Compare{{Kind: CompareAbsent, Key: "none"}}, true},
		{"not absent", []Compare{{Kind: CompareAbsent, Key: "k"}}, false},
		{"one of two", []Compare{{Kind: CompareAbsent, Key: "none"}, {Kind: ComparePresent, Key: "none"}}, false},
		{"large value", []Compare{{Kind: CompareDigest, Key: "large", SHA256: sha256.Sum256(large)}}, true},
		{"another large value", []Compare{{Kind: CompareDigest, Key: "large", SHA256: sha256.Sum256(large[1:])}}, false},
	} {
		r := apply(t, s, txn(c.compares, then, otherwise))[0]
		require.NoError(t, r.Err, c.name)
		require.Equal(t, c.want, r.Txn.Succeeded, c.name)
		require.Equal(t, s.Revision(), r.Revision, c.name)
		require.Equal(t, map[bool]string{true: "then", false: "else"}[c.want], string(readAll(t, s, "out")), c.name)
	}
	// Commands of one batch see each other.
	r := apply(t, s, put("a", "1"), txn([]Compare{CompareValue("a", []byte("1"))}, []Action{{Kind: ActAdd, Key: "a", Delta: 1}, {Kind: ActDelete, Key: "k"}}),
		txn([]Compare{{Kind: CompareAbsent, Key: "k"}}, []Action{{Kind: ActGet, Key: "a"}}), del("a"))
	require.Equal(t, "2", string(r[2].Txn.Actions[0].Value))
	require.True(t, r[3].Existed)
}

func TestTransactionInSessionIsDoneOnce(t *testing.T) {
	s := openLevel1(t)
	id := apply(t, s, Command{Op: OpOpenSession}.Encode())[0].Session
	add := func(sequence uint64, actions ...Action) Result {
		return apply(t, s, Command{Op: OpTxn, Txn: &Txn{Then: actions}, Session: id, Sequence: sequence}.Encode())[0]
	}
	first := add(1, Action{Kind: ActAdd, Key: "n", Delta: 1}, Action{Kind: ActGet, Key: "n"}, Action{Kind: ActTTL, Key: "none"})
	again := add(1, Action{Kind: ActAdd, Key: "n", Delta: 1})
	require.True(t, again.Repeated)
	require.Equal(t, first.Txn.Actions[:2], again.Txn.Actions[:2])
	require.True(t, again.Txn.Succeeded)
	require.Equal(t, "1", string(readAll(t, s, "n")))
	apply(t, s, put("big", string(pattern(5000, 1))))
	require.Len(t, add(2, Action{Kind: ActGet, Key: "big"}).Txn.Actions, 1)
	require.True(t, add(2).Txn.Forgotten, "a large result is not kept")
	_, err := keptTxnResult([]byte{0, 9})
	require.ErrorIs(t, err, ErrInvalid)
}

func TestExpiryRemovesOnlyWhatIsDue(t *testing.T) {
	s := openLevel1(t)
	for i := range 5 {
		act(t, s, Action{Kind: ActPut, Key: fmt.Sprint("k", i), Value: []byte("v"), Deadline: int64(10 * (i + 1))})
	}
	due := func(now int64) []string {
		keys, err := s.Due(now)
		require.NoError(t, err)
		return keys
	}
	require.Empty(t, due(9))
	require.Equal(t, []string{"k0", "k1", "k2"}, due(30))
	apply(t, s, put("k1", "without a deadline"))
	act(t, s, Action{Kind: ActDeadline, Key: "k2", Deadline: 1000})
	d, err := s.Deadline("k2")
	require.NoError(t, err)
	require.EqualValues(t, 1000, d)
	// The leader looked before.
	r := apply(t, s, Command{Op: OpExpire, Expire: &Expire{Now: 30, Keys: []string{"k0", "k1", "k2", "none"}}}.Encode())[0]
	require.NoError(t, r.Err)
	require.EqualValues(t, 1, r.Expired)
	_, err = s.Deadline("k0")
	require.ErrorIs(t, err, ErrNotFound)
	d, err = s.Deadline("k1")
	require.NoError(t, err)
	require.Zero(t, d)
	require.Equal(t, []string{"k3", "k4", "k2"}, due(1<<40))
	require.EqualValues(t, 3, s.Deadlines())
}

func TestCommandsAboveTheLevelChangeNothing(t *testing.T) {
	_, s := openMem(t)
	before := snapshotBytes(t, s)
	for _, c := range [][]byte{
		txn(nil, []Action{{Kind: ActPut, Key: "k"}}),
		Command{Op: OpExpire, Expire: &Expire{Now: 5, Keys: []string{"k"}}}.Encode(),
		Command{Op: OpTxn, Txn: &Txn{}, Session: 1, Sequence: 1}.Encode(),
	} {
		require.ErrorIs(t, apply(t, s, c)[0].Err, errLevel)
	}
	// Magic, version, index, position; then nothing: as an older replica has it.
	after := snapshotBytes(t, s)
	require.Equal(t, len(before), len(after))
	require.Equal(t, byte(oldestFormat), after[len(snapshotMagic)])
	require.Zero(t, s.Level())
}

func TestFormatRisesWithTheLevel(t *testing.T) {
	fs := vfs.NewCrashableMem()
	open := func() (*DB, *Store, error) {
		db, err := Open("state", testIdentity, Options{FS: fs})
		require.NoError(t, err)
		s, err := db.Group(1)
		if err != nil {
			require.NoError(t, db.Close())
		}
		return db, s, err
	}
	db, s, err := open()
	require.NoError(t, err)
	require.EqualValues(t, oldestFormat, db.format.Load())
	apply(t, s, put("k", "v"))
	require.NoError(t, db.Close())

	db, s, err = open()
	require.NoError(t, err)
	require.EqualValues(t, oldestFormat, db.format.Load())
	apply(t, s, raiseLevel())
	require.NoError(t, db.Upgrade(1))
	crashed, err := Open("state", testIdentity, Options{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	require.NoError(t, err)
	require.EqualValues(t, formatOf(1), crashed.format.Load(), "an upgrade is durable, whoever raised the format")
	require.NoError(t, crashed.Close())
	level1 := snapshotBytes(t, s)
	require.Equal(t, formatOf(1), level1[len(snapshotMagic)])
	require.NoError(t, db.Close())

	db, s, err = open()
	require.NoError(t, err)
	require.EqualValues(t, formatOf(1), db.format.Load())
	require.Equal(t, 1, s.Level())
	// As if an older kvdemo had applied the level.
	require.NoError(t, inner(t, db).Set(keyIdentity, db.id.encode(oldestFormat), pebble.NoSync))
	require.NoError(t, db.Close())
	_, _, err = open()
	require.ErrorIs(t, err, state.ErrVersion)
	require.ErrorContains(t, err, "remove this node from the cluster, and add another")

	other, fresh := openMem(t)
	require.NoError(t, restore(fresh, 2, "", level1))
	require.EqualValues(t, formatOf(1), other.format.Load())
	third, _ := openMem(t)
	for level := 1; level <= NewestLevel; level++ {
		require.NoError(t, third.Upgrade(level))
		require.NoError(t, third.Upgrade(1), "twice does no harm, and no format goes down")
		require.EqualValues(t, formatOf(level), third.format.Load())
	}
	require.EqualValues(t, formatVersion, formatOf(NewestLevel))
	bad := bytes.Clone(level1)
	bad[len(snapshotMagic)] = formatVersion + 1
	require.ErrorContains(t, restore(fresh, 2, "", bad), "format version 6, want 2 to 5")
}

func TestBadTransactionsAreRefused(t *testing.T) {
	many := make([]Action, MaxTxnItems+1)
	for i := range many {
		many[i] = Action{Kind: ActGet, Key: "k"}
	}
	for want, x := range map[string]Txn{
		"key: it is empty":                 {Compares: []Compare{{Kind: CompareAbsent}}},
		"key: 5000 bytes":                  {Then: []Action{{Kind: ActGet, Key: string(pattern(5000, 1))}}},
		"flags 0x3":                        {Then: []Action{{Kind: ActPut, Key: "k", Flags: IfAbsent | IfPresent}}},
		"flags 0x1":                        {Then: []Action{{Kind: ActGet, Key: "k", Flags: IfAbsent}}},
		"want one of them":                 {Then: []Action{{Kind: ActPut, Key: "k", Flags: KeepDeadline, Deadline: 5}}},
		"kind of action":                   {Else: []Action{{Kind: lastAct + 1, Key: "k"}}},
		"kind of comparison":               {Compares: []Compare{{Kind: 9, Key: "k"}}},
		"deadline":                         {Then: []Action{{Kind: ActDeadline, Key: "k", Deadline: -1}}},
		"4097 comparisons and actions":     {Then: many},
		"bytes, want at most 1056768; spl": {Then: []Action{{Kind: ActPut, Key: "k", Value: pattern(PartBytes, 1)}, {Kind: ActPut, Key: "l", Value: pattern(PartBytes, 1)}}},
	} {
		err := Command{Op: OpTxn, Txn: &x}.Check()
		require.ErrorIs(t, err, ErrInvalid, want)
		require.ErrorContains(t, err, want)
	}
	good := txn([]Compare{CompareValue("k", nil)}, []Action{{Kind: ActPut, Key: "a", Value: []byte("v")}, {Kind: ActGet, Key: "b"}}, Action{Kind: ActAdd, Key: "c", Delta: 1})
	keys, every := Written(good)
	require.False(t, every)
	require.Equal(t, []string{"a", "c"}, keys)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x40
		_, err := parse(bad)
		require.ErrorIs(t, err, ErrInvalid, "byte %d", i)
		_, err = parse(good[:i])
		require.ErrorIs(t, err, ErrInvalid, "%d bytes", i)
	}
}

func TestEventsAreRememberedUpToABound(t *testing.T) {
	s := openLevel1(t)
	first := s.Revision() + 1
	apply(t, s, put("a", "1"), del("a"), del("a"), txn(nil, []Action{{Kind: ActPut, Key: "b", Value: []byte("2"), Deadline: 5}, {Kind: ActDeadline, Key: "b", Deadline: 6}}))
	apply(t, s, Command{Op: OpExpire, Expire: &Expire{Now: 6, Keys: []string{"b"}}}.Encode())
	apply(t, s, uploadOf(UploadID{1}, "large", pattern(PartBytes+5, 1))...)
	events, next, more, err := s.Events(first, 3)
	require.NoError(t, err)
	require.Nil(t, more)
	require.Equal(t, []Event{
		{first, EventPut, "a", 1, []byte("1")}, {first + 1, EventDelete, "a", 0, nil},
		{first + 3, EventPut, "b", 1, []byte("2")}, {first + 3, EventDeadline, "b", 0, nil},
	}, events, "what a transaction did stays together")
	events, next, _, err = s.Events(next, 10)
	require.NoError(t, err)
	require.Equal(t, []Event{{first + 4, EventExpire, "b", 0, nil}, {s.Revision(), EventPut, "large", PartBytes + 5, nil}}, events)
	events, next, more, err = s.Events(next, 10)
	require.NoError(t, err)
	require.Empty(t, events)
	apply(t, s, put("c", "3"))
	<-more
	events, _, _, err = s.Events(next, 10)
	require.NoError(t, err)
	require.Len(t, events, 1)

	require.True(t, s.Changed("a", first-1))
	require.False(t, s.Changed("a", first+1))
	require.False(t, s.Changed("none", first-1))
	for range maxEvents {
		s.history.add([]change{{revision: s.history.last + 1, kind: EventDelete, key: []byte("x")}}, s.history.last+1)
	}
	_, _, _, err = s.Events(first, 10)
	require.ErrorIs(t, err, ErrCompacted)
	require.True(t, s.Changed("none", first-1), "what is forgotten counts as changed")
	require.ErrorContains(t, err, fmt.Sprintf("revision %d was asked for, the first that this node remembers is %d", first, s.history.first))
	events, _, _, err = s.Events(s.history.first, maxEvents+1)
	require.NoError(t, err)
	require.Len(t, events, maxEvents)
}

// FuzzTransaction: any bytes give an error or a command, and are applied without a panic.
func FuzzTransaction(f *testing.F) {
	f.Add(txn([]Compare{CompareValue("k", nil)}, []Action{{Kind: ActPut, Key: "a", Value: []byte("v")}}, Action{Kind: ActAdd, Key: "c", Delta: 1})[1:])
	f.Fuzz(func(t *testing.T, b []byte) {
		s := openLevel1(t)
		command := append([]byte{byte(OpTxn)}, b...)
		_, err := parse(command)
		r := apply(t, s, command)[0]
		require.Equal(t, err == nil, r.Err == nil)
	})
}

func TestFrozenGroupRefusesChanges(t *testing.T) {
	s := openLevel1(t)
	freeze := func(want, value string) {
		r := apply(t, s, Command{Op: OpSystem, Key: FreezeKey, Want: []byte(want), Value: []byte(value)}.Encode())[0]
		require.True(t, r.Swapped)
	}
	id := apply(t, s, put("k", "v"), Command{Op: OpOpenSession}.Encode())[1].Session
	freeze("", "me")
	inSession := Command{Op: OpPut, Key: "k", Value: []byte("w"), Session: id, Sequence: 1}.Encode()
	for _, c := range [][]byte{
		put("k", "w"), del("k"), txn(nil, []Action{{Kind: ActDelete, Key: "k"}}), inSession,
		Command{Op: OpExpire, Expire: &Expire{Keys: []string{"k"}}}.Encode(),
		Command{Op: OpFinish, Key: "k", Upload: UploadID{1}, Size: 5}.Encode(),
	} {
		r := apply(t, s, c)[0]
		require.ErrorIs(t, r.Err, ErrFrozen)
		require.Equal(t, "me", string(r.Value))
	}
	require.Equal(t, "v", string(readAll(t, s, "k")))
	freeze("me", "")
	require.False(t, apply(t, s, inSession)[0].Repeated)
	require.Equal(t, "w", string(readAll(t, s, "k")))
}

// A command of some kilobytes must not have every node read gigabytes of values.
func TestComparisonsByDigestAreBoundedInBytes(t *testing.T) {
	x := &Txn{Then: []Action{{Kind: ActPut, Key: "k"}}}
	check := func() error { return Command{Op: OpTxn, Txn: x}.Check() }
	for range maxTxnDigestBytes / MaxInlineBytes {
		x.Compares = append(x.Compares, Compare{Kind: CompareDigest, Key: "k"})
	}
	require.NoError(t, check())
	x.Compares = append(x.Compares, Compare{Kind: ComparePresent, Key: "k"})
	require.NoError(t, check())
	x.Compares = append(x.Compares, CompareValue("k", nil))
	require.ErrorIs(t, check(), ErrInvalid)
	require.ErrorContains(t, check(), "read up to 67108865 bytes of values, want at most 67108864")

	_, s := openMem(t)
	apply(t, s, put("k", "value"))
	c, err := s.Condition("k")
	require.NoError(t, err)
	require.Equal(t, CompareValue("k", []byte("value")), c)
	x.Compares = nil
	for range MaxTxnItems - 1 {
		x.Compares = append(x.Compares, c)
	}
	require.NoError(t, check(), "small values")
}

// A transaction whose comparison does not hold reads no further values for its comparisons.
func TestComparisonThatDoesNotHoldIsTheLastOne(t *testing.T) {
	db, s := openMem(t)
	apply(t, s, raiseLevel(), put("a", "1"), put("b", "2"))
	require.NoError(t, inner(t, db).Set(s.space().key(secData, []byte("b")), []byte("damage"), pebble.NoSync))
	r := apply(t, s, txn([]Compare{CompareValue("a", nil), CompareValue("b", []byte("2"))}, nil, Action{Kind: ActPut, Key: "c"}))[0]
	require.NoError(t, r.Err)
	require.False(t, r.Txn.Succeeded)
}
