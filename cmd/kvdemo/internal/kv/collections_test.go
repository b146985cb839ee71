// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// openLevel opens an empty group of a level.
func openLevel(t require.TestingT, level int) *Store {
	_, s := openMem(t)
	require.True(t, apply(t, s, raiseTo(level))[0].Swapped)
	return s
}

// list returns the items as one list.
func list(items ...string) (b []byte) {
	for _, item := range items {
		b = AppendItem(b, item)
	}
	return b
}

// itemsOf returns the items of a list.
func itemsOf(t require.TestingT, b []byte) (items []string) {
	l := ItemsOf(b)
	for l.Next() {
		items = append(items, string(l.Item()))
	}
	require.NoError(t, l.Err())
	return items
}

// scoredMember is a member of a sorted set, as tests have it.
type scoredMember struct {
	score  float64
	member string
}

func scoredList(members ...scoredMember) (b []byte) {
	for _, m := range members {
		b = AppendScored(b, m.score, []byte(m.member))
	}
	return b
}

func membersOf(t require.TestingT, b []byte) (members []scoredMember) {
	l := ScoredOf(b)
	for l.Next() {
		members = append(members, scoredMember{l.Score(), string(l.Member())})
	}
	require.NoError(t, l.Err())
	return members
}

var (
	modelFields = []string{"", "f", "g", "\xff"}
	modelScores = []float64{math.Inf(-1), -2.5, 0, math.Copysign(0, -1), 1, 1e300, math.Inf(1)}
)

// drawCollection draws what an action on a hash or a sorted set has.
func (a *Action) drawCollection(t *rapid.T) {
	some := rapid.SliceOfN(rapid.SampledFrom(modelFields), 1, 3).Draw(t, "some")
	switch a.Kind {
	case ActHashSet:
		for _, field := range some {
			a.Value = append(a.Value, list(field, rapid.SampledFrom([]string{"", "1", "22"}).Draw(t, "value"))...)
		}
		a.Flags = rapid.SampledFrom([]ActionFlags{0, IfAbsent}).Draw(t, "flags")
	case ActHashRemove, ActSortedRemove:
		a.Value = list(some...)
	case ActSortedAdd:
		for _, member := range some {
			a.Value = append(a.Value, scoredList(scoredMember{rapid.SampledFrom(modelScores).Draw(t, "score"), member})...)
		}
		a.Flags = rapid.SampledFrom([]ActionFlags{0, 0, IfAbsent, IfPresent, IfGreater, IfLess | CountChanged, IfPresent | IfGreater, CountChanged}).Draw(t, "flags")
	case ActSortedScore:
		a.Value = []byte(some[0])
	case ActSortedRange:
		a.Value = Range{
			Min: rapid.SampledFrom(modelScores).Draw(t, "min"), Max: rapid.SampledFrom(modelScores).Draw(t, "max"),
			MinOpen: rapid.Bool().Draw(t, "above"), MaxOpen: rapid.Bool().Draw(t, "below"),
			Offset: rapid.Int64Range(0, 2).Draw(t, "offset"), Count: rapid.Int64Range(-1, 3).Draw(t, "count"),
		}.Encode()
	}
}

// setDeadline is ActDeadline for a key that there is.
func (m txnModel) setDeadline(a Action, old entry) TxnCode {
	forever := int64(math.MaxInt64)
	now, then := cmp.Or(old.deadline, forever), a.Deadline
	if a.Flags&IfAbsent != 0 && now != forever || a.Flags&IfPresent != 0 && now == forever ||
		a.Flags&IfGreater != 0 && then <= now || a.Flags&IfLess != 0 && then >= now {
		return TxnSkipped
	}
	if a.Flags&RemoveNow != 0 {
		delete(m, a.Key)
	} else {
		old.deadline = then
		m[a.Key] = old
	}
	return TxnDone
}

// put keeps a list under a key, unless it is empty.
func (m txnModel) put(key string, kind byte, value []byte) {
	if len(value) == 0 {
		delete(m, key)
		return
	}
	m[key] = entry{string(value), m[key].deadline, kind}
}

