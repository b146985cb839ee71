// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"sync"
	"time"
)

// stage is a queue with a goroutine that works off the items in order. The queue has no bound of
// its own, because the core bounds the work that is not reported done
// (ReplicaConfig.MaxInflightBytes, MaxUncommittedBytes, MaxApplyBytes); a queue that refused work
// could only stop the node.
//
// The goroutine exists while there is work, and for some ticks longer: a node may have thousands of
// groups, most of them idle.
type stage[T any] struct {
	work  func(T)
	spawn func(func())

	mu      sync.Mutex
	wake    sync.Cond
	items   []staged[T]
	spare   []staged[T] // memory for the next items
	running bool        // there is a goroutine
	idle    int         // calls of reap since the last work
	closed  bool
	stats   StageStats
}

type staged[T any] struct {
	item  T
	bytes int
	since time.Time
}

// lingers is the number of calls of reap for which the goroutine of an idle stage stays.
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

// empty reports whether all work is done. For the only goroutine that calls put, the answer stays
// true until its next put.
func (s *stage[T]) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats.Length == 0
}

// busy reports whether the goroutine exists; the goroutine of a closed stage exists only while an
// item is worked on.
func (s *stage[T]) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// did counts work of this stage that another goroutine has done.
func (s *stage[T]) did(bytes int, busy time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Items++
	s.stats.Bytes += uint64(bytes)
	s.stats.Busy += busy
}

// run works until the stage is closed or was idle for long. Items that wait when the stage is
// closed are dropped.
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

// next counts the finished work and waits for items.
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

// reap ends the goroutine of a stage that had no work for some calls of reap.
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
