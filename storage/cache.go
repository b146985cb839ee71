// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import "sync/atomic"

// cache bounds the written entries in memory: first in, first out, over all groups. The
// entries themselves are in the slots of their logs. Reads for followers that keep up
// hit the entries just appended; reads for a lagging follower go to the disk, once for
// each old entry, and must not push out new entries.
//
// The writer's goroutine alone adds and evicts.
type cache struct {
	fifo  []cached
	bytes atomic.Int64 // of the entries in fifo; some may be dropped already
}

// entryBytes is what an entry in memory takes beside its data: the structure, and its
// numbers. Of small entries these are most, and all of empty ones.
const entryBytes = 128

// cached are the entries of one frame.
type cached struct {
	group      *Group
	first      uint64
	n          int
	seg        *segment
	start, end uint32 // of the frame's body in the segment
	bytes      int64
}

func (c *cache) add(x cached) {
	c.fifo = append(c.fifo, x)
	c.bytes.Add(x.bytes)
}

func (c *cache) evict(budget int64) {
	n := 0
	for ; n < len(c.fifo) && c.bytes.Load() > budget; n++ {
		c.fifo[n].evict()
		c.bytes.Add(-c.fifo[n].bytes)
		c.fifo[n] = cached{}
	}
	if c.fifo = c.fifo[n:]; len(c.fifo) == 0 {
		c.fifo = nil
	}
}

func (x *cached) evict() {
	g := x.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for index := x.first; index < x.first+uint64(x.n); index++ {
		if !g.log.has(index) {
			continue
		}
		// The index may have got another entry since.
		if s := g.log.at(index); s.seg == x.seg && s.off >= x.start && s.off < x.end {
			s.entry = nil
		}
	}
}
