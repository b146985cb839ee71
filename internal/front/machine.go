// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/compare"
	"github.com/weftraft/weft/internal/marked"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
)

// Config says what a machine stands between.
type Config struct {
	User     rawnode.StateMachine
	Group    uint64
	Book     *book.Book
	Comparer *compare.Replica // nil: nothing is compared
	Changed  func()           // called when the state has changed; may be nil
	Ended    func(error)      // called when the host has ended; may be nil
	Logger   *slog.Logger
}

// Machine stands between a host and the user's state machine. It takes the module's own
// commands out, and passes everything else on: the host's bytes, the bodies of snapshots
// and the user's commands are the same on both sides.
type Machine struct {
	Config

	unsaved     atomic.Pointer[error] // why the book cannot be written, while Apply waits for that
	interrupted chan struct{}         // closed by Interrupt
}

var _ rawnode.Interruptible = (*Machine)(nil)

// New puts a machine before a user's state machine.
func New(c Config) *Machine { return &Machine{Config: c, interrupted: make(chan struct{})} }

// Load implements rawnode.StateMachine.
func (m *Machine) Load() (uint64, []byte, error) { return m.User.Load() }

// Durable implements rawnode.StateMachine.
func (m *Machine) Durable() (uint64, error) { return m.User.Durable() }

// Stalled is looked for by hosts.
func (m *Machine) Stalled() error {
	if err := m.unsaved.Load(); err != nil {
		return *err
	}
	if s, ok := m.User.(interface{ Stalled() error }); ok {
		return s.Stalled()
	}
	return nil
}

// Settings is looked for by hosts.
func (m *Machine) Settings() []rawnode.Setting {
	if s, ok := m.User.(interface{ Settings() []rawnode.Setting }); ok {
		return s.Settings()
	}
	return nil
}

// SnapshotBytes is looked for by hosts.
func (m *Machine) SnapshotBytes() int64 {
	if s, ok := m.User.(interface{ SnapshotBytes() int64 }); ok {
		return s.SnapshotBytes()
	}
	return 0
}

// Differs is looked for by hosts.
func (m *Machine) Differs() error { return m.Comparer.Differs() }

// Interrupt implements rawnode.Interruptible.
func (m *Machine) Interrupt(reason error) {
	close(m.interrupted)
	if i, ok := m.User.(rawnode.Interruptible); ok {
		i.Interrupt(reason)
	}
	if m.Ended != nil {
		m.Ended(reason)
	}
}

// Query implements rawnode.Querier.
func (m *Machine) Query(ctx context.Context, request []byte) ([]byte, error) {
	if q, ok := m.User.(rawnode.Querier); ok {
		return q.Query(ctx, request)
	}
	return nil, rawnode.ErrNoQueries
}

// EncodeResult implements rawnode.ResultEncoder.
func (m *Machine) EncodeResult(result any) ([]byte, error) {
	if e, ok := m.User.(rawnode.ResultEncoder); ok {
		return e.EncodeResult(result)
	}
	return replica.EncodeResult(result)
}

// Snapshot implements rawnode.StateMachine.
func (m *Machine) Snapshot() (rawnode.Snapshot, error) { return m.User.Snapshot() }

// Restore implements rawnode.StateMachine.
func (m *Machine) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	m.Comparer.Restored()
	defer m.change()
	return m.User.Restore(meta, body)
}

// Apply implements rawnode.StateMachine. The facts of a batch are durable before the user's
// state machine has the batch: a restart does not read entries again that the state has.
func (m *Machine) Apply(b rawnode.Batch) ([]any, error) {
	results, err := m.applyUsers(b)
	if err == nil {
		m.change()
		err = m.Comparer.Applied(b, results)
	}
	return results, err
}

func (m *Machine) change() {
	if m.Changed != nil {
		m.Changed()
	}
}

// numbered reports whether the user's state machine has a place for each command of the log.
func (m *Machine) numbered() bool {
	n, ok := m.User.(interface{ NumbersCommands() bool }) // weft.Numbered
	return ok && n.NumbersCommands()
}

// applyUsers applies the user's commands of a batch, and learns the facts in it.
func (m *Machine) applyUsers(b rawnode.Batch) ([]any, error) {
	if !slices.ContainsFunc(b.Commands, marked.Is) {
		return m.apply(b)
	}
	all, places := b.Commands, m.numbered()
	b.Commands = make([][]byte, 0, len(all))
	for _, c := range all {
		switch {
		case !marked.Is(c):
			b.Commands = append(b.Commands, c)
			continue
		case places:
			b.Commands = append(b.Commands, nil)
		}
		m.take(c, b.Index)
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
		switch {
		case !marked.Is(c):
			merged[i], results = results[0], results[1:]
		case places:
			results = results[1:]
		}
	}
	return merged, nil
}

// apply has the user's state machine apply a batch, and checks that each command has a
// result: a caller would otherwise get the result of another one.
func (m *Machine) apply(b rawnode.Batch) ([]any, error) {
	results, err := m.User.Apply(b)
	if err == nil && len(results) != len(b.Commands) {
		err = fmt.Errorf("the state machine returned %d results for %d commands: Apply returns one result for each command, nil if there is nothing to say", len(results), len(b.Commands))
	}
	return results, err
}

// AdmitChange is looked for by hosts: an id that was removed is not added again. The
// caller's node has looked, too, and the removal may have come since.
func (m *Machine) AdmitChange(conf *pb.ConfState, change *pb.ConfChangeV2) error {
	for _, c := range change.GetChanges() {
		adds := c.GetType() == pb.ConfChangeAddNode || c.GetType() == pb.ConfChangeAddLearnerNode
		if id := c.GetNodeId(); adds && !members.Has(conf, id) && m.Book.Barred(m.Group, id) {
			return book.RemovedBefore(m.Group, id)
		}
	}
	if a, ok := m.User.(interface {
		AdmitChange(*pb.ConfState, *pb.ConfChangeV2) error
	}); ok {
		return a.AdmitChange(conf, change)
	}
	return nil
}

// AdmitFromGateway is looked for by hosts.
func (m *Machine) AdmitFromGateway(command []byte) error {
	if a, ok := m.User.(interface{ AdmitFromGateway(command []byte) error }); ok {
		return a.AdmitFromGateway(command)
	}
	return nil
}

// take takes a command of the module.
func (m *Machine) take(command []byte, index uint64) {
	if kind, _ := marked.Parts(command); kind == marked.Check || kind == marked.Digest {
		return // see comparer
	}
	f, err := book.Decode(command)
	if err != nil {
		m.Logger.Warn("a command of the front is left out", "group", m.Group, "index", index, "error", err)
		return
	}
	m.Book.Learn(f)
}

// saveAgain is the time between two attempts to write the book.
const saveAgain = 250 * time.Millisecond

// saveBook writes the book. If that fails, because the disk is full, saveBook waits for room
// until the host has ended.
func (m *Machine) saveBook() error {
	defer m.unsaved.Store(nil)
	for {
		err := m.Book.Save()
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
