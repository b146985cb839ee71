// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// factsOf draws facts of a few nodes, so that they meet.
func factsOf(t *rapid.T, label string) facts {
	f := noFacts()
	for id := range rapid.SliceOfN(rapid.Uint64Range(1, 4), 0, 4).Draw(t, label) {
		f.Addresses[uint64(id+1)] = located{
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

// Facts may come late, twice and in any order: books that have heard the same are equal.
func TestBooksAreEqualWhateverTheOrderOfFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []facts
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

func testBook(t *testing.T, dir string, peers map[uint64]string) *book {
	b, err := openBook(Options{Cluster: 7, ID: 1, Dir: dir, Peers: peers, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return b
}

// counting is a state machine that is as durable as it is applied.
type counting struct {
	rawnode.StateMachine
	index uint64
	apply func() // at each Apply
}

func (c *counting) Apply(b rawnode.Batch) ([]any, error) {
	if c.apply != nil {
		c.apply()
	}
	c.index = b.Index
	return make([]any, len(b.Commands)), nil
}

// commandOf is a command of this package.
func commandOf(t *testing.T, f facts) []byte {
	command, err := encodeFacts(f)
	require.NoError(t, err)
	return command
}

// A restart does not read entries again that a state has which is durable at each Apply. So
// behind a power failure the book has what the state has applied: the removal of a member, and
// the address of another one.
func TestBookIsDurableBeforeTheState(t *testing.T) {
	dir := t.TempDir()
	b := testBook(t, dir, nil)
	user := &counting{apply: func() {
		left := testBook(t, dir, nil) // as after a failure now
		require.True(t, left.barred(3, 2))
		require.Equal(t, "10.0.0.4:7", left.address(4))
	}}
	m := newMachine(user, 3, b, slog.New(slog.DiscardHandler))
	f := facts{Addresses: map[uint64]located{4: {Address: "10.0.0.4:7", Version: 1}}, Removed: map[uint64]map[uint64]bool{3: {2: false}}}
	b.learn(facts{Addresses: f.Addresses}) // from another node, a moment ago
	results, err := m.Apply(rawnode.Batch{Index: 5, Commands: [][]byte{[]byte("a user's"), commandOf(t, f)}})
	require.NoError(t, err)
	require.Len(t, results, 2)
	require.EqualValues(t, 5, user.index)
}

// While the file of addresses cannot be written, the state waits, and says why, until the file
// can be written or the host ends.
func TestStateWaitsForTheBook(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := testBook(t, dir, nil)
		user := &counting{}
		begin := func(m *machine, index, id uint64) chan error {
			command := commandOf(t, facts{Addresses: map[uint64]located{id: {Address: "10.0.0.4:7", Version: 1}}})
			done := make(chan error, 1)
			go func() {
				_, err := m.Apply(rawnode.Batch{Index: index, Commands: [][]byte{command}})
				done <- err
			}()
			synctest.Wait()
			return done
		}
		m := newMachine(user, 3, b, slog.New(slog.DiscardHandler))
		require.NoError(t, <-begin(m, 5, 4))
		require.NoError(t, os.Mkdir(b.path+".next", 0o700)) // in the way of the file
		done := begin(m, 6, 5)
		require.Error(t, m.Stalled())
		require.EqualValues(t, 5, user.index)
		require.Equal(t, "10.0.0.4:7", b.address(5), "it is known all the same")
		require.NoError(t, os.Remove(b.path+".next"))
		require.NoError(t, <-done, "the file is written as soon as it can be")
		require.NoError(t, m.Stalled())
		require.EqualValues(t, 6, user.index)
		require.Equal(t, "10.0.0.4:7", testBook(t, dir, nil).address(5))

		require.NoError(t, os.Mkdir(b.path+".next", 0o700))
		done = begin(m, 7, 6)
		m.Interrupt(context.Canceled)
		require.Error(t, <-done)
		require.EqualValues(t, 6, user.index)
	})
}

// A fact that has no room is refused before it is replicated, and not forgotten afterwards.
func TestFullBookRefusesFacts(t *testing.T) {
	b := testBook(t, t.TempDir(), nil)
	all := noFacts()
	for id := range uint64(maxBookNodes - 1) {
		all.Addresses[id+2] = located{Address: "10.0.0.9:7", Version: 1}
	}
	require.NoError(t, b.takes(all))
	b.learn(all)
	one := facts{Addresses: map[uint64]located{maxBookNodes + 1: {Address: "10.0.0.9:7", Version: 1}}}
	require.ErrorIs(t, b.takes(one), ErrInvalid)
	require.ErrorContains(t, b.takes(one), "4095")
	require.NoError(t, b.takes(facts{Addresses: map[uint64]located{2: {Address: "10.0.0.9:8", Version: 2}}}), "a known node moves")
	removed := map[uint64]bool{}
	for id := range uint64(maxBookRemoved) {
		removed[id+2] = true
	}
	b.learn(facts{Removed: map[uint64]map[uint64]bool{1: removed}})
	require.ErrorContains(t, b.takes(facts{Removed: map[uint64]map[uint64]bool{1: {maxBookRemoved + 2: false}}}), "65536")
}

// What an operator changes in Options.Peers between two starts is newer than what was
// replicated, and older than what is replicated later.
func TestChangedPeersAreNewerThanEarlierFacts(t *testing.T) {
	dir := t.TempDir()
	learn := func(b *book, address string, version uint64) {
		b.learn(facts{Addresses: map[uint64]located{2: {Address: address, Version: version}}})
		require.NoError(t, b.save())
	}
	b := testBook(t, dir, map[uint64]string{2: "10.0.0.2:1"})
	learn(b, "10.0.0.2:2", 1)
	require.Equal(t, "10.0.0.2:2", b.address(2), "replicated")
	require.Equal(t, "10.0.0.2:2", testBook(t, dir, map[uint64]string{2: "10.0.0.2:1"}).address(2), "the options are as they were")
	asked, err := loadBook(Options{Cluster: 7, ID: 1, Dir: dir, Peers: map[uint64]string{2: "10.0.0.2:9"}})
	require.NoError(t, err)
	require.Equal(t, "10.0.0.2:9", asked.address(2), "for one call of Recover or Inspect")
	require.Equal(t, "10.0.0.2:2", testBook(t, dir, map[uint64]string{2: "10.0.0.2:1"}).address(2), "which the next start does not take for a change")
	require.Equal(t, "10.0.0.2:3", testBook(t, dir, map[uint64]string{2: "10.0.0.2:3"}).address(2), "they have changed")
	b = testBook(t, dir, map[uint64]string{2: "10.0.0.2:3"})
	require.Equal(t, "10.0.0.2:3", b.address(2), "and are as they were")
	learn(b, "10.0.0.2:4", 2)
	require.Equal(t, "10.0.0.2:4", b.address(2), "replicated later")
}

func TestCommandsOfOtherVersionsAreLeftOut(t *testing.T) {
	b := testBook(t, t.TempDir(), nil)
	m := newMachine(&counting{}, 3, b, slog.New(slog.DiscardHandler))
	for _, command := range []string{
		commandMark + "\x7fof a later version", commandMark + "\x01{", commandMark + "\x01" + `{"addresses":{"0":{"address":"10.0.0.1:7","version":1}}}`,
		commandMark + "\x01" + `{"addresses":{"4":{"address":"nowhere","version":1}}}`, commandMark + "\x01" + `{"addresses":{"4":{"address":"10.0.0.1:7","version":0}}}`,
	} {
		require.True(t, reserved([]byte(command)))
		results, err := m.Apply(rawnode.Batch{Index: 5, Commands: [][]byte{[]byte(command)}})
		require.NoError(t, err)
		require.Len(t, results, 1)
	}
	require.Empty(t, b.all())
	require.False(t, reserved([]byte(commandMark)), "the mark alone is a user's")
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
	good, err := json.Marshal(note{Sum: 3, Facts: &facts{
		Addresses: map[uint64]located{2: {Address: "10.0.0.2:7", Version: 4}}, Removed: map[uint64]map[uint64]bool{1: {3: true}},
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
		command, err := encodeFacts(book)
		require.NoError(t, err)
		again, err := decodeFacts(command)
		require.NoError(t, err)
		changed, full = book.merge(again)
		require.False(t, changed || full)
	})
}

// FuzzSnapshot reads what may be in a file: it is what was written, or it is refused.
func FuzzSnapshot(f *testing.F) {
	write := func(t testing.TB, state string) []byte {
		var b bytes.Buffer
		info, err := newSnapshotInfo(7, 1, 9)
		require.NoError(t, err)
		require.NoError(t, copySnapshot(context.Background(), &b, info, strings.NewReader(state)))
		return b.Bytes()
	}
	f.Add([]byte{}, 0, byte(0))
	f.Add(write(f, ""), 3, byte(1))
	f.Add(write(f, "a state"), 150, byte(4))
	f.Fuzz(func(t *testing.T, data []byte, at int, flip byte) {
		read := func(data []byte) (string, error) {
			s, err := newSnapshotReader(bytes.NewReader(data))
			if err != nil {
				return "", err
			}
			state, err := io.ReadAll(s)
			return string(state), err
		}
		if _, err := read(data); err != nil {
			require.ErrorIs(t, err, ErrSnapshot)
		}
		whole := write(t, string(data))
		state, err := read(whole)
		require.NoError(t, err)
		require.Equal(t, string(data), state)
		if at < 0 || at >= len(whole) || flip == 0 {
			return
		}
		_, err = read(whole[:at])
		require.ErrorIs(t, err, ErrSnapshot)
		whole[at] ^= flip
		_, err = read(whole)
		require.ErrorIs(t, err, ErrSnapshot)
	})
}

// A member that lies about versions, or about more nodes than there can be, spoils its own facts at
// most: the file can be read again.
func TestBookIsReadAgainWhateverOthersSay(t *testing.T) {
	dir := t.TempDir()
	b := testBook(t, dir, nil)
	lies := noFacts()
	for id := range uint64(maxBookNodes) {
		lies.Addresses[id+2] = located{Address: "10.0.0.9:7", Version: maxBookVersion}
	}
	lies.Addresses[1] = located{Address: "10.0.0.9:7", Version: maxBookVersion}
	for group := range uint64(3) {
		removed := map[uint64]bool{}
		for id := range uint64(maxBookRemoved / 2) {
			removed[id+2] = true
		}
		b.learn(facts{Addresses: lies.Addresses, Removed: map[uint64]map[uint64]bool{group + 1: removed}})
	}
	fact, _ := b.assert("10.0.0.1:7")
	require.Equal(t, "10.0.0.1:7", fact.Address)
	b.setLogged(fact.Version)
	require.NoError(t, b.save())
	require.NoError(t, b.facts.check())
	require.Equal(t, "10.0.0.1:7", testBook(t, dir, nil).address(1))
}

// While the disk does not answer, everything but the file goes on.
func TestBookIsUsableWhileItsFileIsWritten(t *testing.T) {
	n, err := Open(Options{Cluster: 7, ID: 1, Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	n.book.file.Lock() // as a write that hangs
	n.book.learn(facts{Addresses: map[uint64]located{4: {Address: "10.0.0.4:7", Version: 1}}})
	require.Equal(t, "10.0.0.4:7", n.Addresses()[4])
	n.book.file.Unlock()
	require.NoError(t, n.Close(t.Context()))
	require.Equal(t, "10.0.0.4:7", testBook(t, n.options.Dir, nil).address(4))
}

// A keeper that cannot end, because the disk does not answer, does not keep Close beyond its
// context; a later Close tries again.
func TestCloseKeepsItsContextWhileTheBookIsStuck(t *testing.T) {
	n, err := Open(Options{Cluster: 7, ID: 1, Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	answers := make(chan struct{})
	n.background.Go(func() { <-answers })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = n.Close(ctx)
	require.ErrorIs(t, err, ErrNotEnded)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(answers)
	require.NoError(t, n.Close(t.Context()))
}

// A node is dialled at the address that the node itself has named, for a few notes. If nobody answers
// there, because the note was an old one, the node is dialled at the address in the book again.
func TestHintOfAnAddressDoesNotLast(t *testing.T) {
	n, err := Open(Options{
		Cluster: 7, ID: 1, Dir: t.TempDir(), Peers: map[uint64]string{1: "127.0.0.1:7", 2: "127.0.0.1:9"}, Listen: "127.0.0.1:0", TickInterval: time.Millisecond,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close(t.Context())) }()
	dialled := make(chan string, 100)
	n.book.mu.Lock()
	dial := n.book.dial
	n.book.dial = func(id uint64, address string) {
		dial(id, address)
		dialled <- address
	}
	n.book.mu.Unlock()
	next := func() string {
		select {
		case address := <-dialled:
			return address
		case <-time.After(time.Minute):
			return "nothing within a minute"
		}
	}
	n.book.learn(facts{Addresses: map[uint64]located{2: {Address: "127.0.0.1:10", Version: 5}}})
	require.Equal(t, "127.0.0.1:10", next())
	old, err := json.Marshal(note{Sum: 3, Facts: &facts{Addresses: map[uint64]located{2: {Address: "127.0.0.1:11", Version: 4}}}})
	require.NoError(t, err)
	n.keeper.Receive(wire.Message{Group: noteGroup, From: 2, To: 1, Body: wire.Note{Data: old}})
	require.Equal(t, "127.0.0.1:11", next())
	require.Equal(t, "127.0.0.1:10", n.book.address(2), "the fact stays")
	require.Equal(t, "127.0.0.1:10", next())
}
