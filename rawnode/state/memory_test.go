// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
)

// tally is a Machine: it counts words.
type tally struct{ words map[string]int }

func newTally() *tally { return &tally{words: map[string]int{}} }

func (t *tally) Apply(command []byte) any {
	if len(command) == 0 || !utf8.Valid(command) {
		return errors.New("no word")
	}
	t.words[string(command)]++
	return fmt.Sprint(t.words[string(command)])
}

func (t *tally) Write(w io.Writer) error { return json.NewEncoder(w).Encode(t.words) }
func (t *tally) Read(r io.Reader) error  { return json.NewDecoder(r).Decode(&t.words) }

// forking is a tally that can set its state aside.
type forking struct{ tally }

func newForking() *forking             { return &forking{*newTally()} }
func (t *forking) Fork() state.Machine { return &tally{maps.Clone(t.words)} }

// Digest has replicas compared. Tallies that fork, and those that do not, offer it.
func (t *tally) Digest(w io.Writer) error { return t.Write(w) }

// text returns what readers see.
func (t *tally) text() string {
	b, err := json.Marshal(t.words)
	if err != nil {
		panic(err) // a map of numbers
	}
	return string(b)
}

func word(r *rand.Rand) []byte {
	if r.IntN(20) == 0 {
		return nil
	}
	return fmt.Appendf(nil, "word %d %s", r.IntN(30), strings.Repeat("x", r.IntN(10)))
}

// tallies is what the suite needs of a Memory of tallies.
func tallies[M interface {
	state.Machine
	text() string
}](newMachine func() M, opts state.Options) rawnodetest.StateMachineFactory {
	return rawnodetest.StateMachineFactory{
		Open: func(d rawnodetest.Dir) (rawnode.StateMachine, error) {
			opts := opts
			opts.FS, opts.Dir = d.FS, d.Path
			return state.OpenMemory(newMachine, opts)
		},
		Command: func(r *rand.Rand) []byte {
			if opts.Sessions == nil {
				return word(r)
			}
			switch r.IntN(6) {
			case 0:
				return state.OpenSession()
			case 1:
				return state.Plain(word(r))
			case 2:
				return state.EndSession(session.ID(r.IntN(4)))
			}
			return state.InSession(session.ID(r.IntN(8)), uint64(r.IntN(10)), 0, word(r))
		},
		Read: func(sm rawnode.StateMachine) (text string, err error) {
			sm.(*state.Memory[M]).View(func(m M) { text = m.text() })
			return text, nil
		},
		Flush: func(sm rawnode.StateMachine) error { return sm.(*state.Memory[M]).Checkpoint() },
	}
}

func TestMemoryKeepsTheContract(t *testing.T) {
	for name, f := range map[string]rawnodetest.StateMachineFactory{
		"checkpoints of its own":   tallies(newTally, state.Options{CheckpointBytes: 1000, Identity: "node 1"}),
		"checkpoints inline":       tallies(newTally, state.Options{CheckpointBytes: 1000, Inline: true}),
		"checkpoints when asked":   tallies(newTally, state.Options{}),
		"with forks":               tallies(newForking, state.Options{CheckpointBytes: 500}),
		"with sessions":            tallies(newTally, state.Options{CheckpointBytes: 1000, Sessions: &session.Limits{Sessions: 4, Results: 3, ResultBytes: 100}}),
		"on the system's own disk": onDisk(tallies(newTally, state.Options{CheckpointBytes: 1000})),
	} {
		t.Run(name, func(t *testing.T) { rawnodetest.TestStateMachine(t, f) })
	}
}

func onDisk(f rawnodetest.StateMachineFactory) rawnodetest.StateMachineFactory {
	f.OnDisk = true
	return f
}

