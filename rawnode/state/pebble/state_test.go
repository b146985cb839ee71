// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// count is the state of the tests: "+word" counts a word, "-word" removes it, "~from to"
// removes a range, "?" returns how many words there are.
func count(tx *pebblestate.Tx, command []byte) (any, error) {
	if len(command) == 0 {
		return errors.New("no command"), nil
	}
	verb, word := command[0], command[1:]
	switch verb {
	case '-':
		return nil, tx.Delete(word)
	case '~':
		from, to, _ := bytes.Cut(word, []byte(" "))
		return nil, tx.DeleteRange(from, to)
	case '?':
		n := 0
		err := tx.Scan(nil, nil, func(_, _ []byte) bool { n++; return true })
		return strconv.Itoa(n), err
	}
	was, _, err := tx.Get(word)
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimRight(string(was), "."))
	value := strconv.Itoa(n+1) + strings.Repeat(".", 100*(n%3))
	return value, tx.Set(word, []byte(value))
}

func draw(r *rand.Rand) []byte {
	word := func() string { return fmt.Sprintf("word%02d", r.IntN(40)) }
	switch r.IntN(12) {
	case 0:
		return []byte("?")
	case 1:
		return []byte("-" + word())
	case 2:
		return []byte("~" + word() + " " + word())
	case 3:
		return nil
	}
	return []byte("+" + word())
}

// both is a state and its database, closed together.
type both struct {
	*pebblestate.State
	db *pebblestate.DB
}

func (b both) Close() error { return b.db.Close() }

func text(s *pebblestate.State) (string, error) {
	var all strings.Builder
	err := s.View(func(r pebblestate.Reader) error {
		return r.Scan(nil, nil, func(key, value []byte) bool {
			fmt.Fprintf(&all, "%s=%s ", key, value)
			return true
		})
	})
	return all.String(), err
}

func factory(o pebblestate.Options, g pebblestate.GroupOptions) rawnodetest.StateMachineFactory {
	return rawnodetest.StateMachineFactory{
		Open: func(d rawnodetest.Dir) (rawnode.StateMachine, error) {
			o := o
			o.FS, o.Dir = d.FS, d.Path
			db, err := pebblestate.Open(o)
			if err != nil {
				return nil, err
			}
			s, err := db.Group(7, count, g)
			return both{s, db}, err
		},
		Command: func(r *rand.Rand) []byte {
			if g.Sessions == nil {
				return draw(r)
			}
			switch r.IntN(6) {
			case 0:
				return state.OpenSession()
			case 1:
				return state.Plain(draw(r))
			case 2:
				return state.EndSession(session.ID(r.IntN(4)))
			}
			return state.InSession(session.ID(r.IntN(8)), uint64(r.IntN(10)), 0, draw(r))
		},
		Read:  func(sm rawnode.StateMachine) (string, error) { return text(sm.(both).State) },
		Flush: func(sm rawnode.StateMachine) error { return sm.(both).db.Flush() },
	}
}

func TestStateKeepsTheContract(t *testing.T) {
	small := pebblestate.Options{MemTableBytes: pebblestate.MinMemTableBytes, Identity: "node 1"}
	for name, f := range map[string]rawnodetest.StateMachineFactory{
		"plain":         factory(small, pebblestate.GroupOptions{}),
		"with sessions": factory(small, pebblestate.GroupOptions{Sessions: &session.Limits{Sessions: 4, Results: 3, ResultBytes: 100}}),
	} {
		t.Run(name, func(t *testing.T) { rawnodetest.TestStateMachine(t, f) })
	}
}

func open(t *testing.T, fs vfs.FS) *pebblestate.DB {
	t.Helper()
	db, err := pebblestate.Open(pebblestate.Options{FS: fs, Dir: "state", MemTableBytes: pebblestate.MinMemTableBytes})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() }) // a test may have closed it
	return db
}

func group(t *testing.T, db *pebblestate.DB, id uint64) *pebblestate.State {
	t.Helper()
	s, err := db.Group(id, count, pebblestate.GroupOptions{})
	require.NoError(t, err)
	return s
}

func apply(t *testing.T, s *pebblestate.State, index uint64, commands ...string) []any {
	t.Helper()
	b := rawnode.Batch{Index: index}
	for _, c := range commands {
		b.Commands = append(b.Commands, []byte(c))
	}
	results, err := s.Apply(b)
	require.NoError(t, err)
	return results
}

func is(t *testing.T, s *pebblestate.State, want string) {
	t.Helper()
	got, err := text(s)
	require.NoError(t, err)
	require.Equal(t, want, strings.TrimSpace(got))
}

