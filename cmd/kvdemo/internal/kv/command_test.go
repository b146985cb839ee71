// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode/session"
)

// The bytes of commands are in logs. A change of them is a new version.
func TestCommandBytes(t *testing.T) {
	id := UploadID{1, 2, 3}
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{Op: OpPut, Key: "k", Value: []byte("v")}, "01 01 6b 00 108a378f 76"},
		{Command{Op: OpPut, Key: "k", Value: []byte("v"), Session: 3, Sequence: 300, Acknowledged: 2}, "81 03 ac02 02 01 6b 00 108a378f 76"},
		{Command{Op: OpDelete, Key: "k"}, "02 6b"},
		{Command{Op: OpOpenSession}, "03"},
		{Command{Op: opEndSession, Session: 3}, "04 03"},
		{Command{Op: OpPart, Upload: id, Size: 1, Value: []byte("v")}, "05 01020300000000000000000000000000 01 00 a7a4443d 76"},
		{Command{Op: OpFinish, Upload: id, Size: 1, Key: "k"}, "06 01020300000000000000000000000000 01" + strings.Repeat("00", 32) + "6b"},
		{Command{Op: opAbort, Upload: id}, "07 01020300000000000000000000000000"},
		{Command{Op: OpSystem, Key: "k", Want: []byte("w"), Value: []byte("v")}, "08 01 6b 01 77 76"},
	} {
		require.NoError(t, c.command.Check())
		require.Equal(t, strings.ReplaceAll(c.want, " ", ""), hex.EncodeToString(c.command.Encode()), "%v", c.command.Op)
	}
}

func TestCheck(t *testing.T) {
	full := make([]byte, PartBytes)
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{}, "op 0, want 1 to 10"},
		{Command{Op: OpPut}, "want 1 to 4096 bytes"},
		{Command{Op: OpPut, Key: strings.Repeat("k", MaxKeyBytes+1)}, "4097 bytes, want 1 to 4096"},
		{Command{Op: OpDelete, Key: "\xff"}, "not UTF-8"},
		{Command{Op: OpPut, Key: "k", Value: make([]byte, MaxInlineBytes+1)}, "1048577 bytes of value, want at most 1048576; send a larger one in parts"},
		{Command{Op: OpPut, Key: "k", Session: 1}, "session 1, sequence 0, want 1 or more"},
		{Command{Op: OpOpenSession, Session: 1, Sequence: 1}, "op 131"},
		{Command{Op: opEndSession}, "session 0, want 1 or more"},
		{Command{Op: OpPart}, "size 0, want 1 to 67108864"},
		{Command{Op: OpPart, Size: MaxValueBytes + 1}, "size 67108865, want 1 to 67108864"},
		{Command{Op: OpPart, Size: PartBytes + 1, Part: 2}, "part 2, want 0 to 1"},
		{Command{Op: OpPart, Size: PartBytes + 1, Part: 1, Value: full}, "part 1 of 1048576 bytes, want 1"},
		{Command{Op: OpFinish, Size: 1}, "want 1 to 4096 bytes"},
		{Command{Op: OpSystem}, "0 bytes, want 1 to 256"},
		{Command{Op: OpSystem, Key: "k", Value: full}, "1048576 bytes, want at most 65536"},
	} {
		err := c.command.Check()
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
	require.NoError(t, CheckKey(strings.Repeat("k", MaxKeyBytes)))
	require.NoError(t, CheckValue(MaxValueBytes))
	require.ErrorContains(t, CheckValue(MaxValueBytes+1), "67108865 bytes, want at most 67108864 (64 MiB)")
	largest := Command{Op: OpPut, Key: strings.Repeat("k", MaxKeyBytes), Value: full, Session: 1 << 63, Sequence: 1 << 63, Acknowledged: 1 << 63}
	require.NoError(t, largest.Check())
	require.LessOrEqual(t, len(largest.Encode()), MaxCommandBytes)
}

// A command that changed on its way is refused.
func TestCommandDamage(t *testing.T) {
	_, s := openMem(t)
	good := put("key", "value")
	for i := 5; i < len(good); i++ { // from the checksum on
		b := []byte(string(good))
		b[i] ^= 1
		require.ErrorIs(t, apply(t, s, b)[0].Err, ErrInvalid, "byte %d", i)
	}
	require.NoError(t, apply(t, s, good)[0].Err)
}

