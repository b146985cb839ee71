// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/weftraft/weft/internal/dirlock"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
)

// Memory makes a [Machine] a [rawnode.StateMachine]: durable over restarts by
// checkpoints and the log, with snapshots for other nodes, and each command applied
// once. Host and readers may use it at the same time.
//
// A checkpoint is a file with the state, its log index and the host's bytes. It
// appears by a rename behind a sync, so that a crash leaves the old one or the new
// one. A snapshot for another node is a checkpoint too, of the present state. While
// there is no room on the disk no checkpoint is made, the log is kept, and commands
// are applied all the same.
type Memory[M Machine] struct {
	opts Options
	make func() M
	dir  io.Closer
	// forks: the machine is a Forker; digests: it is a Digester.
	forks, digests bool
	// whole has a token while Write or Digest reads a machine that is no Forker. Taken inside mu.
	whole chan struct{}

	// mu guards the state. A checkpoint of a machine that is no Forker holds it for
	// reading.
	mu       lock
	machine  M
	sessions *envelope.Sessions // nil: without
	applied  uint64
	host     []byte
	since    int64 // what commands have cost since the last checkpoint began

	// files guards the directory, and is taken before mu.
	files sync.Mutex
	last  checkpoint
	// limitsKept: limitsFile has the limits of sessions.
	limitsKept bool
	durable    atomic.Uint64 // last.index

	interrupted atomic.Pointer[error]
	closed      atomic.Bool
	busy        atomic.Bool    // a checkpoint is under way in the background
	background  sync.WaitGroup // of it
	begun       sync.Mutex     // orders background.Add before its Wait
}

// Static checks of what a host looks for.
var (
	_ rawnode.StateMachine  = (*Memory[Machine])(nil)
	_ rawnode.Interruptible = (*Memory[Machine])(nil)
)

// OpenMemory opens the state in opts.Dir, or an empty one. newMachine returns an empty
// machine, and is called again for each snapshot that is restored. Errors wrap
// [ErrInvalid], [ErrLocked], [ErrIdentity], [ErrDamaged] or [ErrVersion] where one of
// these applies, and leave the directory as it was.
func OpenMemory[M Machine](newMachine func() M, opts Options) (*Memory[M], error) {
	err := opts.Validate()
	if newMachine == nil {
		err = errors.Join(err, fmt.Errorf("%w: newMachine is nil, want a function that returns an empty machine", ErrInvalid))
	} else if isNil(newMachine()) {
		err = errors.Join(err, fmt.Errorf("%w: newMachine returned nil, want an empty machine", ErrInvalid))
	}
	if err != nil {
		return nil, err
	}
	opts.setDefaults()
	m := &Memory[M]{opts: opts, make: newMachine, whole: make(chan struct{}, 1)}
	if err := dirlock.Make(opts.FS, opts.Dir); err != nil {
		return nil, fmt.Errorf("make state directory %s: %w", opts.Dir, err)
	}
	if m.dir, err = dirlock.Take(opts.FS, opts.Dir); err != nil {
		return nil, fmt.Errorf("%w: lock %s: %w; close the other one first", ErrLocked, opts.Dir, err)
	}
	if err := m.open(); err != nil {
		return nil, errors.Join(err, m.dir.Close())
	}
	return m, nil
}

// open reads the last checkpoint.
func (m *Memory[M]) open() error {
	c, err := m.newest()
	if err != nil {
		return err
	}
	if c.index > 0 {
		if err := m.checkLimits(); err != nil {
			return fmt.Errorf("state in %s: %w", m.opts.Dir, err)
		}
	}
	s, err := m.read(c)
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w; nothing was changed, restore the directory from a copy of the stopped node, with its log, or replace the node", err)
	}
	if err != nil {
		return err
	}
	if c.index > 0 {
		// The process that made the checkpoint may have been killed before its name was durable.
		if err := dirlock.Sync(m.opts.FS, m.opts.Dir); err != nil {
			return err
		}
	}
	m.put(s)
	_, m.forks = Machine(s.machine).(Forker)
	_, m.digests = Machine(s.machine).(Digester)
	m.last = c
	m.durable.Store(c.index)
	m.tidy()
	return nil
}

// isNil reports whether a machine is nil, or a nil pointer or map, which Apply could not change.
func isNil(machine any) bool {
	r := reflect.ValueOf(machine)
	return machine == nil || (r.Kind() == reflect.Pointer || r.Kind() == reflect.Map) && r.IsNil()
}

// contents is a state with all that belongs to it.
type contents[M Machine] struct {
	machine  M
	sessions *envelope.Sessions
	applied  uint64
	host     []byte
}

// put puts a state into force. The caller holds mu, or is alone.
func (m *Memory[M]) put(s contents[M]) {
	m.machine, m.sessions, m.applied, m.host, m.since = s.machine, s.sessions, s.applied, s.host, 0
}

