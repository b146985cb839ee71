// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import "time"

// Network is the links between machines, whose numbers begin with 1. A simulator
// makes frames of its messages, and decides what a sender hears of a loss.
type Network struct {
	NetworkCounts
	// Echoes draws what comes again, if Traits.Echo is above 0.
	Echoes Draws
	// Held, unless nil, says for each frame by how much longer than usual it takes,
	// whether it keeps order, and whether frames that are late let others pass.
	Held func() (more time.Duration, ordered, passed bool)
	// Latest is when the last frame arrives that is under way.
	Latest time.Duration

	agenda *Agenda
	links  [][]Link
	calm   bool
	mended int // how often all links were mended
}

// NetworkCounts counts what happened to frames and links.
type NetworkCounts struct {
	Lost, Blocked, QueuesFull, Duplicated, Reordered, Late, Echoed, SlowLinks, HeldLinks uint64
}

// NewNetwork returns the network of so many machines. Its links have the traits,
// which may change, until a link is shaped otherwise.
func NewNetwork(agenda *Agenda, draws Draws, machines int, traits *Traits) *Network {
	n := &Network{agenda: agenda, links: make([][]Link, machines+1)}
	for from := range n.links {
		n.links[from] = make([]Link, machines+1)
		for to := range n.links[from] {
			n.links[from][to] = Link{net: n, traits: traits, Draws: draws}
		}
	}
	return n
}

// Link returns the link from a machine to another, or nil.
func (n *Network) Link(from, to uint64) *Link {
	if from == 0 || from >= uint64(len(n.links)) || to == 0 || to >= uint64(len(n.links)) {
		return nil
	}
	return &n.links[from][to]
}

// Send carries a frame; a frame for no machine is lost.
func (n *Network) Send(from, to uint64, f Frame) bool {
	if l := n.Link(from, to); l != nil {
		return l.Send(f)
	}
	return n.lose(&n.Blocked, f)
}

func (n *Network) lose(count *uint64, f Frame) bool {
	*count++
	if f.Lost != nil {
		f.Lost()
	}
	return false
}

func (n *Network) hold() (more time.Duration, ordered, passed bool) {
	if n.Held == nil {
		return 0, false, false
	}
	return n.Held()
}

// echo has a frame come again, perhaps, when its sender and its receiver may have
// been restarted since, or have changed their roles.
func (n *Network) echo(l *Link, f Frame) {
	if n.calm || f.Sure || f.Once || !n.Echoes.Chance(l.traits.Echo) {
		return
	}
	after := n.Echoes.Span(time.Millisecond, time.Second)
	n.Latest = max(n.Latest, n.agenda.Now()+after)
	n.agenda.After(after, func() {
		n.Echoed++
		f.Arrive(true)
	})
}

// Cut blocks a direction until the returned function is called.
func (n *Network) Cut(from, to uint64) (mend func()) {
	l, mended := n.Link(from, to), n.mended
	l.cuts++
	return func() {
		if n.mended == mended {
			l.cuts--
		}
	}
}

// Split cuts the links between two sides, of which side has one: the machine m if
// bit m-1 is set.
func (n *Network) Split(side uint64) (mends []func()) {
	for from := 1; from < len(n.links); from++ {
		for to := 1; to < len(n.links); to++ {
			if side>>(from-1)&1 != side>>(to-1)&1 {
				mends = append(mends, n.Cut(uint64(from), uint64(to)))
			}
		}
	}
	return mends
}

// Isolate cuts a machine off from all others, in one direction or both.
func (n *Network) Isolate(machine uint64, in, out bool) (mends []func()) {
	for m := range n.links {
		if other := uint64(m); other != 0 && other != machine {
			if in {
				mends = append(mends, n.Cut(other, machine))
			}
			if out {
				mends = append(mends, n.Cut(machine, other))
			}
		}
	}
	return mends
}

// Break breaks the connections of a lane between two machines.
func (n *Network) Break(a, b uint64, lane int) {
	n.Link(a, b).Break(lane)
	n.Link(b, a).Break(lane)
}

// Slow makes all links from a machine slow for a time.
func (n *Network) Slow(from uint64, lasting time.Duration) {
	n.SlowLinks++
	for to := range n.links[from] {
		n.links[from][to].Slow(lasting)
	}
}

// Mend ends all cuts, and all that is slow or held.
func (n *Network) Mend() {
	n.mended++
	for from := range n.links {
		for to := range n.links[from] {
			l := &n.links[from][to]
			l.cuts, l.slow = 0, 0
			for i := range l.lanes {
				l.lanes[i].held = 0
			}
		}
	}
}

// Calm ends all faults of the network. Frames arrive in order from then on.
func (n *Network) Calm() {
	n.calm = true
	n.Mend()
}

// IsCalm reports whether the faults are over.
func (n *Network) IsCalm() bool { return n.calm }
