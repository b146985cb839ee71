// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"bytes"
	"slices"
)

// patienceTicks bounds how long a group that nothing disturbs may take to commit.
const patienceTicks = 120

// goesOn reports why nobody in a group leads, commits and applies although from now on nothing goes
// wrong: all nodes are up and connected, hosts apply, late messages are lost.
func (x *explorer) goesOn(from *world) string {
	w := *from
	w.split, w.late = 0, nil
	hung := w.hung
	w.hung, w.bare = 0, 0
	for i, n := range w.nodes {
		switch {
		case n == nil:
		case !n.up:
			x.begin(&w, i)
		case w.slow>>i&1 == 1:
			w.slow &^= 1 << i
			x.input(&w, i, input{kind: inResume})
		}
		if n != nil && n.up && hung>>i&1 == 1 {
			x.input(&w, i, input{kind: inSync})
		}
	}
	at := &w
	var passed []uint64
	for range patienceTicks {
		at = x.settle(at)
		if at.broken != "" {
			return "afterwards: " + at.broken
		}
		key := at.print()
		if _, ok := x.live[key]; ok || at.hasApplied(probe) {
			x.lives(passed)
			return ""
		}
		passed = append(passed, key)
		at = x.do(at, act{deed: actBeat})
		at.used[actBeat] = 0
		if l := at.leader(); l >= 0 && !at.nodes[l].has(probe, at.nodes[l].disk.last()) {
			x.input(at, l, input{kind: inPropose, arg: probe})
		}
	}
	return "liveness: nobody leads, commits and applies, although all nodes are up and connected and hosts apply"
}

// probe is the payload that a group must be able to commit in the end.
const probe = -99

func (x *explorer) lives(keys []uint64) {
	for _, k := range keys {
		x.live[k] = struct{}{}
	}
}

// settle delivers all messages.
func (a *automata) settle(w *world) *world {
	for range 10_000 {
		if len(w.round) == 0 && len(w.next) > 0 {
			again := *w
			again.round, again.next = w.next, nil
			w = &again
		}
		if len(w.round) == 0 || w.broken != "" {
			return w
		}
		w = a.do(w, act{deed: actDeliver})
	}
	again := *w
	again.broken = "messages without an end"
	return &again
}

// hasApplied reports whether the leader's host has applied an entry with a payload.
func (w *world) hasApplied(name int) bool {
	l := w.leader()
	return l >= 0 && w.nodes[l].has(name, w.nodes[l].applied)
}

// has reports whether a log has an entry with a payload up to an index.
func (n *state) has(name int, upTo uint64) bool {
	want := payload(name)
	return slices.ContainsFunc(n.disk.log, func(e *stored) bool { return e.index <= upTo && bytes.Equal(e.pb.GetData(), want) })
}
