// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"sync"
	"time"

	"github.com/weftraft/weft/rawnode/wire"
)

// input is something for the replica: a message, or anything else as a function.
type input struct {
	msg wire.Message
	do  func(*Replica)
}

// inbox is the queue in front of the goroutine that owns the replica.
type inbox struct {
	ready chan struct{} // has a token while items is not empty
	limit int           // bytes of each class

	mu      sync.Mutex
	room    sync.Cond // a class has gone below its limit, or closed is set
	items   []input
	oldest  time.Time // when items got its first
	stats   StageStats
	bytes   [wire.NumClasses]int
	dropped uint64
	closed  bool
}

func newInbox(limit int) *inbox {
	b := &inbox{ready: make(chan struct{}, 1), limit: limit}
	b.room.L = &b.mu
	return b
}

func (b *inbox) add(in input) {
	if len(b.items) == 0 {
		b.oldest = time.Now()
	}
	b.items = append(b.items, in)
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// post queues a function. It never waits: what posts is bounded by what it
// answers. It returns false if nobody will call it.
func (b *inbox) post(do func(*Replica)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.add(input{do: do})
	}
	return !b.closed
}

// receive queues a message, or drops it if it may not wait.
func (b *inbox) receive(m wire.Message) {
	class := m.Class()
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.bytes[class] >= b.limit && !b.closed {
		if class == wire.ClassControl {
			b.dropped++
			return
		}
		b.room.Wait()
	}
	if b.closed {
		return
	}
	b.bytes[class] += m.Size()
	b.add(input{msg: m})
}

// take returns all that waits. spare is memory for what comes next.
func (b *inbox) take(spare []input, now time.Time) []input {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.stats.Items += uint64(len(items))
	for _, bytes := range b.bytes {
		b.stats.Bytes += uint64(bytes)
	}
	if len(items) > 0 {
		b.stats.Queued += now.Sub(b.oldest)
	}
	clear(spare)
	b.items = spare[:0]
	b.bytes = [wire.NumClasses]int{}
	b.room.Broadcast()
	return items
}

// worked notes how long a turn took.
func (b *inbox) worked(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Busy += d
}

func (b *inbox) statistics() (st StageStats, dropped uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st = b.stats
	st.Length = len(b.items)
	return st, b.dropped
}

// close lets everybody go, and returns what waited.
func (b *inbox) close() []input {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.closed, b.items = true, nil
	b.room.Broadcast()
	return items
}
