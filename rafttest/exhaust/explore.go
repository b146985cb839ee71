// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"fmt"
	"io"
	"strings"
	"time"

	engine "github.com/weftraft/weft/internal/world" // world is a type here
	"github.com/weftraft/weft/raft"
)

// bounds limit an exploration.
type bounds struct {
	// Deviations is how often in a path something happens that need not: see the package's
	// comment.
	Deviations int
	// States ends the exploration; 0: no bound.
	States int
	// Time ends it, too; 0: no bound.
	Time time.Duration
	// Progress, if set, gets a line now and then.
	Progress io.Writer
}

// result says what an exploration covered.
type result struct {
	// States is how many worlds were expanded, Transitions how many acts were carried out,
	// Depth how many acts the longest path has.
	States, Transitions, Depth int
	// Ends is how many worlds had nothing left to happen but deviations; from each the
	// group went on to lead and commit.
	Ends int
	// Nodes is how many states single nodes were in.
	Nodes int
	// Complete says that every world within the bound was expanded. Deviations is the number
	// of deviations up to which every world was expanded.
	Complete   bool
	Deviations int
	Took       time.Duration
	// Wrong is what does not hold, with Path to it; empty if all holds.
	Wrong, Path string
}

// String returns the result in a line.
func (r result) String() string {
	rate := float64(r.States) / max(r.Took.Seconds(), 1e-9)
	return fmt.Sprintf("%d states, %d transitions, depth %d, %d ends, %d states of nodes, complete to %d deviations, %.1fs, %.0f states/s",
		r.States, r.Transitions, r.Depth, r.Ends, r.Nodes, r.Deviations, r.Took.Seconds(), rate)
}

// place is a world that was reached: the place before, and the act.
type place struct {
	before uint32
	depth  uint16
	cost   uint8
	deed   deed
	arg    uint8
	keep   uint8
	slow   bool
}

func (p place) act() act { return act{deed: p.deed, arg: p.arg, keep: p.keep, slow: p.slow} }

// explorer goes through worlds in order of their deviations, and expands each once.
type explorer struct {
	*automata
	bounds bounds
	began  time.Time
	// seen is the prints of worlds that were reached, places where.
	seen   map[uint64]struct{}
	places []place
	root   *world
	// open is the worlds to be expanded, by cost, and kept how many of these are at hand.
	open [][]waiting
	kept int
	live map[uint64]struct{} // worlds from which the group is known to go on
	r    result
}

// waiting is a world to be expanded, and where it was reached. Beyond mostWorlds a world is nil, and
// made again from its place: all states of its nodes are known.
type waiting struct {
	at uint32
	w  *world
}

// mostWorlds bounds the worlds that wait at hand, of less than a kilobyte each.
const mostWorlds = 100_000

// explore explores a scenario.
func explore(s *scenario, bounds bounds) result { return run(s, bounds).r }

func run(s *scenario, bounds bounds) *explorer {
	engine.CollectLess()
	x := &explorer{automata: newAutomata(s), bounds: bounds, began: time.Now(), seen: map[uint64]struct{}{}, live: map[uint64]struct{}{}}
	x.open = make([][]waiting, bounds.Deviations+1)
	root, wrong := x.prepare()
	x.root = root
	x.places = append(x.places, place{})
	x.seen[root.print()] = struct{}{}
	if wrong == "" {
		x.wait(0, 0, root)
		x.run()
	} else {
		x.fail(wrong, 0)
	}
	x.r.Nodes, x.r.Took = len(x.states), time.Since(x.began)
	return x
}

// run expands all that is open, the cheapest first.
func (x *explorer) run() {
	x.r.Deviations = -1
	for cost := range x.open {
		for len(x.open[cost]) > 0 {
			last := len(x.open[cost]) - 1
			next := x.open[cost][last]
			x.open[cost] = x.open[cost][:last]
			if next.w != nil {
				x.kept--
			} else {
				next.w = x.world(next.at)
			}
			if !x.follow(next.w, next.at) {
				return
			}
		}
		x.open[cost] = nil
		x.r.Deviations = cost
	}
	x.r.Complete = true
}

// wait has a world wait until it is expanded.
func (x *explorer) wait(cost int, at uint32, w *world) {
	if x.kept >= mostWorlds {
		w = nil
	} else {
		x.kept++
	}
	x.open[cost] = append(x.open[cost], waiting{at, w})
}