// Groups of one database, also those whose numbers follow each other, see and restore
// their own keys alone.
func TestGroupsAreApart(t *testing.T) {
	fs := vfs.NewCrashableMem()
	db := open(t, fs)
	low, high := group(t, db, 1), group(t, db, 2)
	top := group(t, db, ^uint64(0))
	for i, s := range []*pebblestate.State{low, high, top} {
		apply(t, s, uint64(i+3), "+", "+\xff\xff", "+a")
	}
	require.Equal(t, []any{nil, "0"}, apply(t, low, 9, "~ \xff\xff\xff", "?"), "all of low")
	is(t, low, "")
	snap, err := high.Snapshot()
	require.NoError(t, err)
	require.NoError(t, low.Restore(rawnode.SnapshotMeta{Index: 20, Host: []byte("h")}, snap))
	require.NoError(t, snap.Close())
	apply(t, low, 21, "+a")
	is(t, low, "=1 a=2"+strings.Repeat(".", 100)+" \xff\xff=1")
	for _, s := range []*pebblestate.State{high, top} {
		is(t, s, "=1 a=1 \xff\xff=1")
	}
	_, err = db.Group(2, count, pebblestate.GroupOptions{})
	require.ErrorIs(t, err, state.ErrInvalid)
	require.NoError(t, db.Close())

	db = open(t, fs)
	index, host, err := group(t, db, 1).Load()
	require.NoError(t, err)
	require.Equal(t, []any{uint64(21), "h"}, []any{index, string(host)})
	index, _, err = group(t, db, 2).Load()
	require.NoError(t, err)
	require.EqualValues(t, 4, index)
}

func TestMistakesAreNamed(t *testing.T) {
	_, err := pebblestate.Open(pebblestate.Options{MemTableBytes: 1, CacheBytes: -1, Identity: strings.Repeat("x", 2000)})
	require.ErrorIs(t, err, state.ErrInvalid)
	for _, want := range []string{"Options.Dir is", "Options.MemTableBytes is 1, want 0, or 65536", "Options.CacheBytes is -1", "Options.Identity is 2000 bytes"} {
		require.ErrorContains(t, err, want)
	}
	fs := vfs.NewCrashableMem()
	o := pebblestate.Options{FS: fs, Dir: "state", Identity: "node 1"}
	db, err := pebblestate.Open(o)
	require.NoError(t, err)
	_, err = db.Group(1, nil, pebblestate.GroupOptions{})
	require.ErrorIs(t, err, state.ErrInvalid)
	_, err = db.Group(1, count, pebblestate.GroupOptions{Sessions: &session.Limits{}})
	require.ErrorIs(t, err, state.ErrInvalid)
	_, err = pebblestate.Open(o)
	require.ErrorIs(t, err, state.ErrLocked)
	s := group(t, db, 1)
	snap, err := s.Snapshot()
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.ErrorIs(t, db.Close(), state.ErrClosed)
	_, err = s.Apply(rawnode.Batch{Index: 1})
	require.ErrorIs(t, err, state.ErrClosed)
	_, err = pebblestate.Open(o)
	require.ErrorIs(t, err, state.ErrLocked, "a snapshot is open")
	require.NoError(t, snap.Close())
	require.NoError(t, snap.Close())
	o.Identity = "node 2"
	_, err = pebblestate.Open(o)
	require.ErrorIs(t, err, state.ErrIdentity)
	require.ErrorContains(t, err, `of "node 1", this is "node 2"`)
}

// Keys and values out of bounds are refused, and the command goes on.
func TestBounds(t *testing.T) {
	db := open(t, vfs.NewCrashableMem())
	s, err := db.Group(1, func(tx *pebblestate.Tx, c []byte) (any, error) {
		return []error{tx.Set(make([]byte, pebblestate.MaxKeyBytes+1), nil), tx.Set([]byte("k"), make([]byte, pebblestate.MaxValueBytes+1)), tx.DeleteRange([]byte("z"), []byte("a")), tx.Set(nil, nil)}, nil
	}, pebblestate.GroupOptions{})
	require.NoError(t, err)
	results, err := s.Apply(rawnode.Batch{Index: 1, Commands: [][]byte{nil}})
	require.NoError(t, err)
	errs := results[0].([]error)
	require.ErrorIs(t, errs[0], state.ErrInvalid)
	require.ErrorContains(t, errs[1], "a value of 67108865 bytes, the bound is 67108864")
	require.NoError(t, errors.Join(errs[2:]...))
	is(t, s, "=")
}

