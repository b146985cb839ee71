// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// earlyShare is the part of the budget that early units may have: one in so
// many bytes.
const earlyShare = 8

// earlyBytes is what a strip costs that came early, beside its units.
const earlyBytes = 128

// earlyUnits are units of entries that are not in the log yet: their sender got
// the entry from the leader before this node did. They may also be of entries
// that never come. Nothing can be said of them until the header is there.
//
// When there are too many, the peer that has most loses its oldest: a peer that
// floods displaces its own units only.
type earlyUnits struct {
	bytes int
	byID  map[ecraft.ID][]earlyStrip
	peers map[uint64]*earlyPeer
	swept uint64 // applied index when stale ones were last looked for
}

type earlyStrip struct {
	from  uint64
	strip ecraft.Strip
}

func (e earlyStrip) bytes() int { return earlyBytes + e.strip.EncodedLen() }

// earlyPeer is the account of a peer.
type earlyPeer struct {
	bytes, strips int
	queue         []ecraft.ID // in order of arrival; those that are gone too
}

// addEarly keeps units aside.
func (s *Store) addEarly(id ecraft.ID, from uint64, u ecraft.Strip) {
	e := &s.early
	if e.byID == nil {
		e.byID, e.peers = map[ecraft.ID][]earlyStrip{}, map[uint64]*earlyPeer{}
	}
	p := e.peers[from]
	if p == nil {
		p = &earlyPeer{}
		e.peers[from] = p
	}
	strip := earlyStrip{from, u}
	e.byID[id] = append(e.byID[id], strip)
	if len(p.queue) > 2*p.strips+16 {
		p.queue = slices.DeleteFunc(p.queue, func(id ecraft.ID) bool { return !e.has(id, from) })
	}
	p.queue = append(p.queue, id)
	p.strips++
	p.bytes += strip.bytes()
	e.bytes += strip.bytes()
	s.bytes += strip.bytes()
	s.counts.Early++
	for e.bytes > s.budget/earlyShare && s.dropEarly() {
	}
	s.trim()
}

func (e *earlyUnits) has(id ecraft.ID, from uint64) bool {
	return slices.ContainsFunc(e.byID[id], func(s earlyStrip) bool { return s.from == from })
}

// take removes and returns the strips of an entry: those of one peer, or all
// for peer 0.
func (e *earlyUnits) take(id ecraft.ID, from uint64) (taken []earlyStrip, bytes int) {
	list := e.byID[id]
	var rest []earlyStrip
	for _, s := range list {
		if from != 0 && s.from != from {
			rest = append(rest, s)
			continue
		}
		taken = append(taken, s)
		bytes += s.bytes()
		p := e.peers[s.from]
		p.bytes -= s.bytes()
		p.strips--
		if p.strips == 0 {
			delete(e.peers, s.from)
		}
	}
	if len(rest) > 0 {
		e.byID[id] = rest
	} else {
		delete(e.byID, id)
	}
	e.bytes -= bytes
	return taken, bytes
}

// takeEarly removes and returns the units of an entry that came early.
func (s *Store) takeEarly(id ecraft.ID) []earlyStrip {
	if len(s.early.byID) == 0 {
		return nil
	}
	taken, bytes := s.early.take(id, 0)
	s.bytes -= bytes
	return taken
}

// dropEarly drops the oldest early units of the peer that has most.
func (s *Store) dropEarly() bool {
	e := &s.early
	most := uint64(0)
	for id, p := range e.peers {
		if most == 0 || p.bytes > e.peers[most].bytes || p.bytes == e.peers[most].bytes && id < most {
			most = id
		}
	}
	if most == 0 {
		return false
	}
	p := e.peers[most]
	for len(p.queue) > 0 {
		id := p.queue[0]
		p.queue = p.queue[1:]
		if taken, bytes := e.take(id, most); len(taken) > 0 {
			s.bytes -= bytes
			s.counts.EarlyLost += uint64(len(taken))
			return true
		}
	}
	return false
}

// forgetEarly drops the early units of entries that are applied, every so often
// that it costs no more than to apply them did.
func (s *Store) forgetEarly() {
	e := &s.early
	if len(e.byID) == 0 || s.applied-e.swept < uint64(len(e.byID)) {
		return
	}
	e.swept = s.applied
	for id := range e.byID {
		if id.Index <= s.applied {
			taken, bytes := e.take(id, 0)
			s.bytes -= bytes
			s.counts.EarlyLost += uint64(len(taken))
		}
	}
}

// check returns an error if the account of early units is wrong.
func (e *earlyUnits) check(budget int) error {
	bytes, strips := 0, map[uint64]int{}
	for id, list := range e.byID {
		for _, s := range list {
			bytes += s.bytes()
			strips[s.from]++
			if !slices.Contains(e.peers[s.from].queue, id) {
				return fmt.Errorf("gossip: early units of peer %d, index %d, are not in its queue", s.from, id.Index)
			}
		}
	}
	for id, p := range e.peers {
		if p.strips != strips[id] {
			return fmt.Errorf("gossip: peer %d has %d early strips, accounted %d", id, strips[id], p.strips)
		}
	}
	if bytes != e.bytes || bytes > budget/earlyShare {
		return fmt.Errorf("gossip: %d bytes of early units, accounted %d, of %d", bytes, e.bytes, budget/earlyShare)
	}
	return nil
}
