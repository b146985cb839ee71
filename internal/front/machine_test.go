// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/marked"
	"github.com/weftraft/weft/rawnode"
)

func testBook(t *testing.T, dir string) *book.Book {
	b, err := book.Open(book.Config{Cluster: 7, Node: 1, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
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
func commandOf(t *testing.T, f book.Facts) []byte {
	command, err := f.Command()
	require.NoError(t, err)
	return command
}

// A restart does not read entries again that a state has which is durable at each Apply. So
// behind a power failure the book has what the state has applied: the removal of a member, and
// the address of another one.
func TestBookIsDurableBeforeTheState(t *testing.T) {
	dir := t.TempDir()
	b := testBook(t, dir)
	user := &counting{apply: func() {
		left := testBook(t, dir) // as after a failure now
		require.True(t, left.Barred(3, 2))
		require.Equal(t, "10.0.0.4:7", left.Address(4))
	}}
	m := New(Config{User: user, Group: 3, Book: b, Logger: slog.New(slog.DiscardHandler)})
	f := book.Facts{Addresses: map[uint64]book.Located{4: {Address: "10.0.0.4:7", Version: 1}}, Removed: map[uint64]map[uint64]bool{3: {2: false}}}
	b.Learn(book.Facts{Addresses: f.Addresses}) // from another node, a moment ago
	results, err := m.Apply(rawnode.Batch{Index: 5, Commands: [][]byte{[]byte("a user's"), commandOf(t, f)}})
	require.NoError(t, err)
	require.Len(t, results, 2)
	require.EqualValues(t, 5, user.index)
}

// numbering is a state machine that numbers commands.
type numbering struct {
	rawnode.StateMachine
	got     [][]byte
	numbers bool
}

func (n *numbering) NumbersCommands() bool { return n.numbers }

func (n *numbering) Apply(b rawnode.Batch) ([]any, error) {
	results := make([]any, len(b.Commands))
	for i, c := range b.Commands {
		n.got = append(n.got, c)
		results[i] = len(n.got)
	}
	return results, nil
}

// A state that numbers the commands of the log counts the same whether it runs below the machine or,
// at a member of another version, below a bare host.
func TestStateThatNumbersCommandsHasAPlaceForEach(t *testing.T) {
	own := commandOf(t, book.Facts{Addresses: map[uint64]book.Located{4: {Address: "10.0.0.4:7", Version: 1}}})
	batch := rawnode.Batch{Index: 5, Commands: [][]byte{[]byte("a"), own, []byte("b"), own}}
	for _, numbers := range []bool{true, false} {
		user := &numbering{numbers: numbers}
		results, err := New(Config{User: user, Group: 3, Book: testBook(t, t.TempDir()), Logger: slog.New(slog.DiscardHandler)}).Apply(batch)
		require.NoError(t, err)
		if numbers {
			require.Equal(t, [][]byte{[]byte("a"), nil, []byte("b"), nil}, user.got)
			require.Equal(t, []any{1, nil, 3, nil}, results)
		} else {
			require.Equal(t, [][]byte{[]byte("a"), []byte("b")}, user.got)
			require.Equal(t, []any{1, nil, 2, nil}, results)
		}
		require.True(t, marked.Is(batch.Commands[1]), "the host's batch is as it was")
	}
}

// While the file of addresses cannot be written, the state waits, and says why, until the file
// can be written or the host ends.
func TestStateWaitsForTheBook(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := testBook(t, dir)
		user := &counting{}
		begin := func(m *Machine, index, id uint64) chan error {
			command := commandOf(t, book.Facts{Addresses: map[uint64]book.Located{id: {Address: "10.0.0.4:7", Version: 1}}})
			done := make(chan error, 1)
			go func() {
				_, err := m.Apply(rawnode.Batch{Index: index, Commands: [][]byte{command}})
				done <- err
			}()
			synctest.Wait()
			return done
		}
		m := New(Config{User: user, Group: 3, Book: b, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, <-begin(m, 5, 4))
		require.NoError(t, os.Mkdir(b.Path()+".next", 0o700)) // in the way of the file
		done := begin(m, 6, 5)
		require.Error(t, m.Stalled())
		require.EqualValues(t, 5, user.index)
		require.Equal(t, "10.0.0.4:7", b.Address(5), "it is known all the same")
		require.NoError(t, os.Remove(b.Path()+".next"))
		require.NoError(t, <-done, "the file is written as soon as it can be")
		require.NoError(t, m.Stalled())
		require.EqualValues(t, 6, user.index)
		require.Equal(t, "10.0.0.4:7", testBook(t, dir).Address(5))

		require.NoError(t, os.Mkdir(b.Path()+".next", 0o700))
		done = begin(m, 7, 6)
		m.Interrupt(context.Canceled)
		require.Error(t, <-done)
		require.EqualValues(t, 6, user.index)
	})
}

func TestCommandsOfOtherVersionsAreLeftOut(t *testing.T) {
	b := testBook(t, t.TempDir())
	m := New(Config{User: &counting{}, Group: 3, Book: b, Logger: slog.New(slog.DiscardHandler)})
	for _, command := range []string{
		marked.Mark + "\x7fof a later version", marked.Mark + "\x01{", marked.Mark + "\x01" + `{"addresses":{"0":{"address":"10.0.0.1:7","version":1}}}`,
		marked.Mark + "\x01" + `{"addresses":{"4":{"address":"nowhere","version":1}}}`, marked.Mark + "\x01" + `{"addresses":{"4":{"address":"10.0.0.1:7","version":0}}}`,
	} {
		require.True(t, marked.Is([]byte(command)))
		results, err := m.Apply(rawnode.Batch{Index: 5, Commands: [][]byte{[]byte(command)}})
		require.NoError(t, err)
		require.Len(t, results, 1)
	}
	require.Empty(t, b.All())
	require.False(t, marked.Is([]byte(marked.Mark)), "the mark alone is a user's")
}