// A command whose function fails stops the host, changes nothing, and the state can be
// loaded again.
func TestErrorOfApplyChangesNothing(t *testing.T) {
	broken := errors.New("broken")
	fails := true
	db := open(t, vfs.NewCrashableMem())
	s, err := db.Group(1, func(tx *pebblestate.Tx, c []byte) (any, error) {
		if err := tx.Set(c, []byte("1")); err != nil || string(c) != "b" || !fails {
			return nil, err
		}
		return nil, broken
	}, pebblestate.GroupOptions{})
	require.NoError(t, err)
	apply(t, s, 1, "a")
	for range 2 {
		_, err = s.Apply(rawnode.Batch{Index: 2, Commands: [][]byte{[]byte("c"), []byte("b")}})
		require.ErrorIs(t, err, broken)
	}
	is(t, s, "a=1")
	index, _, err := s.Load()
	require.NoError(t, err)
	require.EqualValues(t, 1, index)
	fails = false
	apply(t, s, 2, "c", "b")
	is(t, s, "a=1 b=1 c=1")
}

// A snapshot with any byte changed, cut anywhere, or longer, is refused, and the state
// stays.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	db := open(t, vfs.NewCrashableMem())
	from, to := group(t, db, 1), group(t, db, 2)
	apply(t, from, 5, "+a", "+b")
	apply(t, to, 1, "+old")
	snap, err := from.Snapshot()
	require.NoError(t, err)
	body, err := io.ReadAll(snap)
	require.NoError(t, err)
	require.NoError(t, snap.Close())
	try := func(body []byte) {
		err := to.Restore(snap.Meta(), bytes.NewReader(body))
		require.True(t, errors.Is(err, state.ErrDamaged) || errors.Is(err, state.ErrVersion), "%v", err)
		is(t, to, "old=1")
	}
	for i := range body {
		b := bytes.Clone(body)
		b[i] ^= 0x41
		try(b)
		try(body[:i])
	}
	try(append(bytes.Clone(body), 0))
	require.NoError(t, to.Restore(snap.Meta(), bytes.NewReader(body)))
	is(t, to, "a=1 b=1")
}

// faulty is a disk that finds no room from an operation on, or fails.
type faulty struct {
	fs   *vfs.MemFS
	n    atomic.Int64
	from atomic.Int64 // 0: never
	err  error
}

func (f *faulty) String() string { return "faulty" }

// MaybeError implements errorfs.Injector.
func (f *faulty) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpLink, errorfs.OpRename, errorfs.OpMkdirAll, errorfs.OpReuseForWrite:
	default:
		return nil
	}
	if n, from := f.n.Add(1), f.from.Load(); from > 0 && n >= from {
		return f.err
	}
	return nil
}

const patience = time.Minute

// On a full disk commands wait, and say so; reads go on; a host that ends is let go; with
// room again everything goes on, and nothing is lost.
func TestFullDisk(t *testing.T) {
	for from := int64(1); from <= 12; from++ {
		f := &faulty{fs: vfs.NewCrashableMem(), err: syscall.ENOSPC}
		db := open(t, errorfs.Wrap(f.fs, f))
		s := group(t, db, 1)
		apply(t, s, 1, "+before")
		require.NoError(t, db.Flush())
		f.n.Store(0)
		f.from.Store(from)
		done := make(chan error, 1)
		go func() {
			for i := uint64(2); i < 400; i++ {
				if _, err := s.Apply(rawnode.Batch{Index: i, Commands: [][]byte{fmt.Appendf(nil, "+%d%s", i, strings.Repeat("x", 2000))}}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		require.Eventually(t, func() bool { return s.Stalled() != nil }, patience, time.Millisecond)
		require.ErrorIs(t, s.Stalled(), pebblestate.ErrFull)
		require.ErrorIs(t, db.Flush(), pebblestate.ErrFull)
		_, err := text(s)
		require.NoError(t, err)
		s.Interrupt(errors.New("the host has stopped"))
		require.Error(t, <-done)
		f.from.Store(0)
		require.Eventually(t, func() bool { return s.Stalled() == nil }, patience, time.Millisecond)
		index, _, err := s.Load()
		require.NoError(t, err)
		apply(t, s, index+1, "+behind")
		require.NoError(t, db.Flush())
		require.NoError(t, db.Err())
		require.NoError(t, db.Close())
		db = open(t, f.fs)
		found, _, err := group(t, db, 1).Load()
		require.NoError(t, err)
		require.Equal(t, index+1, found)
	}
}

// A disk that fails ends the database, not the process; what was durable is there after
// a restart.
func TestDiskFails(t *testing.T) {
	for from := int64(1); from <= 12; from++ {
		f := &faulty{fs: vfs.NewCrashableMem(), err: syscall.EIO}
		db := open(t, errorfs.Wrap(f.fs, f))
		s := group(t, db, 1)
		apply(t, s, 1, "+before")
		require.NoError(t, db.Flush())
		f.n.Store(0)
		f.from.Store(from)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := uint64(2); i < 400; i++ {
				if _, err := s.Apply(rawnode.Batch{Index: i, Commands: [][]byte{fmt.Appendf(nil, "+%d%s", i, strings.Repeat("x", 2000))}}); err != nil {
					return
				}
				if i%20 == 0 && db.Flush() != nil {
					return
				}
			}
		})
		select {
		case <-db.Failed():
		case <-time.After(patience):
			t.Fatal("the failure goes unnoticed")
		}
		require.ErrorIs(t, db.Err(), pebblestate.ErrFailed)
		require.ErrorIs(t, db.Err(), syscall.EIO)
		wg.Wait()
		require.ErrorIs(t, db.Close(), pebblestate.ErrFailed)
		db = open(t, f.fs.CrashClone(vfs.CrashCloneCfg{}))
		index, _, err := group(t, db, 1).Load()
		require.NoError(t, err)
		require.GreaterOrEqual(t, index, uint64(1))
	}
}

// Nodes with states in Pebble come to the same state under faults.
func TestStatesInACluster(t *testing.T) {
	for seed := range uint64(3) {
		c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{
			Seed:   seed,
			Adjust: func(_ uint64, c *rawnode.ReplicaConfig) { c.RetainEntries, c.RetainBytes = 5, 1000 },
			StateMachine: func(m rawnodetest.Member) (rawnode.StateMachine, error) {
				db, err := pebblestate.Open(pebblestate.Options{FS: m.Dir.FS, Dir: m.Dir.Path, MemTableBytes: pebblestate.MinMemTableBytes})
				if err != nil {
					return nil, err
				}
				s, err := db.Group(1, count, pebblestate.GroupOptions{})
				return both{s, db}, err
			},
		})
		c.Chaos(10*time.Second, rawnodetest.Faults{})
		done := 0
		for i := 0; c.Now() < 10*time.Second; i++ {
			if _, err := c.Propose(uint64(i%3)+1, fmt.Appendf(nil, "+%d", i%20)).Wait(); err == nil {
				done++
			}
			if i%50 == 0 && c.Up(1) {
				require.NoError(t, c.StateMachine(1).(both).db.Flush())
			}
		}
		require.Greater(t, done, 20)
		c.Agree(time.Minute, func(sm rawnode.StateMachine) (string, error) { return text(sm.(both).State) })
	}
}