func open(t *testing.T, fs vfs.FS, o state.Options) *state.Memory[*tally] {
	t.Helper()
	o.FS, o.Dir = fs, "state"
	m, err := state.OpenMemory(newTally, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func apply(t *testing.T, m *state.Memory[*tally], index uint64, commands ...string) []any {
	t.Helper()
	b := rawnode.Batch{Index: index}
	for _, c := range commands {
		b.Commands = append(b.Commands, []byte(c))
	}
	results, err := m.Apply(b)
	require.NoError(t, err)
	return results
}

func text(m *state.Memory[*tally]) (s string) {
	m.View(func(t *tally) { s = t.text() })
	return s
}

// A client that proposes a command again gets the first result, also at another replica
// and after a restart.
func TestCommandOfASessionTakesEffectOnce(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := state.Options{Sessions: &session.DefaultLimits}
	m := open(t, fs, o)
	id := apply(t, m, 1, string(state.OpenSession()))[0].(session.ID)
	add := string(state.InSession(id, 1, 0, []byte("a")))
	require.Equal(t, []any{"1", "1", "2", "3"}, apply(t, m, 2, add, add, string(state.Plain([]byte("a"))), string(state.InSession(id, 2, 1, []byte("a")))))
	var refused *state.RefusedError
	require.ErrorAs(t, apply(t, m, 3, add)[0].(error), &refused)
	require.Equal(t, session.Forgotten, refused.Verdict)

	snap, err := m.Snapshot()
	require.NoError(t, err)
	other := open(t, vfs.NewCrashableMem(), o)
	require.NoError(t, other.Restore(snap.Meta(), snap))
	require.NoError(t, snap.Close())
	again := string(state.InSession(id, 2, 1, []byte("a")))
	require.Equal(t, []any{"3"}, apply(t, other, 4, again))
	require.NoError(t, m.Close())
	m = open(t, fs, o)
	require.Equal(t, []any{"3"}, apply(t, m, 4, again))
	require.Equal(t, `{"a":3}`, text(m))
	require.Equal(t, []any{true, false}, apply(t, m, 5, string(state.EndSession(id)), string(state.EndSession(id))))
}

// Whatever a client sends as an envelope is refused by its result, at all replicas alike.
func TestMalformedEnvelopesAreResults(t *testing.T) {
	m := open(t, vfs.NewCrashableMem(), state.Options{Sessions: &session.DefaultLimits})
	for i, c := range []string{"", "\x01x", "\x02", "\x02\x80", "\x03", "\x03\x01x", "\x09", "x"} {
		require.Equal(t, []any{state.ErrMalformed}, apply(t, m, uint64(i+1), c), "%q", c)
	}
	bad := open(t, vfs.NewCrashableMem(), state.Options{Sessions: &session.DefaultLimits})
	id := apply(t, bad, 1, string(state.OpenSession()))[0].(session.ID)
	c := string(state.InSession(id, 1, 0, nil)) // its result is an error
	for i := range uint64(2) {
		require.ErrorIs(t, apply(t, bad, 2+i, c)[0].(error), state.ErrResult)
	}
}

// The directory of another state, a second user, and damage are told apart, and change
// nothing.
func TestDirectoryOfAnother(t *testing.T) {
	fs := vfs.NewCrashableMem()
	m := open(t, fs, state.Options{Identity: "node 1"})
	apply(t, m, 7, "a")
	require.NoError(t, m.Checkpoint())
	o := state.Options{FS: fs, Dir: "state", Identity: "node 2"}
	_, err := state.OpenMemory(newTally, o)
	require.ErrorIs(t, err, state.ErrLocked)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close(), "a second time")
	_, _, err = m.Load()
	require.ErrorIs(t, err, state.ErrClosed)
	_, err = m.Apply(rawnode.Batch{Index: 8})
	require.ErrorIs(t, err, state.ErrClosed)
	_, err = state.OpenMemory(newTally, o)
	require.ErrorIs(t, err, state.ErrIdentity)
	require.ErrorContains(t, err, `"node 1", this is "node 2"`)

	_, err = state.OpenMemory[*tally](nil, state.Options{CheckpointBytes: -1, Identity: strings.Repeat("x", 2000), Sessions: &session.Limits{}})
	require.ErrorIs(t, err, state.ErrInvalid)
	for _, want := range []string{"Options.Dir is", "Options.Identity is 2000 bytes, want at most 1024", "Options.CheckpointBytes is -1", "Sessions is 0", "newMachine is nil"} {
		require.ErrorContains(t, err, want)
	}
	_, err = state.OpenMemory(newTally, state.Options{FS: fs, Dir: "state", Identity: "node 1", Sessions: &session.DefaultLimits})
	require.NoError(t, err, "a state without rows may get sessions")
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

func writeFile(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(bytes.Clone(b)) // under the race detector, the file system destroys what it has written
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
}

// A checkpoint or a snapshot with any byte changed, cut at any place, or with bytes
// behind it, is refused: no state comes of it.
func TestDamageIsNoticed(t *testing.T) {
	fs := vfs.NewCrashableMem()
	m := open(t, fs, state.Options{Sessions: &session.DefaultLimits})
	apply(t, m, 3, string(state.OpenSession()), string(state.Plain([]byte("a"))))
	snap, err := m.Snapshot()
	require.NoError(t, err)
	body, err := io.ReadAll(snap)
	require.NoError(t, err)
	require.NoError(t, snap.Close())
	require.NoError(t, m.Close())
	name := fs.PathJoin("state", "checkpoint-00000000000000000003")
	whole := readFile(t, fs, name)

	try := func(what string, file, body []byte) {
		damaged := vfs.NewCrashableMem()
		require.NoError(t, damaged.MkdirAll("state", 0o755))
		writeFile(t, damaged, name, file)
		_, err := state.OpenMemory(newTally, state.Options{FS: damaged, Dir: "state", Sessions: &session.DefaultLimits})
		require.Error(t, err, what)
		require.True(t, errors.Is(err, state.ErrDamaged) || errors.Is(err, state.ErrVersion) || errors.Is(err, state.ErrIdentity), "%s: %v", what, err)
		other := open(t, vfs.NewCrashableMem(), state.Options{Sessions: &session.DefaultLimits})
		if body != nil {
			err = other.Restore(snap.Meta(), bytes.NewReader(body))
			require.True(t, errors.Is(err, state.ErrDamaged) || errors.Is(err, state.ErrVersion), "%s: %v", what, err)
			require.Zero(t, other.Applied())
		}
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x41
		var s []byte
		if i < len(body) {
			s = bytes.Clone(body)
			s[i] ^= 0x41
		}
		try(fmt.Sprint("byte ", i), b, s)
		try(fmt.Sprint("cut at ", i), whole[:i], body[:min(i, len(body)-1)])
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-1] ^= 1 // of the end's frame, of 11 bytes
	writeFile(t, fs, name, damaged)
	_, err = state.OpenMemory(newTally, state.Options{FS: fs, Dir: "state", Sessions: &session.DefaultLimits})
	require.ErrorContains(t, err, name)
	require.ErrorContains(t, err, fmt.Sprintf("at byte %d,", len(whole)-11))
	require.ErrorContains(t, err, "replace the node")
	try("more", append(bytes.Clone(whole), 0), append(bytes.Clone(body), 0))
	long := binary.LittleEndian.AppendUint32([]byte{'p'}, 1<<31)
	try("a length", append(long, 0, 0, 0, 0), append(long, 0, 0, 0, 0))
}

// Power fails, and then room ends, at each operation on the disk: what was checkpointed
// is there, and commands are applied all the same.
func TestDiskFailsAtEachOperation(t *testing.T) {
	for _, full := range []bool{false, true} {
		for at := 1; ; at++ {
			mem := vfs.NewCrashableMem()
			n := 0
			var image *vfs.MemFS
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
					return nil
				}
				n++
				if n == at {
					image = mem.CrashClone(vfs.CrashCloneCfg{})
				}
				if full && n >= at {
					return syscall.ENOSPC
				}
				return nil
			}))
			o := state.Options{CheckpointBytes: 200, Inline: true, FS: fs, Dir: "state"}
			m, err := state.OpenMemory(newTally, o)
			durable := uint64(0)
			if full && err != nil {
				require.ErrorIs(t, err, syscall.ENOSPC)
			} else {
				require.NoError(t, err)
				for i := uint64(1); i <= 12; i++ {
					apply(t, m, i, "a", "b")
					if n < at {
						durable, err = m.Durable()
						require.NoError(t, err)
					}
				}
				require.Equal(t, `{"a":12,"b":12}`, text(m))
				_ = m.Close() // the lock's file may fail, too
			}
			if image == nil {
				require.Greater(t, at, 12, "operations of the workload")
				break
			}
			left := open(t, image, state.Options{})
			require.GreaterOrEqual(t, left.Applied(), durable)
			if i := left.Applied(); i > 0 {
				require.Equal(t, fmt.Sprintf(`{"a":%d,"b":%d}`, i, i), text(left))
			}
			for i := left.Applied() + 1; i <= 12; i++ {
				apply(t, left, i, "a", "b")
			}
			require.NoError(t, left.Checkpoint())
			require.Equal(t, `{"a":12,"b":12}`, text(left))
		}
	}
}

