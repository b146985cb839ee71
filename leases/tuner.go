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
	// Spans bounds the spans of which reads and writes are counted, 1 to 1,048,576; 0
	// means 1024.
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
	// choices is what the leader's tuner found in the last window; never changed, so
	// that a status shares it.
	choices []TunerChoice
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
	t.windows, t.choices = 0, nil
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

// tune lets the leader's tuner decide once in a window. A tuner that only watches
// decides as well, and its wishes are shown and not taken.
func (n *Node) tune(now Instant) {
	l, t := n.leading, n.tuner
	if t == nil || now.since(l.tuned) < t.cfg.Window {
		return
	}
	l.tuned = now
	t.reported(n.cfg.ID, t.take())
	wanted, choices := t.decide(n.wish.wanted)
	t.choices = choices
	if n.tunerMode() == TunerOn {
		n.wish.wanted = wanted
	}
	t.group.halve()
	t.windows++
}

// decide returns the nodes that should be responders, given the present wishes, and
// the reasons. An operator's spans stay as they are. A span with few counts keeps its
// responders until its counter is gone, and for two windows under a new leader.
func (t *tuner) decide(wanted []Want) (next []Want, choices []TunerChoice) {
	had := map[Span][]NodeID{}
	for _, w := range wanted {
		if !w.Tuned || t.windows < 2 && !t.group.has(w.Span) {
			next = append(next, w)
			continue
		}
		had[w.Span] = w.Nodes
	}
	for _, c := range t.group.ranked() {
		choice := c.choose(had[c.span], t.cfg.Least)
		switch {
		case len(choice.Nodes) == 0:
		case len(next) >= MaxSpans:
			choice.Nodes, choice.Why = nil, TunerFull
		default:
			next, choice = insertChoice(next, choice)
		}
		if len(choices) < MaxSpans {
			choices = append(choices, choice)
		}
	}
	return next, choices
}

// choose returns what is right for a span, the other spans aside, given its present
// responders.
func (c *usageCell) choose(had []NodeID, least int) TunerChoice {
	choice := TunerChoice{Span: c.span, Reads: c.reads(), Writes: c.writes}
	for _, r := range c.by {
		choice.By = append(choice.By, NodeReads{Node: r.node, Reads: r.reads})
	}
	if c.total() < uint64(least) {
		choice.Nodes, choice.Why = had, TunerFew
		return choice
	}
	if choice.Nodes = c.near(had); len(choice.Nodes) > 0 {
		choice.Why = TunerNames
	} else if !c.mostlyRead(len(had) > 0) {
		choice.Why = TunerWrites
	} else {
		choice.Why = TunerSpread
	}
	return choice
}

// mostlyRead reports whether reads are so large a part that a span gets responders, or
// keeps them.
func (c *usageCell) mostlyRead(has bool) bool {
	bound := uint64(namePercent)
	if has {
		bound = keepPercent
	}
	return c.reads()*100 > c.total()*bound
}

// near returns the nodes that should be responders of a span, given the present
// responders.
func (c *usageCell) near(had []NodeID) []NodeID {
	if !c.mostlyRead(len(had) > 0) {
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

// insertChoice adds the wish of a choice, unless its span overlaps with another wish.
func insertChoice(list []Want, c TunerChoice) ([]Want, TunerChoice) {
	longer := insertWant(list, Want{Span: c.Span, Nodes: c.Nodes, Tuned: true})
	if len(longer) == len(list) {
		c.Nodes, c.Why = nil, TunerTaken
	}
	return longer, c
}

// insertWant adds a wish in its place, unless it overlaps with another.
func insertWant(list []Want, w Want) []Want {
	at, _ := slices.BinarySearchFunc(list, w, func(a, b Want) int { return strings.Compare(a.Span.Start, b.Span.Start) })
	if slices.ContainsFunc(list, func(o Want) bool { return o.Span.overlaps(w.Span) }) {
		return list
	}
	return slices.Insert(list, at, w)
}
