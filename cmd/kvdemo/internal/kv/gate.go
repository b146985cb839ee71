// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

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

// gate stands between Pebble and the disk, as Pebble does not survive a write
// that fails: it panics (blob files), tries again at once and for ever (flushes)
// or ends the process (its manifest). So no such error gets to Pebble. What finds
// no room waits here and is tried again. Any other failure shuts the gate: from
// then on nothing changes on the disk, and what was durable stays.
//
// Invariant: once the gate is shut, no operation begins. It waits for ever, as
// does the one that failed; their goroutines are left behind when the process
// ends.
type gate struct {
	retry time.Duration
	logf  func(string, ...any)

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
}

func newGate(retry time.Duration, logf func(string, ...any)) *gate {
	return &gate{retry: retry, logf: logf, filled: make(chan struct{}), dead: make(chan struct{})}
}

// noRoom says whether an error is one that goes away when files are removed.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// do runs an operation that changes the disk, again and again while there is no
// room for it. The operation must be one that can be repeated after it failed
// for lack of room.
func (g *gate) do(what string, op func() error) error {
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
		case <-time.After(g.retry):
		case <-g.dead:
		}
	}
}

// try runs an operation that must not be repeated.
func (g *gate) try(what string, op func() error) error { return g.passed(what, g.once(op)) }

// once runs an operation if the gate is open.
func (g *gate) once(op func() error) error {
	g.disk.RLock()
	if g.failure() != nil {
		g.disk.RUnlock()
		select {} // see the invariant
	}
	defer g.disk.RUnlock()
	return op()
}

// passed returns the errors that Pebble expects. It does not return with others.
func (g *gate) passed(what string, err error) error {
	if err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) {
		return err
	}
	g.fail(fmt.Errorf("%s: %w", what, err))
	select {} // see the invariant
}

// fail shuts the gate for a reason that does not go away.
func (g *gate) fail(err error) {
	g.logf("the state cannot be written any more: %v", err)
	g.shut(fmt.Errorf("%w: %w; restart the node when the cause is gone", ErrFailed, damage(err)))
}

func (g *gate) stick(what string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stuck++; g.stuck == 1 {
		g.full = fmt.Errorf("%w: %s: %w", ErrFull, what, err)
		g.room = make(chan struct{})
		close(g.filled)
		g.isFull.Store(true)
		g.logf("no room for the state; what is new waits until there is: %v", g.full)
	}
}

func (g *gate) unstick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stuck--; g.stuck == 0 {
		close(g.room)
		g.full, g.room, g.filled = nil, nil, make(chan struct{})
		g.isFull.Store(false)
		g.logf("there is room for the state again")
	}
}

// fills returns a channel that is closed when there is no room.
func (g *gate) fills() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.filled
}

// stalled returns why the state waits, or nil.
func (g *gate) stalled() error {
	if !g.isFull.Load() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.full
}

// wait returns when there is room, or with an error if the gate is shut or the
// waiting was ended.
func (g *gate) wait(ended <-chan struct{}) error {
	for {
		if !g.isFull.Load() {
			return g.failure()
		}
		g.mu.Lock()
		room := g.room
		g.mu.Unlock()
		if room == nil {
			continue
		}
		select {
		case <-room:
		case <-g.dead:
		case <-ended:
			return fmt.Errorf("%w; the host has ended, the log has what is not applied", g.stalled())
		}
		if err := g.failure(); err != nil {
			return err
		}
	}
}

// failure returns why the gate is shut, or nil.
func (g *gate) failure() error {
	select {
	case <-g.dead:
		return g.err
	default:
		return nil
	}
}

// shut ends all changes of the disk. The first reason counts. It may be called
// from within an operation.
func (g *gate) shut(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
		close(g.dead)
	}
}

// settle returns when no operation is on the disk. The gate must be shut.
func (g *gate) settle() {
	g.disk.Lock()
	defer g.disk.Unlock()
}