// actHash does an action on a hash.
func (m txnModel) actHash(a Action) (r ActionResult) {
	old, ok := m[a.Key]
	r.Existed = ok
	if ok && old.kind != kindHash {
		r.Code = TxnWrongType
		return r
	}
	have := itemsOf(noTest{}, []byte(old.value))
	find := func(field string) int {
		for i := 0; i < len(have); i += 2 {
			if have[i] == field {
				return i
			}
		}
		return -1
	}
	args := itemsOf(noTest{}, a.Value)
	switch a.Kind {
	case ActHash:
		r.Value = bytesOrNil(old.value)
		return r
	case ActHashSet:
		for i := 0; i < len(args); i += 2 {
			at := find(args[i])
			switch {
			case at < 0:
				have = append(have, args[i], args[i+1])
				r.Number++
			case a.Flags&IfAbsent == 0:
				have[at+1] = args[i+1]
			}
		}
	default:
		for _, field := range args {
			if at := find(field); at >= 0 {
				have = slices.Delete(have, at, at+2)
				r.Number++
			}
		}
	}
	m.put(a.Key, kindHash, list(have...))
	return r
}

// actSorted does an action on a sorted set.
func (m txnModel) actSorted(a Action) (r ActionResult) {
	old, ok := m[a.Key]
	r.Existed = ok
	if ok && old.kind != kindSorted {
		r.Code = TxnWrongType
		return r
	}
	have := membersOf(noTest{}, []byte(old.value))
	at := func(member string) int {
		return slices.IndexFunc(have, func(s scoredMember) bool { return s.member == member })
	}
	switch a.Kind {
	case ActSortedCount:
		r.Number = int64(len(have))
		return r
	case ActSortedScore:
		if i := at(string(a.Value)); i >= 0 {
			r.Value = scoredList(have[i])
		}
		return r
	case ActSortedRange:
		r.Value = modelRange(have, a.Value)
		return r
	case ActSortedAdd:
		for _, s := range membersOf(noTest{}, a.Value) {
			i := at(s.member)
			switch {
			case i < 0:
				if a.Flags&IfPresent == 0 {
					have = append(have, s)
					r.Number++
				}
			case a.Flags&IfAbsent != 0, s.score == have[i].score, a.Flags&IfGreater != 0 && s.score < have[i].score, a.Flags&IfLess != 0 && s.score > have[i].score:
			default:
				have[i].score = s.score
				if a.Flags&CountChanged != 0 {
					r.Number++
				}
			}
		}
	default:
		for _, member := range itemsOf(noTest{}, a.Value) {
			if i := at(member); i >= 0 {
				have = slices.Delete(have, i, i+1)
				r.Number++
			}
		}
	}
	slices.SortFunc(have, func(a, b scoredMember) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.member, b.member))
	})
	m.put(a.Key, kindSorted, scoredList(have...))
	return r
}

func modelRange(have []scoredMember, b []byte) (out []byte) {
	q, err := parseRange(b)
	if err != nil {
		panic(err)
	}
	var in []scoredMember
	for _, s := range have {
		if (s.score > q.Min || !q.MinOpen && s.score == q.Min) && (s.score < q.Max || !q.MaxOpen && s.score == q.Max) {
			in = append(in, s)
		}
	}
	in = in[min(int(q.Offset), len(in)):]
	if q.Count >= 0 {
		in = in[:min(int(q.Count), len(in))]
	}
	return scoredList(in...)
}

// noTest fails by a panic, where no test is at hand.
type noTest struct{}

func (noTest) Errorf(format string, _ ...any) { panic(format) }
func (noTest) FailNow()                       { panic("failed") }

