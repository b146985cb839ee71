// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package placement decides which node should lead which group, when several
// groups share nodes: so that each node leads its part, by number or by load.
//
// It is a pure function of what is given to it. [Plan] returns few moves at a
// time and only such as make the most loaded node's load smaller, so carrying
// them out and asking again comes to an end, also when each node asks for
// itself: a move is the business of the node that leads.
package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrInvalid wraps mistakes in options.
var ErrInvalid = errors.New("placement: invalid options")

// Group is a group as the planner sees it.
type Group struct {
	ID uint64
	// Leader is the node that leads it, or 0 if none is known.
	Leader uint64
	// Candidates are the nodes that could lead it now: voters that are there and
	// have caught up. The leader need not be among them.
	Candidates []uint64
	// Weight is its load, in any unit, such as bytes per second; 0 counts as 1.
	Weight uint64
	// Hold says that it must not be moved now: it recovers, its members change,
	// or it was moved a short while ago.
	Hold bool
}

func (g Group) weight() uint64 { return max(g.Weight, 1) }

// Options are the planner's.
type Options struct {
	// Hysteresis is by how many percent of the average load of a node its load
	// must exceed that of another, beyond what the move itself changes, before a
	// group is moved: so that small changes of load move nothing. 0 means that
	// any gain is worth a move; at most 1000.
	Hysteresis int
	// MaxMoves bounds the moves of one plan; 0 means 1.
	MaxMoves int
}

// Validate returns an error that names every mistake, or nil.
func (o Options) Validate() error {
	var errs []error
	if o.Hysteresis < 0 || o.Hysteresis > 1000 {
		errs = append(errs, fmt.Errorf("%w: Hysteresis is %d, want 0 to 1000 percent", ErrInvalid, o.Hysteresis))
	}
	if o.MaxMoves < 0 {
		errs = append(errs, fmt.Errorf("%w: MaxMoves is %d, want 0 or more", ErrInvalid, o.MaxMoves))
	}
	return errors.Join(errs...)
}

// Move is a change of leader.
type Move struct {
	Group    uint64
	From, To uint64
}

// Plan returns moves that spread the load, the most useful first. It returns
// none while a group has no leader: it is about to get one, which changes
// everything.
//
// Each move satisfies, with the moves before it carried out:
//
//	load(From) - weight >= load(To) + slack   and   load(To) + weight < load(From)
//
// so the larger of the two loads becomes smaller, and the same group does not
// come back.
func Plan(groups []Group, opts Options) []Move {
	if opts.Validate() != nil {
		return nil
	}
	p, ok := newPlanner(groups, opts)
	if !ok {
		return nil
	}
	var moves []Move
	for range max(opts.MaxMoves, 1) {
		i, to := p.best()
		if i < 0 {
			break
		}
		g := &p.groups[i]
		moves = append(moves, Move{Group: g.ID, From: g.Leader, To: to})
		p.load[g.Leader] -= g.weight()
		p.load[to] += g.weight()
		g.Leader, g.Hold = to, true
	}
	return moves
}

type planner struct {
	groups []Group // by id
	load   map[uint64]uint64
	slack  uint64
}

func newPlanner(groups []Group, opts Options) (planner, bool) {
	p := planner{groups: slices.Clone(groups), load: map[uint64]uint64{}}
	slices.SortFunc(p.groups, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	total := uint64(0)
	for _, g := range p.groups {
		if g.Leader == 0 {
			return p, false
		}
		total += g.weight()
		p.load[g.Leader] += g.weight()
		for _, id := range g.Candidates {
			p.load[id] += 0
		}
	}
	if n := uint64(len(p.load)); n > 0 {
		p.slack = total / n * uint64(opts.Hysteresis) / 100
	}
	return p, true
}

// best returns the group to move and where to, or -1: the one that leaves the
// smaller of the larger of both loads, then the one with the least numbers.
func (p *planner) best() (group int, to uint64) {
	group = -1
	var bestGain uint64
	for i, g := range p.groups {
		if g.Hold {
			continue
		}
		for _, id := range slices.Sorted(slices.Values(g.Candidates)) {
			gain, ok := p.gain(g, id)
			if ok && gain > bestGain {
				group, to, bestGain = i, id, gain
			}
		}
	}
	return group, to
}

// gain returns by how much the larger of the two loads becomes smaller.
func (p *planner) gain(g Group, to uint64) (uint64, bool) {
	from, w := p.load[g.Leader], g.weight()
	target := p.load[to] + w
	if to == g.Leader || target >= from || from-w < p.load[to]+p.slack {
		return 0, false
	}
	return from - max(target, from-w), true
}
