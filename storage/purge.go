// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"cmp"
	"slices"
)

// purger gives disk space back by segments, oldest first. Data of the oldest segment
// still needed by a group (lagging entries, the state of an idle group) is written
// again at the log's end; then the segment goes.
//
// Oldest first only: a segment may overrule an older one (by a truncation, a
// compaction), so it cannot go before the older one.
//
// All purging passes through the queue, because memory is ahead of the disk by the
// queue. A decision by memory is safe exactly when carried out behind everything queued
// before: only then is the death of dead-looking data durable.
type purger struct {
	victim *segment
	// groups are the groups that may still have data in victim.
	groups []*Group
	// waiting says that requests of the last step are in the queue.
	waiting bool
	// credit is the number of bytes that may still be written again: two for each byte
	// written by a host. So rewriting ends when the hosts rest, however large frames
	// are beside their live data.
	credit int64
	// pause is set when a step failed: purging rests until hosts have written so
	// many bytes. The log grows, and nothing else is lost.
	pause int64
}

const (
	// purgeStepBytes bounds the rewriting between two batches of the hosts'.
	purgeStepBytes = 1 << 20
	// spareSegments is the number of segments beyond the live bytes' need before short
	// segments are joined.
	spareSegments = 8
)

// purge takes the next step, if there is one to take.
func (w *writer) purge() {
	p := &w.purger
	if p.pause > 0 || p.waiting || len(w.doomed) > 0 || w.e.Err() != nil {
		return
	}
	if p.victim == nil && !w.startPurge() {
		return
	}
	// Each group is visited once a step, and again in the next step if it had data in
	// the victim, because memory gets the new places only after the write.
	var again []*Group
	for bytes := 0; len(p.groups) > 0 && bytes < purgeStepBytes; p.groups = p.groups[1:] {
		g := p.groups[0]
		n, err := w.rescue(g, purgeStepBytes-bytes)
		if err != nil {
			w.giveUpPurge(err)
			return
		}
		if n > 0 {
			again = append(again, g)
		}
		bytes += n + g.entries() // to look through them takes about as long as to write a byte for each
	}
	if p.groups = append(again, p.groups...); len(p.groups) == 0 {
		p.waiting = w.pushInternal(&request{purged: p.victim.number + 1}) == nil
	} else {
		p.waiting = w.pushInternal(&request{lazy: true, done: func(error) { p.waiting = false }}) == nil
	}
}

// startPurge chooses a victim, if one is due.
func (w *writer) startPurge() bool {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	sealed := e.segments[:len(e.segments)-1]
	var size, live int64
	for _, s := range sealed {
		size += s.size.Load()
		live += s.live.Load()
	}
	// With at least half of the log dead, rewriting the live half costs at most one
	// byte for each appended byte.
	dead := size - live
	paid := len(sealed) > 0 && (w.purger.credit > 0 || sealed[0].live.Load() == 0)
	tooMany := int64(len(sealed)) > spareSegments+2*live/e.opts.SegmentBytes
	if (!paid || dead < live+e.opts.SegmentBytes && !tooMany) && !w.purgeForRoom(sealed) {
		return false
	}
	p := &w.purger
	p.victim = sealed[0]
	p.groups = make([]*Group, 0, len(e.groups))
	for _, g := range e.groups {
		p.groups = append(p.groups, g)
	}
	// In a fixed order, not the map's: a seed must repeat the same story.
	slices.SortFunc(p.groups, func(a, b *Group) int { return cmp.Compare(a.id, b.id) })
	return true
}

// purgeForRoom reports whether, with a full disk, the oldest segment should go although
// purging would not pay otherwise: if at least half of the segment is dead, and the
// live part fits into the present segment.
func (w *writer) purgeForRoom(sealed []*segment) bool {
	if w.e.stall.reason == nil || len(sealed) == 0 {
		return false
	}
	size, live := sealed[0].size.Load(), sealed[0].live.Load()
	return live <= size/2 && w.out.end()+2*live < w.e.opts.SegmentBytes
}

// giveUpPurge stops purging until hosts have written another segment: by then the hosts
// may have compacted the unreadable entries.
func (w *writer) giveUpPurge(err error) {
	w.purger = purger{pause: w.e.opts.SegmentBytes, credit: w.purger.credit}
	w.e.opts.Logf("storage: purging rests, the log grows until it goes on: %v", err)
}

// pay counts a written frame of n bytes, for a host or for purging.
func (p *purger) pay(n int64, internal bool) {
	if internal {
		p.credit -= n
	} else {
		p.credit += 2 * n
		p.pause -= n
	}
}

