// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"sync"
	"time"
)

// stage is a queue with a goroutine behind it that works its items off in order.
// It has no bound of its own: what the core hands out before it hears that
// earlier things are done is bounded (ReplicaConfig.MaxInflightBytes,
// MaxUncommittedBytes, MaxApplyBytes), and a queue that refused could only stop
// the node.
//
// The goroutine exists while there is work, and some time longer: a node may have
// thousands of groups, most of them idle.
type stage[T any] struct {
	work  func(T)
	spawn func(func())

	mu      sync.Mutex
	wake    sync.Cond
	items   []staged[T]
	spare   []staged[T] // memory for items
	running bool        // there is a goroutine
	idle    int         // reaps since it had work
	closed  bool
	stats   StageStats
}

type staged[T any] struct {
	item  T
	bytes int
	since time.Time
}

// lingers is for how many reaps the goroutine of an idle stage stays.
const lingers = 10

func newStage[T any](spawn func(func()), work func(T)) *stage[T] {
	s := &stage[T]{work: work, spawn: spawn}
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
	s.stats.Length++
	s.stats.Waiting += bytes
	s.idle = 0
	if s.running {
		s.wake.Signal()
		return
	}
	s.running = true
	s.spawn(s.run)
}

// empty reports whether all work is done. It stays so for the only goroutine that
// puts.
func (s *stage[T]) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats.Length == 0
}

// busy reports whether there is a goroutine, of a stage that is closed: it works.
func (s *stage[T]) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// did notes work of this stage that was done elsewhere.
func (s *stage[T]) did(bytes int, busy time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Items++
	s.stats.Bytes += uint64(bytes)
	s.stats.Busy += busy
}

// run works until the stage is closed or was idle for long; what waits when it
// is closed is dropped.
func (s *stage[T]) run() {
	var did StageStats
	for {
		batch, ok := s.next(&did)
		if !ok {
			return
		}
		start := time.Now()
		for i := range batch {
			it := &batch[i]
			did.Queued += start.Sub(it.since)
			s.work(it.item)
			end := time.Now()
			did.Busy += end.Sub(start)
			did.Items++
			did.Bytes += uint64(it.bytes)
			start = end
		}
		clear(batch)
		s.mu.Lock()
		s.spare = batch[:0]
		s.mu.Unlock()
	}
}

// next notes what was done and waits for more.
func (s *stage[T]) next(did *StageStats) ([]staged[T], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.stats
	st.Items += did.Items
	st.Bytes += did.Bytes
	st.Busy += did.Busy
	st.Queued += did.Queued
	st.Length -= int(did.Items)
	st.Waiting -= int(did.Bytes)
	*did = StageStats{}
	for len(s.items) == 0 && !s.closed && s.idle < lingers {
		s.wake.Wait()
	}
	if s.closed || len(s.items) == 0 {
		s.running, s.items, s.spare = false, nil, nil
		return nil, false
	}
	batch := s.items
	s.items, s.spare = s.spare, nil
	return batch, true
}

// reap lets the goroutine of a stage go that had no work for some reaps.
func (s *stage[T]) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return
	}
	if s.idle++; s.idle == lingers {
		s.wake.Signal()
	}
}

func (s *stage[T]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.items = nil
	s.wake.Signal()
}

func (s *stage[T]) statistics() StageStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}
