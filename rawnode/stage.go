// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"sync"
	"time"
)

// StageStats count what a stage has done since its start.
type StageStats struct {
	Items  uint64
	Bytes  uint64
	Busy   time.Duration // at work
	Queued time.Duration // sum over items: from arrival to the start of work
	Length int           // items that wait now
}

// stage is a queue with a goroutine behind it that works its items off in order.
// It has no bound of its own: what the core hands out before it hears that
// earlier things are done is bounded (ReplicaConfig.MaxInflightBytes,
// MaxUncommittedBytes, MaxApplyBytes), and a queue that refused could only stop
// the node.
type stage[T any] struct {
	work func(T)

	mu     sync.Mutex
	wake   sync.Cond
	items  []staged[T]
	closed bool
	stats  StageStats
}

type staged[T any] struct {
	item  T
	bytes int
	since time.Time
}

func newStage[T any](work func(T)) *stage[T] {
	s := &stage[T]{work: work}
	s.wake.L = &s.mu
	return s
}

func (s *stage[T]) put(item T, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.items = append(s.items, staged[T]{item, bytes, time.Now()})
	s.wake.Signal()
}

// run works until the stage is closed; what waits then is dropped.
func (s *stage[T]) run() {
	for {
		batch, ok := s.next()
		if !ok {
			return
		}
		for _, it := range batch {
			start := time.Now()
			s.work(it.item)
			s.note(it, start, time.Now())
		}
	}
}

func (s *stage[T]) next() ([]staged[T], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.items) == 0 && !s.closed {
		s.wake.Wait()
	}
	batch := s.items
	s.items = nil
	return batch, !s.closed
}

func (s *stage[T]) note(it staged[T], start, end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Items++
	s.stats.Bytes += uint64(it.bytes)
	s.stats.Busy += end.Sub(start)
	s.stats.Queued += start.Sub(it.since)
}

func (s *stage[T]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.items = nil
	s.wake.Broadcast()
}

func (s *stage[T]) statistics() StageStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Length = len(s.items)
	return st
}