// GroupOf says where keys are: a change of it loses them.
func TestGroupOf(t *testing.T) {
	require.EqualValues(t, 1, GroupOf("anything", 1))
	require.Equal(t, []uint64{1, 4, 6, 1}, []uint64{GroupOf("", 7), GroupOf("a", 7), GroupOf("greeting", 7), GroupOf("docs/license", 7)})
	var count [9]int
	for i := range 9000 {
		g := GroupOf("user/"+string(rune('a'+i%26))+strings.Repeat("x", i/26), 9)
		count[g-1]++
	}
	for g, n := range count {
		require.InDelta(t, 1000, n, 150, "group %d", g+1)
	}
}

// FuzzParse: any bytes give an error or a command that encodes to them.
func FuzzParse(f *testing.F) {
	f.Add(put("key", "value"))
	f.Add(del("key"))
	f.Add(Command{Op: OpSystem, Key: "k", Want: []byte("w"), Value: []byte("v")}.Encode())
	f.Add(Command{Op: OpPut, Key: "k", Session: 1, Sequence: 2, Acknowledged: 1}.Encode())
	for _, c := range uploadOf(UploadID{7}, "key", []byte("value")) {
		f.Add(c)
	}
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parse(b)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		c := Command{
			Op: p.op, Key: string(p.key), Value: p.value, Want: p.want, Upload: p.upload, Size: p.size, Part: p.part,
			Session: p.session, Sequence: p.sequence, Acknowledged: p.acknowledged,
		}
		copy(c.SHA256[:], p.sha256)
		again, err := parse(c.Encode())
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}

// A repeated command gets the result of the first time, also from a state that
// was restored or opened again; what came too late is refused.
func TestSessions(t *testing.T) {
	db, s := openMem(t)
	id := apply(t, s, Command{Op: OpOpenSession}.Encode())[0].Session
	require.EqualValues(t, 1, id)
	put := func(sequence uint64, value string) []byte {
		return Command{Op: OpPut, Key: "k", Value: []byte(value), Session: id, Sequence: sequence}.Encode()
	}
	remove := Command{Op: OpDelete, Key: "k", Session: id, Sequence: 3}.Encode()
	finish := func(sequence uint64) []byte {
		return Command{Op: OpFinish, Key: "k", Upload: UploadID{9}, Size: PartBytes + 1, Session: id, Sequence: sequence}.Encode()
	}
	parts := uploadOf(UploadID{9}, "k", pattern(PartBytes+1, 1))
	at := s.Revision()
	require.Equal(t, []Result{{Revision: at + 1}, {Repeated: true}}, apply(t, s, put(1, "one"), put(1, "one")))
	require.Equal(t, []Result{{Existed: true, Revision: at + 3}, {Existed: true, Repeated: true}}, apply(t, s, remove, remove))
	require.ErrorIs(t, apply(t, s, put(2, "two"))[0].Err, ErrOvertaken)
	require.ErrorIs(t, apply(t, s, finish(4))[0].Err, ErrNoUpload)
	apply(t, s, parts[1])
	require.Equal(t, []int{0}, apply(t, s, finish(5))[0].Missing)

	for _, s := range []*Store{s, restored(t, s)} {
		r := apply(t, s, remove, finish(4), finish(5))
		require.Equal(t, Result{Existed: true, Repeated: true}, r[0])
		require.ErrorIs(t, r[1].Err, ErrNoUpload)
		require.ErrorIs(t, r[2].Err, ErrParts)
		require.Equal(t, []int{0}, r[2].Missing)
		require.True(t, r[2].Repeated)
		_, _, err := s.Get("k")
		require.ErrorIs(t, err, ErrNotFound)
	}
	// A client that got a result says so, and the session forgets it.
	apply(t, s, Command{Op: OpPut, Key: "k", Session: id, Sequence: 6, Acknowledged: 5}.Encode())
	require.ErrorIs(t, apply(t, s, remove)[0].Err, ErrForgotten)
	end := Command{Op: opEndSession, Session: id}.Encode()
	require.Equal(t, []Result{{Existed: true}, {}}, apply(t, s, end, end))
	require.ErrorIs(t, apply(t, s, put(7, "x"))[0].Err, ErrExpired)
	require.Zero(t, s.Stats().Sessions)
	require.NoError(t, db.Flush())
	requireNoOrphans(t, s)
}

