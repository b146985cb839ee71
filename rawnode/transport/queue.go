// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// queued is a message in a queue.
type queued struct {
	msg  wire.Message
	size int
	at   time.Time
}

// queue is a list of messages in order. The bound is its owner's.
type queue struct {
	items []queued // from head on
	head  int
	// last has the place of each group's last MsgApp since the queue was empty, and
	// shows when a leader goes back.
	last map[uint64]wire.Place
}

func (q *queue) len() int { return len(q.items) - q.head }

// supersede takes out the messages made pointless by m, and returns their number and
// size.
func (q *queue) supersede(m wire.Message) (messages, bytes int) {
	place, ok := wire.PlaceOf(m)
	if !ok {
		return 0, 0
	}
	if last, ok := q.last[m.Group]; ok && place.Supersedes(last) {
		messages, bytes = q.remove(m.Group, place)
	}
	if q.last == nil {
		q.last = map[uint64]wire.Place{}
	}
	q.last[m.Group] = place
	return messages, bytes
}

func (q *queue) remove(group uint64, place wire.Place) (messages, bytes int) {
	kept := q.items[:q.head]
	for _, old := range q.items[q.head:] {
		if at, ok := wire.PlaceOf(old.msg); ok && old.msg.Group == group && place.Supersedes(at) {
			messages++
			bytes += old.size
		} else {
			kept = append(kept, old)
		}
	}
	clear(q.items[len(kept):])
	q.items = kept
	return messages, bytes
}

func (q *queue) put(m queued) { q.items = append(q.items, m) }

// take moves messages of up to so many bytes, but at least one if there is any, behind
// batch.
func (q *queue) take(batch []queued, bytes int) []queued {
	for n := 0; q.len() > 0; q.head++ {
		first := &q.items[q.head]
		if n += first.size; n > bytes && n > first.size {
			break
		}
		batch = append(batch, *first)
		*first = queued{} // let go of the message
	}
	switch {
	case q.len() == 0:
		q.items, q.head = q.items[:0], 0
		clear(q.last)
		if cap(q.items) > keepQueue {
			q.items, q.last = nil, nil
		}
	case q.head > keepQueue && q.head > len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return batch
}

// keepQueue bounds the memory that an empty queue keeps, in messages.
const keepQueue = 4 << 10
