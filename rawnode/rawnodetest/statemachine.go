// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/weftraft/weft/rawnode"
)

// StateMachineFactory describes a state machine to the suite.
type StateMachineFactory struct {
	// Open opens the state in a directory, as a program does at its start. The directory is empty,
	// or was left by a state machine that was closed or crashed. If the state machine is an
	// io.Closer, the suite closes the state machine. Required.
	Open func(Dir) (rawnode.StateMachine, error)
	// Command returns a command. Most commands should change the text that Read returns, and the
	// result of some commands should depend on the state. The suite also applies these commands with
	// single bytes that are no UTF-8, and expects a result, which may be an error. Required.
	Command func(*rand.Rand) []byte
	// Read returns all that readers can see of the state as text: equal texts for equal states, and
	// different texts for different states. The suite also calls Read while Apply is under way.
	// Required.
	Read func(rawnode.StateMachine) (string, error)

	// Model, unless nil, returns a new model of the state: a function that applies a command and
	// returns the text that Read must return afterwards. Without a model the state machine is only
	// compared with itself, and the suite misses a command that always takes effect twice.
	Model func() func(command []byte) string
	// Flush, unless nil, makes all applied commands durable. The suite calls Flush at random times,
	// as a program may.
	Flush func(rawnode.StateMachine) error
	// OnDisk selects the operating system's file system, for a state machine that cannot use
	// another. A crash is then the end of a process, never of the machine.
	OnDisk bool
}

// Validate returns an error that names the missing fields, or nil.
func (f StateMachineFactory) Validate() error {
	var errs []error
	for _, x := range []struct {
		field   string
		missing bool
		want    string
	}{
		{"Open", f.Open == nil, "a function that opens the state in a directory"},
		{"Command", f.Command == nil, "a function that draws a command"},
		{"Read", f.Read == nil, "a function that returns what readers see"},
	} {
		if x.missing {
			errs = append(errs, fmt.Errorf("rawnodetest: StateMachineFactory.%s is nil, want %s", x.field, x.want))
		}
	}
	return errors.Join(errs...)
}

// TestStateMachine checks a state machine against the contract of [rawnode.StateMachine], with a
// subtest for each rule. With the race detector the suite finds more.
func TestStateMachine(t *testing.T, f StateMachineFactory) {
	t.Helper()
	testAll(t, f.Validate(), stateMachineRules, f.stage)
}

// CheckStateMachine is TestStateMachine outside a test. The error joins a [RuleError] for each
// broken rule.
func CheckStateMachine(f StateMachineFactory) error {
	return checkAll(f.Validate(), stateMachineRules, f.stage)
}

func (f StateMachineFactory) stage(rule string) *stage { return &stage{f: f, rng: draws(rule)} }

// stage is the state of a test of a rule.
type stage struct {
	f       StateMachineFactory
	rng     *rand.Rand
	machine []*subject
}

// done closes all state machines of the rule and removes their directories.
func (s *stage) done() {
	for _, m := range s.machine {
		m.end()
		_ = m.dir.remove() // a temporary directory
	}
}

// subject is a state machine in a directory.
type subject struct {
	s   *stage
	sm  rawnode.StateMachine
	dir Dir
}

// fresh opens an empty state machine, for a new host.
func (s *stage) fresh() *subject {
	dir, err := newDir(s.f.OnDisk)
	must(err)
	m, index, host := s.open(dir)
	if index != 0 || len(host) > 0 {
		breaks("method Load of an empty state returns index %d and %d bytes of the host, want 0 and none", index, len(host))
	}
	return m
}

// applied tells a story, and returns a fresh state machine that has applied the first n batches.
func (s *stage) applied(batches, n int) (*story, *subject) {
	t := s.tell(batches)
	m := s.fresh()
	m.apply(t, 0, n)
	return t, m
}

// restored returns a fresh state machine that has restored a snapshot, and is as after n batches of a story.
func (s *stage) restored(meta rawnode.SnapshotMeta, body io.Reader, t *story, n int) *subject {
	m := s.fresh()
	m.restored(meta, body, t, n)
	return m
}

// open opens the state machine of a directory, and loads the state.
func (s *stage) open(dir Dir) (m *subject, index uint64, host []byte) {
	m = &subject{s: s, dir: dir}
	var err error
	m.sm, err = s.f.Open(dir)
	calls("function Open", err)
	s.machine = append(s.machine, m)
	if m.sm == nil {
		breaks("function Open returns nil, and no error")
	}
	index, host, err = m.sm.Load()
	calls("method Load", err)
	return m, index, host
}

// end closes the state machine in good order.
func (m *subject) end() {
	if c, ok := m.sm.(io.Closer); ok {
		_ = c.Close() // the state machine may be closed or interrupted already
	}
	m.sm = nil
}

// crashed returns the state machine that a crash at this moment leaves, opened again. The crashed
// state machine is not used any more.
func (m *subject) crashed(power bool) (*subject, uint64, []byte) {
	dir, err := m.dir.crashed(power)
	m.end()
	must(err)
	return m.s.open(dir)
}

func (m *subject) read() string {
	text, err := m.s.f.Read(m.sm)
	calls("function Read", err)
	return text
}

func (m *subject) flush() {
	if m.s.f.Flush != nil {
		calls("function Flush", m.s.f.Flush(m.sm))
	}
}

func (m *subject) durable() uint64 {
	index, err := m.sm.Durable()
	calls("method Durable", err)
	return index
}