// Checkpoints go on while commands are applied, readers read, and snapshots are taken;
// nothing waits for another to end for good.
func TestMemoryUnderManyGoroutines(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := state.Options{CheckpointBytes: 2000}
	m := open(t, fs, o)
	var wg sync.WaitGroup
	quit := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				m.View(func(t *tally) { _ = t.text() })
				snap, err := m.Snapshot()
				if err == nil {
					_, err = io.Copy(io.Discard, snap)
					err = errors.Join(err, snap.Close())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := uint64(1); i <= 500; i++ {
		apply(t, m, i, string(word(r))+"z", "all")
	}
	close(quit)
	wg.Wait()
	require.Contains(t, text(m), `"all":500`)
	require.NoError(t, m.Checkpoint())
	names, err := fs.List("state")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"LOCK", "checkpoint-00000000000000000500"}, names)
}

// A host that ends is not kept by a machine that writes much.
func TestInterruptEndsACheckpoint(t *testing.T) {
	began, interrupted := make(chan struct{}), make(chan struct{})
	m, err := state.OpenMemory(func() *slow { return &slow{began: began, wait: interrupted} }, state.Options{FS: vfs.NewCrashableMem(), Dir: "state"})
	require.NoError(t, err)
	_, err = m.Apply(rawnode.Batch{Index: 1, Commands: [][]byte{nil}})
	require.NoError(t, err)
	ended := make(chan error, 2)
	go func() { ended <- m.Checkpoint() }()
	<-began
	go func() {
		_, err := m.Apply(rawnode.Batch{Index: 2, Commands: [][]byte{nil}})
		ended <- err
	}()
	m.Interrupt(errors.New("the host has stopped"))
	close(interrupted)
	for range 2 {
		require.ErrorIs(t, <-ended, state.ErrInterrupted)
	}
	require.NoError(t, m.Close())
}