// What a hash and a sorted set answer alone, they answer between other actions of a
// transaction, and to those who only look.
func TestReadersSeeWhatTransactionsSee(t *testing.T) {
	s := openLevel(t, 2)
	act(t, s, Action{Kind: ActHashSet, Key: "h", Value: list("f", "1", "g", "2")})
	act(t, s, Action{Kind: ActSortedAdd, Key: "z", Value: scoredList(scoredMember{2, "b"}, scoredMember{1, "a"}, scoredMember{3, "c"})})
	act(t, s, Action{Kind: ActPut, Key: "s", Value: []byte("v")})
	var reads []Action
	for _, key := range []string{"h", "z", "s", "none"} {
		for _, kind := range []ActionKind{ActGet, ActHas, ActType, ActHash, ActSortedCount} {
			reads = append(reads, Action{Kind: kind, Key: key})
		}
		reads = append(reads, Action{Kind: ActSortedScore, Key: key, Value: []byte("b")},
			Action{Kind: ActSortedRange, Key: key, Value: Range{Min: 1, Max: 3, MinOpen: true, Offset: 0, Count: 1}.Encode()},
			Action{Kind: ActSortedRange, Key: key, Value: Range{Min: math.Inf(-1), Max: math.Inf(1), Offset: 1, Count: -1}.Encode()})
	}
	looked, err := s.Look(reads)
	require.NoError(t, err)
	done := apply(t, s, txn(nil, reads))[0]
	require.NoError(t, done.Err)
	for i := range looked {
		if len(looked[i].Value) == 0 {
			looked[i].Value = nil
		}
		if len(done.Txn.Actions[i].Value) == 0 {
			done.Txn.Actions[i].Value = nil
		}
	}
	require.Equal(t, done.Txn.Actions, looked)
	at := 2*8 - 2 - 1 + 1
	require.Equal(t, []scoredMember{{2, "b"}}, membersOf(t, looked[at].Value))
	require.Equal(t, []scoredMember{{2, "b"}, {3, "c"}}, membersOf(t, looked[at+1].Value))
	require.Equal(t, TxnWrongType, looked[0].Code)
	_, err = s.Look([]Action{{Kind: ActHashSet, Key: "h", Value: list("f", "1")}})
	require.ErrorIs(t, err, ErrInvalid)
}

func TestCollectionsHaveBounds(t *testing.T) {
	s := openLevel(t, 2)
	half := string(pattern(MaxInlineBytes/2, 1))
	require.Equal(t, TxnDone, act(t, s, Action{Kind: ActHashSet, Key: "h", Value: list("a", half)}).Code)
	r := act(t, s, Action{Kind: ActHashSet, Key: "h", Value: list("b", half)})
	require.Equal(t, TxnFull, r.Code)
	require.Zero(t, r.Number)
	require.Equal(t, []string{"a", half}, itemsOf(t, act(t, s, Action{Kind: ActHash, Key: "h"}).Value))

	// A set at its bound, as if it had been filled.
	act(t, s, Action{Kind: ActSortedAdd, Key: "z", Value: scoredList(scoredMember{1, "a"})})
	stored, err := present{inner(t, s.db)}.get(s.space().key(secData, []byte("z")))
	require.NoError(t, err)
	found, err := openRecord([]byte("z"), stored)
	require.NoError(t, err)
	found.sorted.bytes = MaxSortedBytes - 5
	require.NoError(t, inner(t, s.db).Set(s.space().key(secData, []byte("z")), found.sorted.record([]byte("z")), pebble.NoSync))
	require.Equal(t, TxnFull, act(t, s, Action{Kind: ActSortedAdd, Key: "z", Value: scoredList(scoredMember{1, "b"})}).Code)

	for want, a := range map[string]Action{
		"0 items, want 1 or more, in steps of 2": {Kind: ActHashSet, Key: "k"},
		"1 items, want 1 or more, in steps of 2": {Kind: ActHashSet, Key: "k", Value: list("f")},
		"in steps of 1":                          {Kind: ActHashRemove, Key: "k"},
		"cut off at":                             {Kind: ActHashRemove, Key: "k", Value: []byte{1, 'a', 2, 'b'}},
		"list of members: it is empty":           {Kind: ActSortedAdd, Key: "k"},
		"cut off at \"score\"":                   {Kind: ActSortedAdd, Key: "k", Value: scoredList(scoredMember{math.NaN(), "m"})},
		"member of a sorted set: 4097 bytes":     {Kind: ActSortedAdd, Key: "k", Value: scoredList(scoredMember{1, strings.Repeat("m", MaxMemberBytes+1)})},
		"the score -0, want 0":                   {Kind: ActSortedAdd, Key: "k", Value: negativeZero("m")},
		"want at most 4096":                      {Kind: ActSortedScore, Key: "k", Value: pattern(MaxMemberBytes+1, 1)},
		"range of a sorted set":                  {Kind: ActSortedRange, Key: "k", Value: Range{Min: math.NaN()}.Encode()},
		"conditions that exclude each other":     {Kind: ActSortedAdd, Key: "k", Flags: IfAbsent | IfGreater, Value: scoredList(scoredMember{1, "m"})},
		"flags 0x4":                              {Kind: ActHashSet, Key: "k", Flags: KeepDeadline, Value: list("f", "v")},
	} {
		err := Command{Op: OpTxn, Txn: &Txn{Then: []Action{a}}}.Check()
		require.ErrorIs(t, err, ErrInvalid, want)
		require.ErrorContains(t, err, want)
	}
}

