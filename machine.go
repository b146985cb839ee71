// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

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
	changed  func()      // called when the state has changed
	failed   func(error) // called when the host has failed
	logger   *slog.Logger

	unsaved     atomic.Pointer[error] // why the book cannot be written, while Apply waits for that
	interrupted chan struct{}         // closed by Interrupt
}

var _ rawnode.Interruptible = (*machine)(nil)

// newMachine puts a machine before a state machine that nobody watches.
func newMachine(user StateMachine, group uint64, book *book, logger *slog.Logger) *machine {
	return &machine{user: user, group: group, book: book, changed: func() {}, failed: func(error) {}, logger: logger, interrupted: make(chan struct{})}
}

// newMachine puts a machine before the state machine of the group.
func (g *Group) newMachine() *machine {
	m := newMachine(g.user, g.id, g.node.book, g.node.options.Logger)
	m.comparer, m.changed, m.failed = g.comparer, g.changes.notify, g.noteLoss
	return m
}

// Load implements rawnode.StateMachine.
func (m *machine) Load() (uint64, []byte, error) { return m.user.Load() }

// Durable implements rawnode.StateMachine.
func (m *machine) Durable() (uint64, error) { return m.user.Durable() }

// Stalled is looked for by hosts.
func (m *machine) Stalled() error {
	if err := m.unsaved.Load(); err != nil {
		return *err
	}
	if s, ok := m.user.(interface{ Stalled() error }); ok {
		return s.Stalled()
	}
	return nil
}

// Differs is looked for by hosts.
func (m *machine) Differs() error { return m.comparer.differs() }

// Interrupt implements rawnode.Interruptible.
func (m *machine) Interrupt(reason error) {
	close(m.interrupted)
	if i, ok := m.user.(rawnode.Interruptible); ok {
		i.Interrupt(reason)
	}
	m.failed(reason)
}

// Snapshot implements rawnode.StateMachine.
func (m *machine) Snapshot() (rawnode.Snapshot, error) { return m.user.Snapshot() }

// Restore implements rawnode.StateMachine.
func (m *machine) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	m.comparer.restored()
	defer m.changed()
	return m.user.Restore(meta, body)
}

// Apply implements rawnode.StateMachine. The facts of a batch are durable before the user's
// state machine has the batch: a restart does not read entries again that the state has.
func (m *machine) Apply(b rawnode.Batch) ([]any, error) {
	results, err := m.applyUsers(b)
	if err == nil {
		m.changed()
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
	if err := m.saveBook(); err != nil {
		return nil, err
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

// AdmitChange is looked for by hosts: an id that was removed is not added again. The
// caller's node has looked, too, and the removal may have come since.
func (m *machine) AdmitChange(members *pb.ConfState, change *pb.ConfChangeV2) error {
	for _, c := range change.GetChanges() {
		adds := c.GetType() == pb.ConfChangeAddNode || c.GetType() == pb.ConfChangeAddLearnerNode
		if id := c.GetNodeId(); adds && !isMember(members, id) && m.book.barred(m.group, id) {
			return removedBefore(m.group, id)
		}
	}
	if a, ok := m.user.(interface {
		AdmitChange(*pb.ConfState, *pb.ConfChangeV2) error
	}); ok {
		return a.AdmitChange(members, change)
	}
	return nil
}

// removedBefore is the reason for not adding a node.
func removedBefore(group, id uint64) error {
	return fmt.Errorf("%w: node %d of group %d: start the node with an id that was never used, and an empty directory", ErrRemoved, id, group)
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
	m.book.learn(f)
}

// saveAgain is the time between two attempts to write the book.
const saveAgain = 250 * time.Millisecond

// saveBook writes the book. If that fails, because the disk is full, saveBook waits for room
// until the host has ended.
func (m *machine) saveBook() error {
	defer m.unsaved.Store(nil)
	for {
		err := m.book.save()
		if err == nil {
			return nil
		}
		m.unsaved.Store(&err)
		select {
		case <-time.After(saveAgain):
		case <-m.interrupted:
			return err
		}
	}
}