// restored returns another store with the state of s.
func restored(t *testing.T, s *Store) *Store {
	_, other := openMem(t)
	require.NoError(t, restore(other, s.Applied(), "", snapshotBytes(t, s)))
	return other
}

// kept never meets bytes that keep did not make; it must not panic all the same.
func TestKeptResults(t *testing.T) {
	for _, r := range []Result{{}, {Existed: true}, {Err: ErrNoUpload}, {Err: missing([]int{3, 63}), Missing: []int{3, 63}}, {Err: ErrInvalid}} {
		got := kept(r.keep())
		require.True(t, got.Repeated)
		require.Equal(t, r.Err == nil, got.Err == nil)
		require.Equal(t, errors.Is(r.Err, ErrParts), errors.Is(got.Err, ErrParts))
		require.Equal(t, errors.Is(r.Err, ErrNoUpload), errors.Is(got.Err, ErrNoUpload))
		require.Equal(t, r.Existed, got.Existed)
		require.Equal(t, r.Missing, got.Missing)
	}
	long := Result{Err: Command{Op: OpDelete, Key: strings.Repeat("\xff", 3000)}.Check()}
	require.Less(t, len(long.keep()), 300)
	require.ErrorIs(t, kept(long.keep()).Err, ErrInvalid)
	require.Error(t, kept(nil).Err)
	require.Error(t, kept([]byte{77}).Err)
}

// What expires does so at the same command at every replica, however its entries
// were put together, and whether or not it restored a snapshot in between.
func TestUploadsExpireAlike(t *testing.T) {
	_, one := openMem(t)
	_, many := openMem(t)
	begin := func(n int) []byte { return uploadOf(UploadID{byte(n), 1}, "k", pattern(20, byte(n)))[0] }
	var commands [][]byte
	for n := range maxUploads + 2 {
		commands = append(commands, begin(n))
	}
	results := apply(t, one, commands...)
	require.NoError(t, results[maxUploads-1].Err)
	require.ErrorIs(t, results[maxUploads].Err, ErrUploads)
	for i, c := range commands {
		require.Equal(t, results[i].Err == nil, apply(t, many, c)[0].Err == nil)
	}
	require.EqualValues(t, maxUploads, one.Stats().Uploads)
	require.EqualValues(t, 20*maxUploads, one.Stats().UploadBytes)
	idle := func(n int) {
		batch := make([][]byte, n)
		for i := range batch {
			batch[i] = []byte{0}
		}
		apply(t, one, batch...)
		apply(t, many, batch[:n/2]...)
		many = restored(t, many)
		apply(t, many, batch[n/2:]...)
	}
	alike := func() {
		require.Equal(t, one.tables.uploads.byID, many.tables.uploads.byID)
		require.Equal(t, one.tables.position, many.tables.position)
		requireNoOrphans(t, one)
		requireNoOrphans(t, many)
	}
	idle(uploadPatience - 2)
	both := func(c []byte) error {
		a, b := apply(t, one, c)[0].Err, apply(t, many, c)[0].Err
		require.Equal(t, a == nil, b == nil)
		return a
	}
	require.NoError(t, both(begin(100)), "the first has been idle for long enough to make room")
	_, err := one.Upload(UploadID{0, 1})
	require.ErrorIs(t, err, ErrNoUpload)
	alike()
	idle(uploadLifetime - uploadPatience - 100)
	require.EqualValues(t, maxUploads, one.Stats().Uploads)
	idle(150)
	require.EqualValues(t, 1, one.Stats().Uploads, "all but the one that began later")
	alike()
}