// A range of a transaction sees what earlier actions did, and is refused as a whole if the
// members find no room.
func TestRangeOfManyMembers(t *testing.T) {
	s := openLevel(t, 2)
	wide := strings.Repeat("m", MaxMemberBytes-1)
	for i := range 9 {
		var members []scoredMember
		for j := range 128 {
			members = append(members, scoredMember{float64(i), string(rune(j)) + wide[i+2:]})
		}
		require.EqualValues(t, 128, act(t, s, Action{Kind: ActSortedAdd, Key: "z", Value: scoredList(members...)}).Number)
	}
	all := Range{Min: math.Inf(-1), Max: math.Inf(1), Count: -1}
	r := act(t, s, Action{Kind: ActSortedRange, Key: "z", Value: all.Encode()})
	require.Equal(t, TxnReplyFull, r.Code)
	require.Nil(t, r.Value)
	some := all
	some.Count = 900
	require.Len(t, membersOf(t, act(t, s, Action{Kind: ActSortedRange, Key: "z", Value: some.Encode()}).Value), 900)
	some.Offset = 1100
	require.Len(t, membersOf(t, act(t, s, Action{Kind: ActSortedRange, Key: "z", Value: some.Encode()}).Value), 9*128-1100)
	require.EqualValues(t, 9*128, act(t, s, Action{Kind: ActSortedCount, Key: "z"}).Number)
	beside := apply(t, s, txn(nil, []Action{{Kind: ActSortedAdd, Key: "another", Value: scoredList(scoredMember{1, "a"})}}),
		txn(nil, []Action{{Kind: ActSortedRange, Key: "z", Value: some.Encode()}}))
	require.Equal(t, act(t, s, Action{Kind: ActSortedRange, Key: "z", Value: some.Encode()}), beside[1].Txn.Actions[0], "other replicas may have the two in other batches")
	apply(t, s, del("z"), del("another"))
	requireNoOrphans(t, s)
}

// negativeZero is a member with the score -0, as a client over gRPC may send it.
func negativeZero(member string) []byte {
	return appendBytes(binary.BigEndian.AppendUint64(nil, ordered(math.Copysign(0, -1))), member)
}

// The score -0, which a log may have, comes before 0, in whatever batches it was written and read.
func TestRangesDoNotDependOnBatches(t *testing.T) {
	commands := [][]byte{txn(nil, []Action{{Kind: ActSortedAdd, Key: "z", Value: append(scoredList(scoredMember{0, "a"}, scoredMember{1, "c"}), negativeZero("b")...)}})}
	for _, q := range []Range{{Min: -1, Max: 1, Count: -1}, {Count: -1}, {Min: -1, Max: 1, Count: 1}, {Min: -1, MaxOpen: true, Offset: 1, Count: 2}, {Min: -1, Max: 1, Offset: 1}} {
		commands = append(commands, txn(nil, []Action{{Kind: ActSortedRange, Key: "z", Value: q.Encode()}}))
	}
	together := apply(t, openLevel(t, 2), commands...)
	s := openLevel(t, 2)
	for i, c := range commands {
		require.Equal(t, apply(t, s, c)[0].Txn.Actions, together[i].Txn.Actions, "command %d", i)
	}
	require.Equal(t, "b", membersOf(t, together[1].Txn.Actions[0].Value)[0].member)
}

