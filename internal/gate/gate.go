// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate stands between Pebble and the disk, because Pebble does not survive a
// write that fails: it panics (blob files), tries again at once and without end
// (flushes), or ends the process (its manifest).
package gate

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// defaultRetry is how often what found no room on the disk is tried again.
const defaultRetry = 200 * time.Millisecond

// Options configures a gate.
type Options struct {
	// Retry is the time between two tries of what finds no room; 0 means defaultRetry.
	Retry time.Duration
	// Logf is told when room ends and comes, and of a failure. Required.
	Logf func(format string, args ...any)
	// Full is wrapped by what says that there is no room, Failed by what says that the
	// disk has failed. Required.
	Full, Failed error
	// Mark, unless nil, adds to the reason of a failure what kind of failure it is.
	Mark func(error) error
}

// Gate lets no error of a write get to Pebble. What finds no room waits here and is
// tried again. Any other failure shuts the gate: from then on nothing changes on the
// disk, and what was durable stays.
//
// Invariant: once the gate is shut, no operation begins. Such an operation waits until the
// process ends, as does the one that failed.
type Gate struct {
	opts Options

	// disk is held shared by each operation while it is on the disk, and taken
	// to shut the gate: when shut returns, none is under way.
	disk sync.RWMutex

	mu     sync.Mutex
	stuck  int           // operations that wait for room
	filled chan struct{} // closed while any does
	room   chan struct{} // closed when none does any more; nil if none does
	full   error         // what the first of them met
	err    error         // why the gate is shut
	dead   chan struct{} // closed with err set

	isFull  atomic.Bool   // stuck > 0
	written atomic.Uint64 // bytes
	pending atomic.Int64  // operations on the disk
	ended   atomic.Uint64 // operations that were
}

// New returns an open gate.
func New(o Options) *Gate {
	if o.Retry == 0 {
		o.Retry = defaultRetry
	}
	if o.Mark == nil {
		o.Mark = func(err error) error { return err }
	}
	return &Gate{opts: o, filled: make(chan struct{}), dead: make(chan struct{})}
}

// Dead returns a channel that is closed when the gate is shut; Failure then says why.
func (g *Gate) Dead() <-chan struct{} { return g.dead }

// Written returns how many bytes were written through the gate.
func (g *Gate) Written() uint64 { return g.written.Load() }

// Progress returns how many operations are on the disk, and how many were. If the first is not
// 0, and the second stays as it is, the disk does not answer.
func (g *Gate) Progress() (pending int64, ended uint64) { return g.pending.Load(), g.ended.Load() }

// noRoom reports whether an error is one that goes away when files are removed.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// do runs an operation that changes the disk, again and again while there is no
// room for it. The operation must be one that can be repeated after it failed
// for lack of room.
func (g *Gate) do(what string, op func() error) error {
	waits := false
	for {
		err := g.once(op)
		if !noRoom(err) {
			if waits {
				g.unstick()
			}
			return g.passed(what, err)
		}
		if !waits {
			waits = true
			g.stick(what, err)
		}
		select {
		case <-time.After(g.opts.Retry):
		case <-g.dead:
		}
	}
}

// try runs an operation that must not be repeated.
func (g *Gate) try(what string, op func() error) error { return g.passed(what, g.once(op)) }

// once runs an operation if the gate is open.
func (g *Gate) once(op func() error) error {
	g.disk.RLock()
	if g.Failure() != nil {
		g.disk.RUnlock()
		select {} // see the invariant
	}
	defer g.disk.RUnlock()
	g.pending.Add(1)
	defer func() {
		g.ended.Add(1)
		g.pending.Add(-1)
	}()
	return op()
}

// passed returns the errors that Pebble expects. It does not return with others.
func (g *Gate) passed(what string, err error) error {
	if err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) {
		return err
	}
	g.Fail(fmt.Errorf("%s: %w", what, err))
	select {} // see the invariant
}

// Fail shuts the gate for a reason that does not go away.
func (g *Gate) Fail(err error) {
	g.opts.Logf("the state cannot be written any more: %v", err)
	g.Shut(fmt.Errorf("%w: %w; restart the node when the cause is gone", g.opts.Failed, g.opts.Mark(err)))
}

func (g *Gate) stick(what string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stuck++; g.stuck == 1 {
		g.full = fmt.Errorf("%w: %s: %w", g.opts.Full, what, err)
		g.room = make(chan struct{})
		close(g.filled)
		g.isFull.Store(true)
		g.opts.Logf("no room for the state; what is new waits until there is: %v", g.full)
	}
}

func (g *Gate) unstick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stuck--; g.stuck == 0 {
		close(g.room)
		g.full, g.room, g.filled = nil, nil, make(chan struct{})
		g.isFull.Store(false)
		g.opts.Logf("there is room for the state again")
	}
}

// Fills returns a channel that is closed when there is no room.
func (g *Gate) Fills() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.filled
}

// Stalled returns why the state waits, or nil.
func (g *Gate) Stalled() error {
	if !g.isFull.Load() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.full
}

// wait returns true when there is room, false when ended is closed before that, or an
// error if the gate is shut.
func (g *Gate) wait(ended <-chan struct{}) (room bool, err error) {
	for g.isFull.Load() {
		g.mu.Lock()
		comes := g.room
		g.mu.Unlock()
		if comes == nil {
			continue
		}
		select {
		case <-comes:
		case <-g.dead:
			return false, g.Failure()
		case <-ended:
			return false, nil
		}
	}
	return true, g.Failure()
}

// Failure returns why the gate is shut, or nil.
func (g *Gate) Failure() error {
	select {
	case <-g.dead:
		return g.err
	default:
		return nil
	}
}

// Shut ends all changes of the disk. The first reason counts. It may be called
// from within an operation.
func (g *Gate) Shut(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
		close(g.dead)
	}
}

// Settle returns when no operation is on the disk. The gate must be shut.
func (g *Gate) Settle() {
	g.disk.Lock()
	defer g.disk.Unlock()
}

// Logger is for Pebble: its errors are passed on, and its reports of progress left out.
type Logger struct{ gate *Gate }

// Logger returns one.
func (g *Gate) Logger() Logger { return Logger{g} }

// Infof implements pebble.Logger.
func (l Logger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l Logger) Errorf(format string, args ...any) { l.gate.opts.Logf("pebble: "+format, args...) }

// Fatalf must not return, because Pebble calls it when going on would lose data: the
// caller waits until the process ends.
func (l Logger) Fatalf(format string, args ...any) {
	l.gate.Fail(fmt.Errorf("pebble: "+format, args...))
	select {}
}