// The log behind the state is replayed with the limits that the state was written with.
func TestOtherLimitsOfSessionsThanBeforeAreRefused(t *testing.T) {
	o := pebblestate.Options{FS: vfs.NewMem(), Dir: "state"}
	opened := func(l *session.Limits) (*pebblestate.DB, *pebblestate.State, error) {
		db, err := pebblestate.Open(o)
		require.NoError(t, err)
		s, err := db.Group(1, count, pebblestate.GroupOptions{Sessions: l})
		return db, s, err
	}
	few := &session.Limits{Sessions: 1, Results: 1, ResultBytes: 100}
	db, _, err := opened(few)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	db, s, err := opened(&session.DefaultLimits) // nothing was written with the limits of before
	require.NoError(t, err)
	_, err = s.Apply(rawnode.Batch{Index: 3, Commands: [][]byte{state.OpenSession()}})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	for _, other := range []*session.Limits{nil, few} {
		db, _, err = opened(other)
		require.ErrorIs(t, err, state.ErrLimits)
		require.NoError(t, db.Close())
	}
	db, s, err = opened(&session.DefaultLimits)
	require.NoError(t, err)
	require.Equal(t, []rawnode.Setting{{Name: "session limits", Value: "10000 sessions of 16 results in 65536 bytes"}}, s.Settings())
	snap, err := s.Snapshot()
	require.NoError(t, err)
	from := db
	o.Dir = "restored" // a snapshot was the first that was written there
	db, s, err = opened(few)
	require.NoError(t, err)
	require.NoError(t, s.Restore(snap.Meta(), snap))
	require.NoError(t, errors.Join(snap.Close(), from.Close(), db.Close()))
	db, _, err = opened(&session.DefaultLimits)
	require.ErrorIs(t, err, state.ErrLimits)
	require.NoError(t, db.Close())
}

// The size of a state is what the disk has of the group.
func TestSizeOfAStateIsThatOfItsGroup(t *testing.T) {
	db := open(t, vfs.NewMem())
	small, large := group(t, db, 1), group(t, db, 2)
	apply(t, small, 1, "count")
	noise := rand.New(rand.NewPCG(1, 1))
	for i := range uint64(1000) { // of words that do not compress: the estimate is of blocks of files, which groups share
		word := make([]byte, 500)
		for j := range word {
			word[j] = byte('a' + noise.IntN(26))
		}
		apply(t, large, i+1, string(word))
	}
	require.NoError(t, db.Flush())
	require.NotZero(t, small.SnapshotBytes())
	require.Greater(t, large.SnapshotBytes(), 2*small.SnapshotBytes())
	require.NoError(t, db.Close())
	require.Zero(t, large.SnapshotBytes())
}
