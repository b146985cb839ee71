// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "github.com/weftraft/weft/ecraft"

// maxDeferred is how many pushes a Deferred queue holds back. With more, the
// oldest are due at once.
const maxDeferred = 1 << 14

// Deferred holds pushes back until more has been committed, or time has passed.
// Followers then know payloads later, and links are free for what the leader
// waits for. With a gap of 0 everything is due at once.
//
// What is due goes out after all messages that the leader waits for: that order
// is the caller's.
type Deferred struct {
	gap, delay int
	queue      []deferredPush // in ascending order of index
	bytes      uint64         // of all entries ever added
}

// deferredPush is an entry whose units are durable here and not yet pushed.
type deferredPush struct {
	id    ecraft.ID
	bytes int
	end   uint64 // bytes of the entries added up to this one
	added int    // tick
}

// NewDeferred returns a queue in which an entry is due when gap bytes of later
// entries have been committed behind it, or delay ticks, at least 1, after it
// was added: the last entry before a pause is pushed too.
func NewDeferred(gap, delay int) *Deferred {
	return &Deferred{gap: max(gap, 0), delay: max(delay, 1)}
}

// Add adds an entry of so many bytes whose units are durable at tick now.
// Entries come in ascending order of index; an entry takes the place of those
// at or above its index.
func (d *Deferred) Add(id ecraft.ID, bytes, now int) {
	d.Cut(id.Index)
	bytes = max(bytes, 0)
	d.bytes += uint64(bytes)
	d.queue = append(d.queue, deferredPush{id: id, bytes: bytes, end: d.bytes, added: now})
}

// Cut forgets the entries from an index on: the log was truncated there.
func (d *Deferred) Cut(from uint64) {
	n := len(d.queue)
	for n > 0 && d.queue[n-1].id.Index >= from {
		n--
	}
	if n < len(d.queue) {
		d.bytes = d.queue[n].end - uint64(d.queue[n].bytes)
	}
	d.queue = d.queue[:n]
}

// Next takes the oldest entry off the queue if it is due, given the commit index
// and the tick.
func (d *Deferred) Next(commit uint64, now int) (ecraft.ID, bool) {
	if len(d.queue) == 0 {
		return ecraft.ID{}, false
	}
	first := d.queue[0]
	due := d.gap == 0 || len(d.queue) > maxDeferred || now-first.added >= d.delay ||
		d.committed(commit) >= first.end+uint64(d.gap)
	if !due {
		return ecraft.ID{}, false
	}
	return d.take(), true
}

// NextUpTo takes the oldest entry off the queue if it is at or below an index, due or
// not: what is applied there may soon be cut from the log.
func (d *Deferred) NextUpTo(index uint64) (ecraft.ID, bool) {
	if len(d.queue) == 0 || d.queue[0].id.Index > index {
		return ecraft.ID{}, false
	}
	return d.take(), true
}

func (d *Deferred) take() ecraft.ID {
	id := d.queue[0].id
	if d.queue = d.queue[1:]; len(d.queue) == 0 {
		d.queue = nil
	}
	return id
}

// committed returns the bytes of the entries added that are committed, as far
// as they are still in the queue.
func (d *Deferred) committed(commit uint64) uint64 {
	low, high := 0, len(d.queue)
	for low < high {
		if mid := (low + high) / 2; d.queue[mid].id.Index <= commit {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return 0
	}
	return d.queue[low-1].end
}
