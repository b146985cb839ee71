// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"sync"
)

// lock is a sync.RWMutex for which readers wait no longer than their contexts. Such readers wait as
// a batch, for which one goroutine waits, so that readers who have left leave nothing behind.
type lock struct {
	sync.RWMutex

	mu    sync.Mutex // taken inside RWMutex
	waits *batch     // that waits now, or nil
}

// batch is readers who share one RLock.
type batch struct {
	readers int           // who wait, or read; under lock.mu
	open    chan struct{} // closed when the batch has the lock
}

// enter takes the lock for a reader, who calls leave with the result, or returns why ctx ended. A
// free lock counts more than a context that has ended.
func (l *lock) enter(ctx context.Context) (*batch, error) {
	if l.TryRLock() {
		return nil, nil
	}
	b := l.queue()
	select {
	case <-b.open:
		return b, nil
	case <-ctx.Done():
		l.leave(b)
		return nil, context.Cause(ctx)
	}
}

// queue puts a reader into the batch that waits.
func (l *lock) queue() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits == nil {
		l.waits = &batch{open: make(chan struct{})}
		go l.admit(l.waits)
	}
	l.waits.readers++
	return l.waits
}

// admit waits for the lock, for a batch.
func (l *lock) admit(b *batch) {
	l.RLock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = nil
	close(b.open)
	if b.readers == 0 {
		l.RUnlock()
	}
}

// leave ends a reader's wait or use.
func (l *lock) leave(b *batch) {
	if b == nil {
		l.RUnlock()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.readers--
	if b.readers == 0 && l.waits != b {
		l.RUnlock()
	}
}