// pushInternal queues a request of the engine's own, whether there is room or
// not: the writer cannot wait for itself.
func (w *writer) pushInternal(r *request) error {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	if w.e.refuse != nil {
		return w.e.refuse
	}
	r.internal = true
	return w.e.push(r)
}

// rescue queues g's data in the victim, up to about limit bytes, and returns the number
// of bytes: 0 means that nothing is left.
func (w *writer) rescue(g *Group, limit int) (int, error) {
	victim := w.purger.victim
	lo, slots := g.slotsIn(victim, limit)
	if len(slots) == 0 {
		return w.rescueState(g, victim)
	}
	raw, err := g.readRaw(lo, slots, nil)
	if err != nil {
		return 0, err
	}
	start := slots[0].off
	err = w.pushInternal(&request{group: g, lazy: true, stage: func() (*record, error) {
		rec := &record{moved: true}
		for i, s := range slots {
			index := lo + uint64(i)
			// The group may have dropped some at either end since. (Never in the
			// middle, so the rows stay consecutive.)
			if !g.log.has(index) || g.log.at(index).seg != victim {
				continue
			}
			if len(rec.rows) == 0 {
				rec.first = index
			}
			rec.rows = append(rec.rows, row{term: s.term, size: s.size, crc: s.crc})
			rec.raw = append(rec.raw, raw[s.off-start:][:s.size]...)
		}
		return rec, nil
	}})
	return len(raw), err
}

// rescueState queues the state of g besides its entries, if any part of it is
// in the victim.
func (w *writer) rescueState(g *Group, victim *segment) (int, error) {
	g.mu.RLock()
	in := g.places.in(victim)
	bytes := requestBytes + int(g.places.hardState.bytes+g.places.snapshot.bytes)
	g.mu.RUnlock()
	if !in {
		return 0, nil
	}
	err := w.pushInternal(&request{group: g, lazy: true, stage: func() (*record, error) {
		base := g.log.base
		rec := &record{hardState: g.hardState, base: &base}
		if g.places.snapshot.seg != nil {
			rec.recorded = g.snapshot
		}
		return rec, nil
	}})
	return bytes, err
}

// entries returns the number of entries of g.
func (g *Group) entries() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.log.slots)
}

// slotsIn returns consecutive slots of entries in s, the first of which has index lo,
// for one read; at most limit bytes, or one entry, which a frame has room for.
func (g *Group) slotsIn(s *segment, limit int) (lo uint64, slots []slot) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for i := range g.log.slots {
		if g.log.slots[i].seg != s {
			continue
		}
		all := g.log.slots[i:]
		n, end := 1, all[0].off+all[0].size
		for n < len(all) && all[n].seg == s && all[n].off >= end &&
			int64(all[n].off) <= int64(end)+readGapBytes && int64(all[n].off-all[0].off)+int64(all[n].size) <= int64(limit) {
			end = all[n].off + all[n].size
			n++
		}
		return g.log.first() + uint64(i), append([]slot(nil), all[:n]...)
	}
	return 0, nil
}

// publishMoved notes in memory that the entry at index was moved, if the group still
// has the entry. The caller holds g.mu.
func (w *writer) publishMoved(g *Group, index uint64, seg *segment, off uint32, r row) {
	if !g.log.has(index) {
		return
	}
	s := g.log.at(index)
	if s.seg == nil || s.seg.number >= seg.number || s.seg != w.purger.victim {
		return
	}
	s.dropped()
	s.written(seg, off, r.crc)
	s.entry = nil // the cache has the entry by its old place, and could not evict it
	w.e.count.movedEntries.Add(1)
	w.e.count.movedBytes.Add(uint64(r.size))
}

// doom takes the victim out of the log, because it is durable that no group needs the
// victim.
func (w *writer) doom() {
	w.e.mu.Lock()
	w.doomed = append(w.doomed, w.e.segments[0])
	w.e.segments = w.e.segments[1:]
	w.e.mu.Unlock()
	w.purger.victim, w.purger.groups, w.purger.waiting = nil, nil, false
}

// removePurged removes the files of doomed segments, the oldest first. If the file
// system lacks room even for a removal, or somebody reads in the segment, which may
// last, the engine tries again.
func (w *writer) removePurged() error {
	spares := w.e.opts.Spares
	if w.e.Stalled() != nil {
		spares = max(spares, 1) // the next segment, for which there was no room
	}
	for ; len(w.doomed) > 0; w.doomed = w.doomed[1:] {
		s := w.doomed[0]
		if !s.mu.TryLock() {
			return nil
		}
		err := s.closeLocked()
		if s.mu.Unlock(); err != nil {
			return err
		}
		if err := w.dir.remove(s.number, s.allocated.Load(), spares); err != nil {
			return err
		}
		w.e.count.purged.Add(1)
	}
	return nil
}
