// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"cmp"
	"slices"
)

// usageTable counts reads and writes of at most limit spans.
//
// When the table is full, a new span takes the cell of the least used span and
// inherits its total as writes, as in the space-saving sketch. A span that is
// used often therefore stays. Its count of writes may be too high, which keeps
// responders away and never brings them.
type usageTable struct {
	limit int
	cells []*usageCell // Invariant: at most limit, spans ascend, each once.
}

// usageCell is the counts of a span.
type usageCell struct {
	span   Span
	writes uint64
	by     []nodeReads // Invariant: nodes ascend, at most MaxNodes.
}

type nodeReads struct {
	node  NodeID
	reads uint64
}

func (c *usageCell) reads() (sum uint64) {
	for _, r := range c.by {
		sum += r.reads
	}
	return sum
}

func (c *usageCell) total() uint64 { return c.reads() + c.writes }

func bySpan(c *usageCell, s Span) int {
	return cmp.Or(cmp.Compare(c.span.Start, s.Start), cmp.Compare(c.span.End, s.End))
}

// add counts usage of a span by a node's clients.
func (t *usageTable) add(node NodeID, u Usage) {
	at, ok := slices.BinarySearchFunc(t.cells, u.Span, bySpan)
	if !ok {
		c := &usageCell{span: u.Span}
		if len(t.cells) >= t.limit {
			least := t.least()
			c.writes = t.cells[least].total()
			t.cells = slices.Delete(t.cells, least, least+1)
			at, _ = slices.BinarySearchFunc(t.cells, u.Span, bySpan)
		}
		t.cells = slices.Insert(t.cells, at, c)
	}
	c := t.cells[at]
	c.writes += uint64(u.Writes)
	if u.Reads == 0 {
		return
	}
	i, ok := slices.BinarySearchFunc(c.by, node, func(r nodeReads, id NodeID) int { return cmp.Compare(r.node, id) })
	switch {
	case ok:
		c.by[i].reads += uint64(u.Reads)
	case len(c.by) < MaxNodes:
		c.by = slices.Insert(c.by, i, nodeReads{node: node, reads: uint64(u.Reads)})
	default:
		c.writes += uint64(u.Reads)
	}
}

// least returns the place of the least used span.
func (t *usageTable) least() int {
	at := 0
	for i, c := range t.cells {
		if c.total() < t.cells[at].total() {
			at = i
		}
	}
	return at
}

// ranked returns the cells, most used first.
func (t *usageTable) ranked() []*usageCell {
	list := slices.Clone(t.cells)
	slices.SortStableFunc(list, func(a, b *usageCell) int { return cmp.Compare(b.total(), a.total()) })
	return list
}

// usage returns what was counted, nodes aside, most used first.
func (t *usageTable) usage() []Usage {
	var list []Usage
	for _, c := range t.ranked() {
		list = append(list, Usage{Span: c.span, Reads: clamp32(c.reads()), Writes: clamp32(c.writes)})
	}
	return list
}

func clamp32(x uint64) uint32 { return uint32(min(x, 1<<32-1)) }

func (t *usageTable) has(s Span) bool {
	_, ok := slices.BinarySearchFunc(t.cells, s, bySpan)
	return ok
}

func (t *usageTable) clear() { t.cells = nil }

// halve forgets half of what was counted, and spans of which nothing is left.
func (t *usageTable) halve() {
	t.cells = slices.DeleteFunc(t.cells, func(c *usageCell) bool {
		c.writes /= 2
		for i := range c.by {
			c.by[i].reads /= 2
		}
		c.by = slices.DeleteFunc(c.by, func(r nodeReads) bool { return r.reads == 0 })
		return c.total() == 0
	})
}
