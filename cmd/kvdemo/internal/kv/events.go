// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Bounds of the events that a store remembers for those that watch.
const (
	maxEvents     = 64 << 10
	maxEventBytes = 8 << 20 // of keys and values
	// maxEventValueBytes is the largest value that an event carries.
	maxEventValueBytes = 64 << 10
)

// ErrCompacted says that events were asked for that a node does not remember any more.
// Its text names the first revision that it has.
var ErrCompacted = errors.New("compacted")

// EventKind says what happened to a key.
type EventKind byte

// The kinds.
const (
	EventPut      EventKind = 1
	EventDelete   EventKind = 2
	EventExpire   EventKind = 3 // the deadline passed, and the key was removed
	EventDeadline EventKind = 4 // the deadline changed, and the value did not
	// What changed a hash or a sorted set, which an event has no value of:
	EventHashSet      EventKind = 5
	EventHashRemove   EventKind = 6
	EventSortedAdd    EventKind = 7
	EventSortedRemove EventKind = 8
)

// Type returns the type of the value that a change left; 0 if it left none, or changed
// the deadline only.
func (k EventKind) Type() Type {
	switch k {
	case EventPut:
		return TypeString
	case EventHashSet, EventHashRemove:
		return TypeHash
	case EventSortedAdd, EventSortedRemove:
		return TypeSortedSet
	default:
		return 0
	}
}

// Event is a change of a key. It is not to be changed.
type Event struct {
	// Revision counts the commands of the group, from 1: it is that of the command
	// which changed the key, the same at every node. The changes of a transaction
	// have the same.
	Revision uint64
	Kind     EventKind
	Key      string
	// Size is that of the value, and Value the value, which is nil if it has more than
	// maxEventValueBytes or is of another type than TypeString.
	Size  int64
	Value []byte
}

// change is an event as history has it.
type change struct {
	revision uint64
	kind     EventKind
	key      []byte
	size     int64
	value    []byte
}

// changes are those of one batch of commands.
type changes struct {
	list []change
	// memory is where keys and values are copied to, and fresh how much is allocated
	// for them at a time, at least.
	memory []byte
	fresh  int
}

// copy returns a copy of b.
func (c *changes) copy(b []byte) []byte {
	if cap(c.memory)-len(c.memory) < len(b) {
		c.memory = make([]byte, 0, max(len(b), c.fresh))
	}
	at := len(c.memory)
	c.memory = append(c.memory, b...)
	return c.memory[at:len(c.memory):len(c.memory)]
}

// history remembers the last events of a group, for its watchers. It is in memory
// only: after a start it begins with what the log replays.
type history struct {
	mu      sync.Mutex
	batches [][]change
	events  int    // in all batches
	bytes   int    // of their keys and values
	first   uint64 // the first revision that is whole
	last    uint64 // the last that was applied
	changed chan struct{}
}

// begin forgets all events. The state is of the revision.
func (h *history) begin(revision uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.batches, h.events, h.bytes, h.first, h.last = nil, 0, 0, revision+1, revision
	h.wake()
}

// wake tells those that wait. The lock is held.
func (h *history) wake() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

func bytesOf(list []change) (n int) {
	for i := range list {
		n += len(list[i].key) + len(list[i].value)
	}
	return n
}

// add appends the events of a batch that brings the state to the revision.
func (h *history) add(list []change, revision uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = revision
	if len(list) > 0 {
		h.batches = append(h.batches, list)
		h.events += len(list)
		h.bytes += bytesOf(list)
	}
	for h.events > maxEvents || h.bytes > maxEventBytes {
		oldest := h.batches[0]
		h.first = oldest[len(oldest)-1].revision + 1
		h.events -= len(oldest)
		h.bytes -= bytesOf(oldest)
		h.batches[0] = nil // append moves the rest, some time
		h.batches = h.batches[1:]
	}
	h.wake()
}

// from returns up to limit events from a revision on, and all of the last one's, and
// the revision to go on from. The lock is held.
func (h *history) from(revision uint64, limit int) (events []Event, next uint64) {
	at, _ := slices.BinarySearchFunc(h.batches, revision, func(b []change, r uint64) int {
		return cmp.Compare(b[len(b)-1].revision, r)
	})
	for _, batch := range h.batches[at:] {
		for i := range batch {
			c := &batch[i]
			if c.revision < revision {
				continue
			}
			if n := len(events); n >= limit && c.revision != events[n-1].Revision {
				return events, c.revision
			}
			events = append(events, Event{Revision: c.revision, Kind: c.kind, Key: string(c.key), Size: c.size, Value: c.value})
		}
	}
	return events, h.last + 1
}

// Revision returns how many commands were applied. What is read afterwards is not
// older than that.
func (s *Store) Revision() uint64 { return s.revision.Load() }

// Events returns up to limit events from a revision on, and all of the last one's; and
// the revision to go on from. If there are none it returns a channel that is closed
// when there may be, as for a revision that this node has not come to yet. An error is
// ErrCompacted.
func (s *Store) Events(from uint64, limit int) (events []Event, next uint64, more <-chan struct{}, err error) {
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case from < h.first:
		return nil, 0, nil, fmt.Errorf("%w: revision %d was asked for, the first that this node remembers is %d: read the keys again, and watch from the revision of that", ErrCompacted, from, h.first)
	case from > h.last+1:
		// Another node was ahead of this one.
		return nil, from, h.wait(), nil
	}
	events, next = h.from(from, max(limit, 1))
	if len(events) == 0 {
		more = h.wait()
	}
	return events, next, more, nil
}

// Changed reports whether a key was changed by a command behind the revision and up to
// Revision, or whether the store does not remember so far.
func (s *Store) Changed(key string, since uint64) bool {
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if since+1 < h.first {
		return true
	}
	for i := len(h.batches) - 1; i >= 0; i-- {
		batch := h.batches[i]
		if batch[len(batch)-1].revision <= since {
			break
		}
		for j := range batch {
			if batch[j].revision > since && string(batch[j].key) == key {
				return true
			}
		}
	}
	return false
}

// wait returns what add closes. The lock is held.
func (h *history) wait() <-chan struct{} {
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.changed
}

// event notes a change of a key, for history. A record is nil unless it was put.
func (w *writer) event(kind EventKind, key, stored []byte) error {
	c := change{revision: w.tables.position, kind: kind, key: w.changes.copy(key)}
	if stored != nil {
		switch stored[0] {
		case kindHash:
			c.size = int64(len(stored) - inlineHead)
		case kindInline:
			c.size = int64(len(stored) - inlineHead)
			if c.size <= maxEventValueBytes {
				c.value = w.changes.copy(stored[inlineHead:])
			}
		default:
			r, err := openRecord(key, stored)
			if err != nil {
				return err
			}
			c.size = r.size()
		}
	}
	w.changes.list = append(w.changes.list, c)
	return w.stamp(kind, key)
}