// Parts may come in any order and twice; other bytes or another size are
// refused; what is given up or overwritten leaves nothing behind.
func TestUploads(t *testing.T) {
	_, s := openMem(t)
	value := pattern(3*PartBytes+1, 1)
	c := uploadOf(UploadID{1}, "k", value)
	for _, i := range []int{2, 0, 2, 3} {
		require.NoError(t, apply(t, s, c[i])[0].Err)
	}
	u, err := s.Upload(UploadID{1})
	require.NoError(t, err)
	require.Equal(t, UploadState{Size: int64(len(value)), Missing: []int{1}}, u)
	other := uploadOf(UploadID{1}, "k", pattern(3*PartBytes+1, 2))
	require.ErrorIs(t, apply(t, s, other[0])[0].Err, ErrInvalid)
	shorter := uploadOf(UploadID{1}, "k", value[:PartBytes])
	require.ErrorContains(t, apply(t, s, shorter[0])[0].Err, "size 1048576, it began with 3145729")
	require.ErrorContains(t, apply(t, s, shorter[1])[0].Err, "size 1048576, it began with 3145729")
	r := apply(t, s, c[4], c[1], c[4], c[4])
	require.ErrorIs(t, r[0].Err, ErrParts)
	require.NoError(t, r[2].Err)
	require.ErrorIs(t, r[3].Err, ErrNoUpload, "without a session")
	require.Equal(t, value, readAll(t, s, "k"))
	require.EqualValues(t, 1, s.Stats().LargeValues)

	// The same id again is another upload; the value stays whole.
	apply(t, s, other[:3]...)
	require.Equal(t, value, readAll(t, s, "k"))
	require.True(t, apply(t, s, Command{Op: opAbort, Upload: UploadID{1}}.Encode())[0].Existed)
	require.Equal(t, value, readAll(t, s, "k"))
	require.Equal(t, value, readAll(t, restored(t, s), "k"))

	apply(t, s, del("k"))
	requireNoOrphans(t, s)
	apply(t, s, uploadOf(UploadID{2}, "k", value)...)
	apply(t, s, uploadOf(UploadID{3}, "k", value[:PartBytes+5])...)
	require.Equal(t, value[:PartBytes+5], readAll(t, s, "k"))
	apply(t, s, put("k", "small"))
	require.Zero(t, s.Stats().LargeValues)
	requireNoOrphans(t, s)
}

// The largest value: 64 parts.
func TestLargestValue(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB")
	}
	_, s := openMem(t)
	value := pattern(MaxValueBytes, 1)
	commands := uploadOf(UploadID{1}, "k", value)
	require.Len(t, commands, maxParts+1)
	for _, c := range commands {
		require.NoError(t, apply(t, s, c)[0].Err)
	}
	require.NoError(t, s.Flush())
	require.Equal(t, value, readAll(t, s, "k"))
}

func TestSystemKeys(t *testing.T) {
	_, s := openMem(t)
	swap := func(key, want, value string) Result {
		return apply(t, s, Command{Op: OpSystem, Key: key, Want: []byte(want), Value: []byte(value)}.Encode())[0]
	}
	require.Equal(t, Result{Swapped: true, Value: []byte("1")}, swap("a", "", "1"))
	<-s.SystemChanged()
	require.Equal(t, Result{Value: []byte("1")}, swap("a", "", "2"))
	select {
	case <-s.SystemChanged():
		t.Fatal("nothing changed")
	default:
	}
	require.Equal(t, Result{Swapped: true, Value: []byte("2")}, swap("a", "1", "2"))
	system, _, err := restored(t, s).System()
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"a": []byte("2")}, system)
	require.Equal(t, Result{Swapped: true}, swap("a", "2", ""))
	require.Equal(t, Result{Swapped: true}, swap("a", "", ""))
	for i := range 15 {
		require.NoError(t, swap(strings.Repeat("k", i+1), "", strings.Repeat("v", maxSystemValueBytes)).Err)
	}
	require.ErrorContains(t, swap("one too many", "", strings.Repeat("v", maxSystemValueBytes)).Err, "want at most 1048576")
	page, err := s.List(Query{})
	require.NoError(t, err)
	require.Empty(t, page.Items, "clients do not see them")
	requireNoOrphans(t, s)
	require.EqualValues(t, session.ID(0), s.Stats().Sessions)
}
