// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/weftraft/weft/rawnode"
)

// machine stands between a host and the user's state machine. It takes this package's own
// commands out, and passes everything else on: the host's bytes, the bodies of snapshots
// and the user's commands are the same on both sides.
type machine struct {
	user     StateMachine
	group    uint64
	book     *book
	comparer *comparer
	logger   *slog.Logger
}

// newMachine is newComparedMachine without comparisons.
func newMachine(user StateMachine, group uint64, book *book, logger *slog.Logger) rawnode.StateMachine {
	return newComparedMachine(user, group, book, nil, logger)
}

// newComparedMachine puts a machine before a state machine, interruptible if that is.
func newComparedMachine(user StateMachine, group uint64, book *book, comparer *comparer, logger *slog.Logger) rawnode.StateMachine {
	m := &machine{user: user, group: group, book: book, comparer: comparer, logger: logger}
	if i, ok := user.(rawnode.Interruptible); ok {
		return &interruptible{m, i}
	}
	return m
}

type interruptible struct {
	*machine
	rawnode.Interruptible
}

// Load implements rawnode.StateMachine.
func (m *machine) Load() (uint64, []byte, error) { return m.user.Load() }

// Durable implements rawnode.StateMachine. What the book's file lacks is not durable.
func (m *machine) Durable() (uint64, error) {
	index, err := m.user.Durable()
	if lacks := m.book.lacks(m.group); err == nil && lacks > 0 {
		index = min(index, lacks-1)
	}
	return index, err
}

// Stalled is looked for by hosts.
func (m *machine) Stalled() error {
	if s, ok := m.user.(interface{ Stalled() error }); ok {
		return s.Stalled()
	}
	return nil
}

// Differs is looked for by hosts.
func (m *machine) Differs() error { return m.comparer.differs() }

// Snapshot implements rawnode.StateMachine.
func (m *machine) Snapshot() (rawnode.Snapshot, error) { return m.user.Snapshot() }

// Restore implements rawnode.StateMachine.
func (m *machine) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	m.comparer.restored()
	return m.user.Restore(meta, body)
}

// Apply implements rawnode.StateMachine.
func (m *machine) Apply(b rawnode.Batch) ([]any, error) {
	results, err := m.applyUsers(b)
	if err == nil {
		err = m.comparer.applied(b, results)
	}
	return results, err
}

// applyUsers applies the user's commands of a batch, and learns the facts in it.
func (m *machine) applyUsers(b rawnode.Batch) ([]any, error) {
	if !slices.ContainsFunc(b.Commands, reserved) {
		return m.apply(b)
	}
	all := b.Commands
	b.Commands = make([][]byte, 0, len(all))
	for _, c := range all {
		if reserved(c) {
			m.take(c, b.Index)
		} else {
			b.Commands = append(b.Commands, c)
		}
	}
	results, err := m.apply(b)
	if err != nil {
		return nil, err
	}
	merged := make([]any, len(all))
	for i, c := range all {
		if !reserved(c) {
			merged[i], results = results[0], results[1:]
		}
	}
	return merged, nil
}

// apply has the user's state machine apply a batch, and checks that each command has a
// result: a caller would otherwise get the result of another one.
func (m *machine) apply(b rawnode.Batch) ([]any, error) {
	results, err := m.user.Apply(b)
	if err == nil && len(results) != len(b.Commands) {
		err = fmt.Errorf("the state machine returned %d results for %d commands: Apply returns one result for each command, nil if there is nothing to say", len(results), len(b.Commands))
	}
	return results, err
}

// take takes a command of this package.
func (m *machine) take(command []byte, index uint64) {
	if kind, _ := ownParts(command); kind == commandCheck || kind == commandDigest {
		return // see comparer
	}
	f, err := decodeFacts(command)
	if err != nil {
		m.logger.Warn("a command of the front is left out", "group", m.group, "index", index, "error", err)
		return
	}
	m.book.learn(f, m.group, index)
}