// follow expands a world, then the first world behind it that costs nothing, and so
// on, until no such world is new. It reports whether to go on.
func (x *explorer) follow(w *world, at uint32) bool {
	for w != nil {
		if !x.within() {
			return false
		}
		x.r.States++
		p := x.places[at]
		x.r.Depth = max(x.r.Depth, int(p.depth))
		var next *world
		var nextAt uint32
		acts := x.s.acts(w)
		if len(acts) == 0 || acts[0].cost > 0 {
			x.r.Ends++
			if wrong := x.goesOn(w); wrong != "" {
				x.fail(wrong, at)
				return false
			}
		}
		for i := 0; i < len(acts); i++ {
			a := acts[i]
			cost := int(p.cost) + int(a.cost)
			if cost > x.bounds.Deviations {
				continue
			}
			made := x.do(w, a)
			x.r.Transitions++
			if slower, ok := x.s.slower(w, made, a); ok {
				acts = append(acts, slower)
			}
			key := made.print()
			if _, ok := x.seen[key]; ok && made.broken == "" {
				continue
			}
			x.seen[key] = struct{}{}
			to := uint32(len(x.places))
			x.places = append(x.places, place{before: at, depth: p.depth + 1, cost: uint8(cost), deed: a.deed, arg: a.arg, keep: a.keep, slow: a.slow})
			if wrong := made.check(); wrong != "" {
				x.fail(wrong, to)
				return false
			}
			if next == nil && a.cost == 0 {
				next, nextAt = made, to
				continue
			}
			x.wait(cost, to, made)
		}
		w, at = next, nextAt
	}
	return true
}

// within reports whether the bounds allow another state.
func (x *explorer) within() bool {
	n := x.r.States
	if n%10_000 != 0 || n == 0 {
		return x.bounds.States == 0 || n < x.bounds.States
	}
	if x.bounds.Progress != nil && n%200_000 == 0 {
		waits := 0
		for _, list := range x.open {
			waits += len(list)
		}
		x.r.Nodes, x.r.Took = len(x.states), time.Since(x.began)
		fmt.Fprintf(x.bounds.Progress, "%s: %v; %d worlds wait; %d inputs to nodes, %d again\n", x.s.Name, x.r, waits, x.given, x.replayed)
	}
	return (x.bounds.States == 0 || n < x.bounds.States) && (x.bounds.Time == 0 || time.Since(x.began) < x.bounds.Time)
}

// path returns the places from the root to a place.
func (x *explorer) path(at uint32) (path []uint32) {
	for ; at != 0; at = x.places[at].before {
		path = append(path, at)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// world makes the world of a place again.
func (x *explorer) world(at uint32) *world {
	w := x.root
	for _, p := range x.path(at) {
		w = x.do(w, x.costed(p))
	}
	return w
}

// costed returns the act that led to a place.
func (x *explorer) costed(at uint32) act {
	a := x.places[at].act()
	a.cost = x.places[at].cost - x.places[x.places[at].before].cost
	return a
}

// fail notes what is wrong at a place.
func (x *explorer) fail(wrong string, at uint32) {
	x.r.Wrong = wrong
	var b strings.Builder
	w := x.root
	x.describe(&b, w)
	for _, p := range x.path(at) {
		a := x.costed(p)
		mark := "  "
		if a.cost > 0 {
			mark = "! "
		}
		fmt.Fprintf(&b, "%s%s%s\n", mark, a, x.object(w, a))
		w = x.do(w, a)
		x.describeTouched(&b, w)
	}
	fmt.Fprintf(&b, "%s\n", wrong)
	x.r.Path = b.String()
}

// object describes what an act is about.
func (x *explorer) object(w *world, a act) string {
	switch a.deed {
	case actDeliver:
		return ": " + raft.DescribeMessage(w.round[a.arg].pb, short)
	case actLate, actTorn, actTwice:
		return ": " + raft.DescribeMessage(w.round[0].pb, short)
	case actRelease:
		return ": " + raft.DescribeMessage(w.late[a.arg].pb, short)
	case actWish:
		return ": " + x.s.Wishes[w.done].String()
	}
	return ""
}

func (x *explorer) describe(b *strings.Builder, w *world) {
	for _, n := range w.nodes {
		if n != nil {
			describeNode(b, n)
		}
	}
}

func (x *explorer) describeTouched(b *strings.Builder, w *world) {
	for i, n := range w.nodes {
		if n != nil && w.touched>>i&1 == 1 {
			describeNode(b, n)
		}
	}
}

func describeNode(b *strings.Builder, n *state) {
	role := "down"
	if n.up {
		role = strings.TrimPrefix(n.role.String(), "State")
	}
	fmt.Fprintf(b, "      %d %s term %d, commit %d, applied %d, members %v, log from %d:", n.node+1, role, n.disk.term, n.disk.commit, n.applied, n.conf.GetVoters(), n.disk.base+1)
	for _, e := range n.disk.log {
		fmt.Fprintf(b, " %d/%s", e.term, e.short())
	}
	b.WriteString("\n")
}
