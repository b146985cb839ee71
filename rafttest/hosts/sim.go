// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// sim is a run.
type sim struct {
	world.Agenda
	story world.Story
	opts  options
	plan  plan
	// Streams of randomness, so that more draws from a stream leave the others
	// alone.
	faults, net, clients world.Draws

	machines []*machine // by id, from 1
	// newProcess makes the program of the run's kind of host.
	newProcess func(*machine) process
	links      *world.Network
	streams    [maxMachines + 1][maxMachines + 1]stream
	sent       int // frames, of cores
	// confAt is the index of the newest configuration by which who left was shut down.
	confAt uint64
	// calm is set when the faults are over.
	calm bool

	check   checker
	rush    rush
	roll    upgrade
	history []access
	reach   reach
	leases  leaseReach
	err     error
}

func (w *sim) addMachine(d *disk) *machine {
	m := &machine{w: w, id: uint64(len(w.machines) + 1), disk: d, spindle: world.NewSpindle(&w.Agenda), lib: w.opts.Library}
	if w.roll.w != nil {
		m.lib = w.target()
	}
	w.machines = append(w.machines, m)
	return m
}

// runUntil lets time pass until an instant, or until done.
func (w *sim) runUntil(t time.Duration, done func() bool) bool {
	for w.err == nil && (done == nil || !done()) {
		if !w.Step(t) {
			return done != nil && done()
		}
	}
	return w.err == nil
}

// fail ends the run.
func (w *sim) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at %v: %w", w.Now(), fmt.Errorf(format, args...))
		w.say(0, "%v", w.err)
	}
}

func (w *sim) say(id uint64, format string, args ...any) {
	w.story.Tell(id, format, args...)
}

// guard runs a part of a process. What a host or a core cannot bear ends the
// run.
func (w *sim) guard(id uint64, f func()) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case broken:
			w.fail("n%d dies: %w", id, p.what)
		default:
			w.fail("n%d panics: %v\n%s", id, p, debug.Stack())
		}
	}()
	f()
}

// live returns the machines that are members, as far as the operator knows.
func (w *sim) live() (ms []*machine) {
	for _, m := range w.machines {
		if !m.gone {
			ms = append(ms, m)
		}
	}
	return ms
}

// leader returns the process that leads in the latest term, or nil.
func (w *sim) leader() process {
	var p process
	term := uint64(0)
	for _, m := range w.machines {
		if m.proc == nil || m.paused {
			continue
		}
		if s := m.proc.common().core.State(); s.Role == raft.StateLeader && s.Term > term {
			p, term = m.proc, s.Term
		}
	}
	return p
}

// upgrade moves a group from one library to the next, a member at a time.
type upgrade struct {
	w     *sim
	stage int // of Options.Rolling; all members of earlier stages have moved
	done  bool
	// densify says that coded entries are to come to an end.
	densify bool
}

// target is the library of new processes.
func (w *sim) target() library {
	if len(w.opts.Rolling) == 0 {
		return w.opts.Library
	}
	return w.opts.Rolling[min(w.roll.stage, len(w.opts.Rolling)-1)]
}

// types is how many message types hosts count. A host for several libraries is
// built for all of them.
func (w *sim) types() int {
	n := w.opts.Library.Types
	for _, lib := range w.opts.Rolling {
		n = max(n, lib.Types)
	}
	return n
}