// slow writes without an end.
type slow struct{ began, wait chan struct{} }

func (s *slow) Apply([]byte) any     { return nil }
func (s *slow) Read(io.Reader) error { return nil }
func (s *slow) Write(w io.Writer) error {
	close(s.began)
	<-s.wait
	for {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return err
		}
	}
}

// Nothing is applied twice, and no snapshot is of index 0.
func TestIndexGoesUp(t *testing.T) {
	m := open(t, vfs.NewCrashableMem(), state.Options{})
	apply(t, m, 5, "a")
	for _, index := range []uint64{0, 4, 5} {
		_, err := m.Apply(rawnode.Batch{Index: index, Commands: [][]byte{[]byte("a")}})
		require.ErrorIs(t, err, state.ErrInvalid)
	}
	require.ErrorIs(t, m.Restore(rawnode.SnapshotMeta{}, strings.NewReader("")), state.ErrInvalid)
	require.Equal(t, `{"a":1}`, text(m))
}

// A snapshot of the very index of the last checkpoint takes its place, as when a restore is tried
// again. If the disk fails in the middle, one of the two is there.
func TestFailedRestoreAtTheIndexOfTheCheckpointLeavesOne(t *testing.T) {
	from := open(t, vfs.NewMem(), state.Options{})
	apply(t, from, 5, "a")
	snap, err := from.Snapshot()
	require.NoError(t, err)
	body, err := io.ReadAll(snap)
	require.NoError(t, err)
	require.NoError(t, snap.Close())
	for at := 1; ; at++ {
		mem := vfs.NewMem()
		n, broken := 0, false
		o := state.Options{Dir: "state", FS: errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if !broken || op.Kind == errorfs.OpRemove {
				return nil
			}
			if n++; n == at {
				return syscall.EIO
			}
			return nil
		}))}
		m, err := state.OpenMemory(newTally, o)
		require.NoError(t, err)
		apply(t, m, 5, "b")
		require.NoError(t, m.Checkpoint())
		broken = true
		failed := m.Restore(rawnode.SnapshotMeta{Index: 5}, bytes.NewReader(body))
		broken = false
		require.NoError(t, m.Close())
		left := open(t, mem, state.Options{})
		require.EqualValues(t, 5, left.Applied(), "failure at operation %d", at)
		require.Contains(t, []string{`{"a":1}`, `{"b":1}`}, text(left))
		if failed == nil {
			require.Greater(t, at, 5)
			require.Equal(t, `{"a":1}`, text(left))
			return
		}
	}
}

// fragile is a tally that panics at a word, unharmed.
type fragile struct{ tally }

func (f *fragile) Apply(command []byte) any {
	if string(command) == "panic" {
		panic("a word that is not known")
	}
	return f.tally.Apply(command)
}
func (f *fragile) UnharmedByPanics() {}

// The size of a state is that of its checkpoint, also after a restart.
func TestSizeOfAStateIsThatOfItsCheckpoint(t *testing.T) {
	fs := vfs.NewMem()
	m := open(t, fs, state.Options{Dir: "state"})
	require.Zero(t, m.SnapshotBytes())
	apply(t, m, 1, strings.Repeat("x", 1000))
	require.NoError(t, m.Checkpoint())
	size := m.SnapshotBytes()
	require.InDelta(t, 1000, size, 200)
	require.NoError(t, m.Close())
	require.Equal(t, size, open(t, fs, state.Options{Dir: "state"}).SnapshotBytes())
}
