// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/storage"
)

// factsOf draws facts of a few nodes, so that they meet.
func factsOf(t *rapid.T, label string) Facts {
	f := noFacts()
	for id := range rapid.SliceOfN(rapid.Uint64Range(1, 4), 0, 4).Draw(t, label) {
		f.Addresses[uint64(id+1)] = Located{
			Address: fmt.Sprintf("10.0.0.%d:7", rapid.IntRange(1, 3).Draw(t, label+" address")),
			Version: rapid.Uint64Range(1, 3).Draw(t, label+" version"),
		}
	}
	if rapid.Bool().Draw(t, label+" gives up") {
		f.Lost[rapid.Uint64Range(1, 2).Draw(t, label+" group")] = map[uint64]uint64{
			rapid.Uint64Range(1, 3).Draw(t, label+" node"): rapid.Uint64Range(1, 3).Draw(t, label+" survivor"),
		}
	}
	if rapid.Bool().Draw(t, label+" removes") {
		f.Removed[rapid.Uint64Range(1, 2).Draw(t, label+" group")] = map[uint64]bool{
			rapid.Uint64Range(1, 3).Draw(t, label+" node"): rapid.Bool().Draw(t, label+" gone"),
		}
	}
	return f
}

// A newer version's book must not be removed, as a damaged one: it knows the members that were removed.
func TestBookOfANewerVersionIsNotDamaged(t *testing.T) {
	c := Config{Cluster: 7, Node: 1, Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	text := fmt.Sprintf(`{"format":%d,"cluster":7,"node":1}`, bookFormat+1)
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, FileName), fmt.Appendf(nil, "%s\n%08x\n", text, crc32.Checksum([]byte(text), castagnoli)), 0o600))
	_, err := Load(c)
	require.ErrorIs(t, err, storage.ErrVersion)
	require.NotErrorIs(t, err, ErrDamaged)
}

// Facts may come late, twice and in any order: books that have heard the same are equal.
func TestBooksAreEqualWhateverTheOrderOfFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Facts
		for i := range rapid.IntRange(1, 6).Draw(t, "facts") {
			all = append(all, factsOf(t, fmt.Sprint(i)))
		}
		one, other := noFacts(), noFacts()
		for _, f := range all {
			one.merge(f)
		}
		for _, i := range rapid.Permutation(indexes(len(all))).Draw(t, "order") {
			other.merge(all[i])
			other.merge(all[i])
		}
		require.Equal(t, one, other)
		changed, full := one.merge(other)
		require.False(t, changed || full, "nothing is new")
	})
}

