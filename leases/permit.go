// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"slices"
	"time"
)

// A Permit is the answer of Node.ReadIndex to reads that arrive later, up to the next event
// at the node: which keys this node may answer for from its own state, until when, and
// which entries such a read has to see. A host publishes the permit behind an atomic
// pointer, so that any goroutine can answer a read without the node.
//
// Invariant: the newest published permit covers every message, acknowledgement and result
// that has left the host. A host with a new permit therefore publishes the permit first, and
// lets what its node has asked for leave afterwards. A read loads the permit, and reads
// the clock after that. At the moment of the load everything that any client had seen stood
// at or below the permit's index, or this node had lost its lease by then; and in the latter
// case the reading of the clock is behind the end of the lease.
//
// A Permit never changes. The zero value, and nil, permit nothing.
type Permit struct {
	// Leads says that this node leads, and Tuned that a tuner wants to hear of each read:
	// see Node.CountRead.
	Leads, Tuned bool
	parts        []permitted // Invariant: ascending and disjoint; each ends after the permit was made.
	// last is the last entry that any read has to see, and floor an applied entry. Of the
	// entries between them reads see those that touch their keys.
	last, floor Index
	touches     touches
	version     uint64 // of Node.touches
}

// permitted is a span with the end of this node's lease for the span.
type permitted struct {
	span  Span
	until Instant
}

// maxPermitTouches is for how many entries with known keys a permit tells keys apart. A
// node that lags further behind has its reads wait for all entries.
const maxPermitTouches = 256

// century bounds readings of a clock: the origin may be that far from a reading.
const century = 100 * 365 * 24 * time.Hour

// InstantOf returns the instant that a reading of the node's own clock stands for. A reading
// may be below 0, and is at most a century from 0.
func InstantOf(reading time.Duration) Instant {
	return Instant(min(max(reading, -century), century) + century + 1)
}

// ReadIndex is [Node.ReadIndex] as of the permit. The instant is a reading of the node's own
// clock, made after the permit was loaded. The result is false also for more than MaxSpans
// spans and for a span without a key: only the node knows how to refuse them.
func (p *Permit) ReadIndex(now Instant, spans ...Span) (Index, bool) {
	if p == nil || len(spans) > MaxSpans {
		return 0, false
	}
	if len(spans) == 0 {
		return p.last, p.covers(now, Span{})
	}
	i := min(p.floor, p.last)
	for _, s := range spans {
		if !s.valid() || !p.covers(now, s) {
			return 0, false
		}
		i = p.touches.last(p.last, s, i)
	}
	return i, true
}

// covers reports whether the lease for each key of a span holds at an instant.
func (p *Permit) covers(now Instant, span Span) bool {
	at := span.Start // keys below are covered
	for i := range p.parts {
		x := &p.parts[i]
		if x.span.endsBefore(at) {
			continue
		}
		if x.span.Start > at || now >= x.until {
			return false
		}
		at = x.span.End
		if at == "" || span.End != "" && at >= span.End {
			return true
		}
	}
	return false
}

// equal reports whether both permits give the same answers, and count reads alike. A higher floor does not matter: it
// raises the index of a read to an entry that is applied.
func (p *Permit) equal(o *Permit) bool {
	return p.Leads == o.Leads && p.Tuned == o.Tuned && p.last == o.last && p.version == o.version && slices.Equal(p.parts, o.parts)
}

// Permit returns what this node permits until the next news or work: the former permit where
// that still says all, and nil where this node may answer nothing by itself. The former
// permit, or nil, is a result of this method of this node.
func (n *Node) Permit(former *Permit) *Permit {
	var room [4]permitted
	p := Permit{Leads: n.leading != nil, Tuned: n.tuner != nil, last: n.last, floor: n.applied, version: n.touches.version}
	if p.Leads {
		p.last = n.leaderEnd()
	}
	p.parts = n.permitted(room[:0])
	switch {
	case len(p.parts) == 0:
		return nil
	case former != nil && former.equal(&p):
		return former
	}
	return n.newPermit(&p)
}

// newPermit returns a copy of a permit, with the entries whose keys are known. The copy shares
// nothing with the node, or with the memory behind p.
func (n *Node) newPermit(p *Permit) *Permit {
	q := &Permit{Leads: p.Leads, Tuned: p.Tuned, parts: slices.Clone(p.parts), last: p.last, floor: p.floor, version: p.version}
	from, _ := n.touches.from(p.floor + 1)
	to, _ := n.touches.from(p.last + 1)
	if list := n.touches.list[from:max(from, to)]; len(list) <= maxPermitTouches {
		q.touches.list = slices.Clone(list) // an entry that is not listed touches every key
	}
	return q
}

// permitted appends the spans for which this node is stable, by its newest roster.
func (n *Node) permitted(list []permitted) []permitted {
	add := func(s Span, until Instant) {
		if until > n.latest {
			list = append(list, permitted{span: s, until: until})
		}
	}
	newest := n.rosters.newest()
	switch {
	case n.leading != nil:
		add(Span{}, n.stableUntil(Span{}))
	case newest != nil:
		for i := range newest.Spans {
			if _, named := newest.Spans[i].barrier(n.cfg.ID); named {
				add(newest.Spans[i].Span, n.stableUntil(newest.Spans[i].Span))
			}
		}
	}
	return list
}
