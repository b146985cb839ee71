// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TunerConfig is the settings of the tuner. Its zero value has useful ones.
type TunerConfig struct {
	// Window is how often the tuner decides, and after how long half of what was
	// counted is forgotten; 0 means 10 s.
	Window time.Duration
	// Spans is of how many spans reads and writes are counted at most; 0 means 1024.
	Spans int
	// Least is how many reads and writes of a span there are before anything is
	// decided about it; 0 means 100.
	Least int
}

// A span with more than namePercent reads gets responders: the nodes near more than
// nearPercent of the reads. The span keeps responders until reads fall to
// keepPercent, and a node stays until its share falls to keepNearPercent, so that a
// load at the edge does not change rosters all the time.
const (
	namePercent     = 95
	keepPercent     = 90
	nearPercent     = 20
	keepNearPercent = 10
)

func (c TunerConfig) withDefaults() TunerConfig {
	if c.Window == 0 {
		c.Window = 10 * time.Second
	}
	if c.Spans == 0 {
		c.Spans = 1024
	}
	if c.Least == 0 {
		c.Least = 100
	}
	return c
}

func (c TunerConfig) validate() error {
	c = c.withDefaults()
	var errs []error
	check := func(ok bool, field string, value any, bound string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w.Tuner.%s is %v, want %s", ErrConfig, field, value, bound))
		}
	}
	check(c.Window > 0, "Window", c.Window, "more than 0")
	check(c.Spans > 0 && c.Spans <= 1<<20, "Spans", c.Spans, "1 to 1048576")
	check(c.Least > 0, "Least", c.Least, "more than 0")
	return errors.Join(errs...)
}

// Usage is how often a node's clients read and wrote a span.
type Usage struct {
	Span          Span
	Reads, Writes uint32
}

// tuner chooses responders by where spans are read. Every node counts what its
// own clients do and reports it to the leader, whose tuner decides.
type tuner struct {
	cfg   TunerConfig
	own   usageTable // not reported yet
	group usageTable // at the leader: of all nodes
	// windows is how many have passed since this node began to lead.
	windows int
}

func newTuner(cfg TunerConfig) *tuner {
	cfg = cfg.withDefaults()
	return &tuner{cfg: cfg, own: usageTable{limit: cfg.Spans}, group: usageTable{limit: cfg.Spans}}
}

// CountRead tells the tuner of a read by a client of this node.
func (n *Node) CountRead(span Span) { n.CountReads(span, 1) }

// CountReads is CountRead for several reads.
func (n *Node) CountReads(span Span, reads uint32) { n.count(Usage{Span: span, Reads: reads}) }

// CountWrite tells the tuner of a write by a client of this node.
func (n *Node) CountWrite(span Span) { n.count(Usage{Span: span, Writes: 1}) }

// restart makes the tuner of a new leader forget the counts of its earlier
// leadership.
func (t *tuner) restart() {
	t.group.clear()
	t.windows = 0
}

func (n *Node) count(u Usage) {
	if n.tuner != nil && u.Span.valid() {
		n.tuner.own.add(n.cfg.ID, u)
	}
}

// take returns what has been counted since the last call, most first.
func (t *tuner) take() []Usage {
	list := t.own.usage()
	t.own.clear()
	return list[:min(len(list), MaxUsage)]
}

// reported takes the counts of a node.
func (t *tuner) reported(from NodeID, list []Usage) {
	for _, u := range list {
		t.group.add(from, u)
	}
}

// tune lets the leader's tuner decide once in a window.
func (n *Node) tune(now Instant) {
	l := n.leading
	if n.tuner == nil || now.since(l.tuned) < n.tuner.cfg.Window {
		return
	}
	l.tuned = now
	n.tuner.reported(n.cfg.ID, n.tuner.take())
	n.wish.wanted = n.tuner.decide(n.wish.wanted)
	n.tuner.group.halve()
	n.tuner.windows++
}

// decide returns the nodes that should be responders, given the present wishes. An
// operator's spans stay as they are. A span with few counts keeps its responders
// until its counter is gone, and for two windows under a new leader.
func (t *tuner) decide(wanted []Want) []Want {
	var next []Want
	had := map[Span][]NodeID{}
	for _, w := range wanted {
		if !w.Tuned || t.windows < 2 && !t.group.has(w.Span) {
			next = append(next, w)
			continue
		}
		had[w.Span] = w.Nodes
	}
	for _, c := range t.group.ranked() {
		nodes := had[c.span]
		if c.total() >= uint64(t.cfg.Least) {
			nodes = c.near(nodes)
		}
		if len(nodes) > 0 && len(next) < MaxSpans {
			next = insertWant(next, Want{Span: c.span, Nodes: nodes, Tuned: true})
		}
	}
	return next
}

// near returns the nodes that should be responders of a span, given the present
// responders.
func (c *usageCell) near(had []NodeID) []NodeID {
	bound := uint64(namePercent)
	if len(had) > 0 {
		bound = keepPercent
	}
	if c.reads()*100 <= c.total()*bound {
		return nil
	}
	var nodes []NodeID
	for _, r := range c.by {
		share := uint64(nearPercent)
		if slices.Contains(had, r.node) {
			share = keepNearPercent
		}
		if r.reads*100 > c.reads()*share {
			nodes = append(nodes, r.node)
		}
	}
	return nodes
}

// insertWant adds a wish in its place, unless it overlaps with another.
func insertWant(list []Want, w Want) []Want {
	at, _ := slices.BinarySearchFunc(list, w, func(a, b Want) int { return strings.Compare(a.Span.Start, b.Span.Start) })
	if slices.ContainsFunc(list, func(o Want) bool { return o.Span.overlaps(w.Span) }) {
		return list
	}
	return slices.Insert(list, at, w)
}
