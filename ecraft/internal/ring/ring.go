// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package ring has a queue of bounded length that allocates once.
package ring

// Ring is a queue with the bounded length given to Init. Front, Back, PopFront and PopBack need at
// least 1 value, At(i) at least i+1 values.
type Ring[T any] struct {
	buf     []T
	head, n int
}

// Init empties the queue and makes room for size values.
func (r *Ring[T]) Init(size int) { *r = Ring[T]{buf: make([]T, size)} }

// Clear empties the queue.
func (r *Ring[T]) Clear() { r.head, r.n = 0, 0 }

// Len returns the number of values.
func (r *Ring[T]) Len() int { return r.n }

// Full reports whether there is no room for another.
func (r *Ring[T]) Full() bool { return r.n == len(r.buf) }

// Front returns the oldest value.
func (r *Ring[T]) Front() *T { return r.At(0) }

// At returns the value i places behind the oldest.
func (r *Ring[T]) At(i int) *T { return &r.buf[(r.head+i)%len(r.buf)] }

// Back returns the newest value.
func (r *Ring[T]) Back() *T { return r.At(r.n - 1) }

// Push adds a value, and reports whether there was room.
func (r *Ring[T]) Push(v T) bool {
	if r.Full() {
		return false
	}
	r.n++
	*r.Back() = v
	return true
}

// PopFront removes the oldest value.
func (r *Ring[T]) PopFront() T {
	v := *r.Front()
	r.head, r.n = (r.head+1)%len(r.buf), r.n-1
	return v
}

// PopBack removes the newest value.
func (r *Ring[T]) PopBack() T {
	v := *r.Back()
	r.n--
	return v
}