// A comparison holds for as long as the hash or the sorted set is as it was.
func TestConditionsNoticeEachChange(t *testing.T) {
	s := openLevel(t, 2)
	changes := []Action{
		{Kind: ActHashSet, Key: "k", Value: list("f", "1")},
		{Kind: ActHashSet, Key: "k", Value: list("f", "2")},
		{Kind: ActHashRemove, Key: "k", Value: list("f")},
		{Kind: ActSortedAdd, Key: "k", Value: scoredList(scoredMember{1, "m"})},
		{Kind: ActSortedAdd, Key: "k", Value: scoredList(scoredMember{2, "m"})},
		{Kind: ActPut, Key: "k", Value: list("f", "1")},
		{Kind: ActDelete, Key: "k"},
	}
	for i, change := range changes {
		c, err := s.Condition("k")
		require.NoError(t, err)
		held := apply(t, s, txn([]Compare{c}, nil))[0]
		require.True(t, held.Txn.Succeeded, "change %d", i)
		act(t, s, change)
		require.False(t, apply(t, s, txn([]Compare{c}, nil))[0].Txn.Succeeded, "change %d", i)
	}
}

// Replicas of level 1 refuse the commands of level 2, as an older kvdemo does.
func TestLevel1RefusesCollections(t *testing.T) {
	s := openLevel(t, 1)
	for _, a := range []Action{
		{Kind: ActHashSet, Key: "k", Value: list("f", "1")}, {Kind: ActType, Key: "k"},
		{Kind: ActDelete, Key: "k", Flags: ReturnOld}, {Kind: ActDeadline, Key: "k", Deadline: 1, Flags: IfGreater},
	} {
		x := &Txn{Else: []Action{a}}
		require.Equal(t, 2, x.Level())
		require.ErrorIs(t, apply(t, s, Command{Op: OpTxn, Txn: x}.Encode())[0].Err, errLevel)
	}
	require.Equal(t, 1, (&Txn{Then: []Action{{Kind: ActPut, Key: "k", Flags: ReturnOld}}}).Level())
}

// Bytes that changed on disk are found by whoever reads them.
func TestDamagedCollectionsAreFound(t *testing.T) {
	for name, sec := range map[string]section{"h": secData, "z": secData, "member": secMember, "score": secScore} {
		s := openLevel(t, 2)
		act(t, s, Action{Kind: ActHashSet, Key: "h", Value: list("f", "1")})
		act(t, s, Action{Kind: ActSortedAdd, Key: "z", Value: scoredList(scoredMember{1, "m"})})
		require.NoError(t, scan(present{inner(t, s.db)}, s.space(), sec, func(key, value []byte) error {
			if sec == secData && string(key) != name {
				return nil
			}
			bad := bytes.Clone(value)
			bad[len(bad)-1] ^= 1
			return inner(t, s.db).Set(s.space().key(sec, key), bad, pebble.NoSync)
		}))
		_, listed := s.List(Query{Digests: true})
		_, looked := s.Look([]Action{{Kind: ActHash, Key: "h"}, {Kind: ActSortedScore, Key: "z", Value: []byte("m")}})
		if sec == secScore || sec == secData {
			require.ErrorIs(t, listed, ErrDamaged, name)
		}
		if sec != secScore {
			require.ErrorIs(t, looked, ErrDamaged, name)
		}
	}
}

// Scores keep their order as bytes, and come back as they were.
func FuzzOrderedScores(f *testing.F) {
	f.Add(math.Float64bits(1), math.Float64bits(-1))
	f.Fuzz(func(t *testing.T, x, y uint64) {
		a, b := math.Float64frombits(x), math.Float64frombits(y)
		require.Equal(t, x, math.Float64bits(disordered(ordered(a))))
		if a < b && !math.IsNaN(a) && !math.IsNaN(b) {
			require.Less(t, ordered(a), ordered(b))
		}
	})
}