// story is a sequence of batches, and the expected results.
type story struct {
	batches []rawnode.Batch
	results [][]any  // of each batch
	states  []string // before the first batch, and after each
	hosts   [][]byte // likewise
}

// index returns the index of the state after n batches.
func (t *story) index(n int) uint64 {
	if n == 0 {
		return 0
	}
	return t.batches[n-1].Index
}

// at returns the number of batches up to an index; false if no batch ends there.
func (t *story) at(index uint64) (int, bool) {
	for n := range len(t.batches) + 1 {
		if t.index(n) == index {
			return n, true
		}
	}
	return 0, false
}

// tell draws a story of n batches, and learns the expected results from a state machine that gets a
// single command at a time.
func (s *stage) tell(n int) *story {
	t := &story{}
	index := uint64(0)
	for i := range n {
		b := rawnode.Batch{Index: index + 1 + uint64(s.rng.IntN(3))}
		index = b.Index
		for range s.rng.IntN(6) {
			b.Commands = append(b.Commands, s.f.Command(s.rng))
		}
		if i == 0 || s.rng.IntN(2) == 0 {
			b.Host = fmt.Appendf(nil, "host at %d", index)
		}
		t.batches = append(t.batches, b)
	}
	s.learn(t)
	return t
}

func (s *stage) learn(t *story) {
	m := s.fresh()
	defer m.end()
	t.results, t.states, t.hosts = nil, []string{m.read()}, [][]byte{nil}
	index, host := uint64(0), []byte(nil)
	for _, b := range t.batches {
		var results []any
		for _, c := range b.Commands {
			index++
			got, err := m.sm.Apply(rawnode.Batch{Index: index, Commands: [][]byte{append([]byte{}, c...)}})
			if err == nil && len(got) != 1 {
				err = fmt.Errorf("%d results of 1 command", len(got))
			}
			calls("method Apply of one command", err)
			results = append(results, got[0])
		}
		if b.Host != nil {
			host = b.Host
		}
		t.results, t.states, t.hosts = append(t.results, results), append(t.states, m.read()), append(t.hosts, host)
	}
}

// modelled compares a story with the model.
func (s *stage) modelled(t *story) {
	if s.f.Model == nil {
		return
	}
	model, text := s.f.Model(), t.states[0]
	for i, b := range t.batches {
		for _, c := range b.Commands {
			text = model(c)
		}
		if text != t.states[i+1] {
			breaks("after %d batches, one command at a time, readers see %s", i+1, differ(t.states[i+1], text))
		}
	}
}

// apply applies batches from to until of a story, and compares the results.
func (m *subject) apply(t *story, from, until int) {
	for i := from; i < until; i++ {
		b := copyBatch(t.batches[i])
		results, err := m.sm.Apply(b)
		if err != nil {
			breaks("method Apply of index %d: %w", b.Index, err)
		}
		if len(results) != len(b.Commands) {
			breaks("method Apply of index %d: %d results of %d commands, want one for each", b.Index, len(results), len(b.Commands))
		}
		for k := range results {
			if !sameResult(results[k], t.results[i][k]) {
				breaks("method Apply of index %d: the result of command %d is %v, at another replica %v", b.Index, k, results[k], t.results[i][k])
			}
		}
		if !reflect.DeepEqual(b, copyBatch(t.batches[i])) {
			breaks("method Apply of index %d has changed the batch that it was given", b.Index)
		}
	}
}

// copyBatch returns a copy of a batch that shares no memory with the batch.
func copyBatch(b rawnode.Batch) rawnode.Batch {
	c := rawnode.Batch{Index: b.Index}
	if b.Host != nil {
		c.Host = append([]byte{}, b.Host...)
	}
	for _, command := range b.Commands {
		c.Commands = append(c.Commands, append([]byte{}, command...))
	}
	return c
}

// sameResult compares errors by their texts.
func sameResult(a, b any) bool {
	x, ok := a.(error)
	y, both := b.(error)
	if ok && both {
		return x.Error() == y.Error()
	}
	return reflect.DeepEqual(a, b)
}

// is compares the text of Read with the state after n batches.
func (m *subject) is(t *story, n int) {
	if text := m.read(); text != t.states[n] {
		breaks("at index %d readers see %s", t.index(n), differ(text, t.states[n]))
	}
}

// survived compares the results of Load, and the state, with the story, and returns the number of
// batches in the state.
func (m *subject) survived(t *story, index uint64, host []byte) int {
	n, ok := t.at(index)
	if !ok {
		breaks("method Load returns index %d, where no batch ended", index)
	}
	if string(host) != string(t.hosts[n]) {
		breaks("method Load returns index %d with the host's bytes %q, want %q, as of that index", index, host, t.hosts[n])
	}
	when(func() { m.is(t, n) }, "method Load returns index %d", index)
	return n
}

// replay compares what has survived, and has the log replay the rest, up to n batches.
func (m *subject) replay(t *story, index uint64, host []byte, n int) {
	m.apply(t, m.survived(t, index, host), n)
	when(func() { m.is(t, n) }, "the log was replayed from index %d", index)
}

// differ shows the first difference of two texts.
func differ(got, want string) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	show := func(s string) string {
		from, to := max(0, at-20), min(len(s), at+60)
		return fmt.Sprintf("%q", s[min(from, len(s)):to])
	}
	return fmt.Sprintf("%s, want %s (%d bytes and %d; they part at %d)", show(got), show(want), len(got), len(want), at)
}
