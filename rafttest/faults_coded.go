// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"
)

// This file is the faults of coding, and the operators' answers.

// beginCoded plans the first of each kind of fault.
func (f *faults) beginCoded(seed uint64) {
	c := f.s.plan.coded
	if c == nil {
		return
	}
	f.every(c.upgrade, f.upgrade)
	f.every(c.dense, f.densify)
	f.every(c.replace, f.s.replaceMembers)
	f.every(c.blackout, f.blackout)
	f.beginFalls()
	f.beginBrief(seed)
	f.s.After(watchEvery, f.s.check.watch)
}

// blackout takes the power from all nodes.
func (f *faults) blackout() {
	f.s.coded.WholeRestarts++
	f.s.tell(0, "blackout")
	for _, n := range f.s.nodes {
		f.crash(n)
	}
}

// upgrade restarts, with coding, a node that runs without.
func (f *faults) upgrade() {
	s := f.s
	for _, n := range s.nodes {
		if n.uncoded && n.up() && !n.paused {
			s.coded.Upgrades++
			s.turnCoding(n, true)
			return
		}
	}
}

// turnCoding restarts a node's process with coding on or off.
func (s *sim) turnCoding(n *node, on bool) {
	s.tell(n.id, "coding turns to %v", on)
	n.uncoded = !on
	if n.up() {
		n.crash(true)
		n.restart()
	}
}

// densify asks all nodes for a log without coded entries. When it is so
// everywhere, nodes are restarted without coding, and some time later with it
// again.
func (f *faults) densify() {
	s := f.s
	if s.densifying {
		return
	}
	s.tell(0, "densify")
	s.densifying = true
	s.setDensify()
	f.awaitDense(20)
}

// awaitDense looks whether the log is dense, some times.
func (f *faults) awaitDense(tries int) {
	s := f.s
	s.After(50*time.Millisecond, func() {
		switch {
		case s.calm() || !s.densifying:
			return
		case tries == 0:
			s.densifying = false
			s.setDensify()
		case !s.mayRunPlain():
			s.setDensify()
			f.awaitDense(tries - 1)
		default:
			s.coded.Densified++
			for _, n := range s.nodes {
				if n.up() && !n.paused && s.rng.Chance(0.5) {
					s.coded.Downgrades++
					s.turnCoding(n, false)
				}
			}
			s.After(s.rng.Span(10*time.Millisecond, time.Second), s.endDense)
		}
	})
}

// setDensify tells all nodes that run whether to make their logs dense.
func (s *sim) setDensify() {
	for _, n := range s.running() {
		if !n.uncoded && !n.paused {
			n.proc.rn.Densify(s.densifying)
			n.proc.did(nil)
		}
	}
}

// mayRunPlain reports whether nodes may run without coding: all know that no
// coded entries are to be made, no disk has a coded entry, and no node lacks an
// entry that another has ever had, so that no entry is on its way.
func (s *sim) mayRunPlain() bool {
	if !s.dense() {
		return false
	}
	for _, n := range s.nodes {
		if n.disk == nil {
			continue
		}
		if !n.up() && !n.retired || n.paused || n.disk.durable.state.commit < s.check.lastCoded {
			return false
		}
	}
	return true
}

// endDense restarts, with coding, the nodes that run without.
func (s *sim) endDense() {
	if !s.densifying || s.end.live {
		return
	}
	s.densifying = false
	for _, n := range s.nodes {
		if n.uncoded && s.plan.coded.late>>n.id&1 == 0 {
			s.turnCoding(n, true)
		}
	}
	s.setDensify()
}