func indexes(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func testBook(t *testing.T, dir string, peers map[uint64]string) *Book {
	b, err := Open(Config{Cluster: 7, Node: 1, Dir: dir, Peers: peers, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return b
}

// A fact that has no room is refused before it is replicated, and not forgotten afterwards.
func TestFullBookRefusesFacts(t *testing.T) {
	b := testBook(t, t.TempDir(), nil)
	all := noFacts()
	for id := range uint64(maxBookNodes - 1) {
		all.Addresses[id+2] = Located{Address: "10.0.0.9:7", Version: 1}
	}
	require.NoError(t, b.Takes(all))
	b.Learn(all)
	one := Facts{Addresses: map[uint64]Located{maxBookNodes + 1: {Address: "10.0.0.9:7", Version: 1}}}
	require.ErrorIs(t, b.Takes(one), invalid.Err)
	require.ErrorContains(t, b.Takes(one), "4095")
	require.NoError(t, b.Takes(Facts{Addresses: map[uint64]Located{2: {Address: "10.0.0.9:8", Version: 2}}}), "a known node moves")
	removed := map[uint64]bool{}
	for id := range uint64(maxBookRemoved) {
		removed[id+2] = true
	}
	b.Learn(Facts{Removed: map[uint64]map[uint64]bool{1: removed}})
	require.ErrorContains(t, b.Takes(Facts{Removed: map[uint64]map[uint64]bool{1: {maxBookRemoved + 2: false}}}), "65536")
}

// What an operator changes in Options.Peers between two starts is newer than what was
// replicated, and older than what is replicated later.
func TestChangedPeersAreNewerThanEarlierFacts(t *testing.T) {
	dir := t.TempDir()
	learn := func(b *Book, address string, version uint64) {
		b.Learn(Facts{Addresses: map[uint64]Located{2: {Address: address, Version: version}}})
		require.NoError(t, b.Save())
	}
	b := testBook(t, dir, map[uint64]string{2: "10.0.0.2:1"})
	learn(b, "10.0.0.2:2", 1)
	require.Equal(t, "10.0.0.2:2", b.Address(2), "replicated")
	require.Equal(t, "10.0.0.2:2", testBook(t, dir, map[uint64]string{2: "10.0.0.2:1"}).Address(2), "the options are as they were")
	asked, err := Load(Config{Cluster: 7, Node: 1, Dir: dir, Peers: map[uint64]string{2: "10.0.0.2:9"}})
	require.NoError(t, err)
	require.Equal(t, "10.0.0.2:9", asked.Address(2), "for one call of Recover or Inspect")
	require.Equal(t, "10.0.0.2:2", testBook(t, dir, map[uint64]string{2: "10.0.0.2:1"}).Address(2), "which the next start does not take for a change")
	require.Equal(t, "10.0.0.2:3", testBook(t, dir, map[uint64]string{2: "10.0.0.2:3"}).Address(2), "they have changed")
	b = testBook(t, dir, map[uint64]string{2: "10.0.0.2:3"})
	require.Equal(t, "10.0.0.2:3", b.Address(2), "and are as they were")
	learn(b, "10.0.0.2:4", 2)
	require.Equal(t, "10.0.0.2:4", b.Address(2), "replicated later")
	b.Learn(Facts{Addresses: map[uint64]Located{3: {Address: "10.0.0.3:1", Version: 1}}})
	require.NoError(t, b.Save())
	both := map[uint64]string{2: "10.0.0.2:3", 3: "10.0.0.3:2"}
	require.Equal(t, "10.0.0.3:2", testBook(t, dir, both).Address(3), "a node that has joined is named for the first time")
	require.Equal(t, "10.0.0.2:4", testBook(t, dir, both).Address(2))
}

// A usual start writes nothing: the disk may be full, and the node is to start all the same. What has changed since is written.
func TestBookIsNotWrittenByAStartThatChangesNothing(t *testing.T) {
	dir, peers := t.TempDir(), map[uint64]string{1: "10.0.0.1:1", 2: "10.0.0.2:1"}
	file := func() os.FileInfo { // a write puts another file in its place
		info, err := os.Stat(filepath.Join(dir, FileName))
		require.NoError(t, err)
		return info
	}
	testBook(t, dir, peers)
	first := file()
	b := testBook(t, dir, peers)
	require.True(t, os.SameFile(first, file()))
	b.Learn(Facts{Addresses: map[uint64]Located{2: {Address: "10.0.0.2:2", Version: 1}}})
	require.NoError(t, b.Save())
	learnt := file()
	require.False(t, os.SameFile(first, learnt))
	require.Equal(t, "10.0.0.2:2", testBook(t, dir, peers).Address(2))
	require.True(t, os.SameFile(learnt, file()))
	testBook(t, dir, map[uint64]string{1: "10.0.0.1:1"})
	require.False(t, os.SameFile(learnt, file()), "the next start has to know of this one's peers")
}

// A node sends its book while another's differs, and falls silent when they are equal; to a
// node that does not answer it sends less and less.
func TestNodesFallSilentWhenTheirBooksAreEqual(t *testing.T) {
	const interval = 50 * time.Millisecond
	a := &acquaintance{}
	now := time.Now()
	sent := 0
	for range 2000 { // 100 s
		now = now.Add(interval)
		if _, due := a.due(7, now, interval); due {
			sent++
		}
	}
	require.Greater(t, sent, 8)
	require.Less(t, sent, 20, "nobody answers")
	a.sum = 7
	_, due := a.due(7, now.Add(time.Hour), interval)
	require.False(t, due, "equal")
	_, due = a.due(8, now.Add(time.Hour), interval)
	require.True(t, due, "something is new")
	a.owed, a.sum = true, 8
	_, due = a.due(8, now.Add(2*time.Hour), interval)
	require.True(t, due, "an answer is owed")
	_, due = a.due(8, now.Add(3*time.Hour), interval)
	require.False(t, due)
}

// FuzzNote reads what another node may send.
func FuzzNote(f *testing.F) {
	good, err := json.Marshal(note{Sum: 3, Facts: &Facts{
		Addresses: map[uint64]Located{2: {Address: "10.0.0.2:7", Version: 4}}, Removed: map[uint64]map[uint64]bool{1: {3: true}},
	}})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"sum":1,"facts":{"addresses":null,"removed":{"1":null}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := readNote(data)
		if err != nil || n.Facts == nil {
			return
		}
		book := noFacts()
		book.merge(*n.Facts)
		require.NoError(t, book.check())
		changed, full := book.merge(*n.Facts)
		require.False(t, changed || full)
		command, err := book.Command()
		require.NoError(t, err)
		again, err := Decode(command)
		require.NoError(t, err)
		changed, full = book.merge(again)
		require.False(t, changed || full)
	})
}

// A member that lies about versions, or about more nodes than there can be, spoils its own facts at
// most: the file can be read again.
func TestBookIsReadAgainWhateverOthersSay(t *testing.T) {
	dir := t.TempDir()
	b := testBook(t, dir, nil)
	lies := noFacts()
	for id := range uint64(maxBookNodes) {
		lies.Addresses[id+2] = Located{Address: "10.0.0.9:7", Version: maxBookVersion}
	}
	lies.Addresses[1] = Located{Address: "10.0.0.9:7", Version: maxBookVersion}
	for group := range uint64(3) {
		removed := map[uint64]bool{}
		for id := range uint64(maxBookRemoved / 2) {
			removed[id+2] = true
		}
		b.Learn(Facts{Addresses: lies.Addresses, Removed: map[uint64]map[uint64]bool{group + 1: removed}})
	}
	fact, _ := b.assert("10.0.0.1:7")
	require.Equal(t, "10.0.0.1:7", fact.Address)
	b.setLogged(fact.Version)
	require.NoError(t, b.Save())
	require.NoError(t, b.facts.check())
	require.Equal(t, "10.0.0.1:7", testBook(t, dir, nil).Address(1))
}

// While the disk does not answer, everything but the file goes on.
func TestBookIsUsableWhileItsFileIsWritten(t *testing.T) {
	dir := t.TempDir()
	b := testBook(t, dir, nil)
	b.file.Lock() // as a write that hangs
	b.Learn(Facts{Addresses: map[uint64]Located{4: {Address: "10.0.0.4:7", Version: 1}}})
	b.TrySave()
	require.Equal(t, "10.0.0.4:7", b.All()[4])
	b.file.Unlock()
	b.TrySave()
	require.Equal(t, "10.0.0.4:7", testBook(t, dir, nil).Address(4))
}

// lonely is a node without groups, which nobody answers.
type lonely struct{}

func (lonely) Send([]wire.Message)                           {}
func (lonely) Groups() []uint64                              { return nil }
func (lonely) Propose(context.Context, uint64, []byte) error { return nil }

// A node is dialled at the address that the node itself has named, for a few notes. If nobody answers
// there, because the note was an old one, the node is dialled at the address in the book again.
func TestHintOfAnAddressDoesNotLast(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var dialled []string
		b := testBook(t, dir, map[uint64]string{1: "127.0.0.1:7", 2: "127.0.0.1:9"})
		b.SetDial(func(_ uint64, address string) { dialled = append(dialled, address) })
		k := NewKeeper(b, lonely{}, "127.0.0.1:7", time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { k.Run(ctx, func() {}); close(done) }()
		b.Learn(Facts{Addresses: map[uint64]Located{2: {Address: "127.0.0.1:10", Version: 5}}})
		old, err := json.Marshal(note{Sum: 3, Facts: &Facts{Addresses: map[uint64]Located{2: {Address: "127.0.0.1:11", Version: 4}}}})
		require.NoError(t, err)
		k.Receive(wire.Message{Group: NoteGroup, From: 2, To: 1, Body: wire.Note{Data: old}})
		synctest.Wait()
		require.Equal(t, []string{"127.0.0.1:10", "127.0.0.1:11"}, dialled)
		require.Equal(t, "127.0.0.1:10", b.Address(2), "the fact stays")
		time.Sleep(time.Minute)
		cancel()
		<-done
		require.Equal(t, []string{"127.0.0.1:10", "127.0.0.1:11", "127.0.0.1:10"}, dialled)
	})
}

// A gateway asks for the book, and has nothing to say in it.
func TestNotesOfGatewaysSayNothing(t *testing.T) {
	b := testBook(t, t.TempDir(), map[uint64]string{1: "127.0.0.1:7", 2: "127.0.0.1:9"})
	b.SetDial(func(uint64, string) {})
	k := NewKeeper(b, lonely{}, "127.0.0.1:7", time.Millisecond)
	for _, from := range []uint64{9, 2} {
		require.False(t, b.Barred(1, 2))
		data, err := json.Marshal(note{Sum: 3, Facts: &Facts{Removed: map[uint64]map[uint64]bool{1: {2: true}}}})
		require.NoError(t, err)
		k.Receive(wire.Message{Group: NoteGroup, From: from, To: 1, Body: wire.Note{Data: data}})
	}
	require.True(t, b.Barred(1, 2), "node 2 is in the book")
}

// A gateway sends notes as fast as it likes, and the log does not grow by a line for each.
func TestNotesThatAreLeftOutDoNotFillTheLog(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := testBook(t, dir, map[uint64]string{1: "127.0.0.1:7"})
		b.logger = slog.New(slog.NewTextHandler(&log, nil))
		k := NewKeeper(b, lonely{}, "127.0.0.1:7", time.Millisecond)
		for range 1000 {
			k.Receive(wire.Message{Group: NoteGroup, From: 9, To: 1, Body: wire.Note{Data: []byte(`{"sum":3}`)}})
			k.Receive(wire.Message{Group: NoteGroup, From: 9, To: 1, Body: wire.Note{Data: []byte("none")}})
		}
		require.Equal(t, 2, strings.Count(log.String(), "\n"), "a line for each kind")
		time.Sleep(time.Minute)
		k.Receive(wire.Message{Group: NoteGroup, From: 9, To: 1, Body: wire.Note{Data: []byte("none")}})
		require.Contains(t, log.String(), "left_out=999")
	})
}
