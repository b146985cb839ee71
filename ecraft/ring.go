// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

// ring is a queue of a fixed size that allocates once.
type ring[T any] struct {
	buf     []T
	head, n int
}

func (r *ring[T]) init(size int) { r.buf = make([]T, size) }
func (r *ring[T]) clear()        { r.head, r.n = 0, 0 }
func (r *ring[T]) front() *T     { return &r.buf[r.head] }
func (r *ring[T]) at(i int) *T   { return &r.buf[(r.head+i)%len(r.buf)] }
func (r *ring[T]) back() *T      { return r.at(r.n - 1) }

// push reports whether there was room.
func (r *ring[T]) push(v T) bool {
	if r.n == len(r.buf) {
		return false
	}
	r.n++
	*r.back() = v
	return true
}

func (r *ring[T]) popFront() T {
	v := *r.front()
	r.head, r.n = (r.head+1)%len(r.buf), r.n-1
	return v
}

func (r *ring[T]) popBack() T {
	v := *r.back()
	r.n--
	return v
}