// Load implements [rawnode.StateMachine]. What was applied since the last checkpoint,
// by another host of the same Memory, is made durable first.
func (m *Memory[M]) Load() (applied uint64, host []byte, err error) {
	if m.closed.Load() {
		return 0, nil, ErrClosed
	}
	m.interrupted.Store(nil)
	if err := m.Checkpoint(); err != nil {
		return 0, nil, fmt.Errorf("load state in %s: %w", m.opts.Dir, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.applied, m.host, nil
}

// Apply implements [rawnode.StateMachine].
func (m *Memory[M]) Apply(b rawnode.Batch) ([]any, error) {
	results, due, err := m.apply(b)
	if err == nil && due {
		m.inBackground()
	}
	return results, err
}

// apply reports whether a checkpoint is due.
func (m *Memory[M]) apply(b rawnode.Batch) (results []any, due bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ended(); err != nil {
		return nil, false, err
	}
	if b.Index <= m.applied {
		return nil, false, fmt.Errorf("%w: a batch of index %d for a state at index %d, want a higher one: nothing is applied twice", ErrInvalid, b.Index, m.applied)
	}
	results = make([]any, len(b.Commands))
	for i, c := range b.Commands {
		if results[i], err = m.one(c); err != nil {
			return nil, false, fmt.Errorf("apply command %d of the batch of index %d: %w", i, b.Index, err)
		}
		m.since += int64(len(c)) + commandCost
	}
	if m.sessions != nil {
		m.sessions.Changes() // are not written one by one
	}
	m.applied = b.Index
	if b.Host != nil {
		m.host = b.Host
	}
	return results, m.since >= m.enough(), nil
}

// one applies one command.
func (m *Memory[M]) one(command []byte) (any, error) {
	if m.sessions == nil {
		return m.run(command), nil
	}
	return m.sessions.Apply(command, func(inner []byte) (any, error) { return m.run(inner), nil })
}

// run has the machine apply a command. A panic ends the process, unless the machine is [Unharmed] by
// it: each replica would come to it, so that the result is the same at all of them.
func (m *Memory[M]) run(command []byte) (result any) {
	ended := false
	defer func() {
		if ended {
			return
		}
		m.opts.Logf("Apply panics at a command of %d bytes that begins with %q, behind index %d", len(command), command[:min(len(command), 64)], m.applied)
		if _, unharmed := Machine(m.machine).(Unharmed); unharmed {
			m.opts.Logf("the panic becomes the command's result: %v\n%s", recover(), debug.Stack())
			result = ErrPanicked
		}
	}()
	result = m.machine.Apply(command)
	ended = true
	return result
}

// enough is for what cost of commands a checkpoint is made.
func (m *Memory[M]) enough() int64 {
	if n := m.opts.CheckpointBytes; n > 0 {
		return n
	}
	return max(DefaultCheckpointBytes, int64(m.lastBytes()))
}

// Durable implements [rawnode.StateMachine].
func (m *Memory[M]) Durable() (uint64, error) { return m.durable.Load(), nil }

// Applied returns the log index of the present state.
func (m *Memory[M]) Applied() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.applied
}

// View calls f with the present state, between two batches of commands. f must not
// change the state, nor keep a part of it that commands change. A read behind
// [rawnode.Host.Read] is linearizable.
func (m *Memory[M]) View(f func(M)) {
	_ = m.ViewContext(context.Background(), f) // which never ends
}

// ViewContext is View for as long as ctx allows: while commands are applied, or a checkpoint of a
// machine that is no [Forker] is written and commands wait, f waits. The error is the cause of ctx's
// end, and f was not called then.
func (m *Memory[M]) ViewContext(ctx context.Context, f func(M)) error {
	b, err := m.mu.enter(ctx)
	if err != nil {
		return err
	}
	defer m.mu.leave(b)
	f(m.machine)
	return nil
}

// Interrupt implements [rawnode.Interruptible].
func (m *Memory[M]) Interrupt(reason error) {
	err := fmt.Errorf("%w: %w", ErrInterrupted, reason)
	m.interrupted.Store(&err)
}

// ended returns nil, or why nothing is to go on.
func (m *Memory[M]) ended() error {
	if m.closed.Load() {
		return ErrClosed
	}
	if err := m.interrupted.Load(); err != nil {
		return *err
	}
	return nil
}

// Close waits for a checkpoint that is under way, however long that takes, and lets go of the
// directory: a bound would leave a goroutine with files of a directory that another process may
// lock. Node.Close of package weft waits no longer than its context. The host should have stopped,
// and snapshots been closed. What was applied since the last
// checkpoint is left to the log; a program that wants a start with less to replay calls
// [Memory.Checkpoint] first. A second call does nothing.
func (m *Memory[M]) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	m.begun.Lock()
	m.begun.Unlock() //nolint:staticcheck // who begins later sees closed
	m.background.Wait()
	m.files.Lock() // a checkpoint that someone asked for
	defer m.files.Unlock()
	return m.dir.Close()
}
