// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

// Heap is a binary heap, whose first element is before all others. It is written out rather
// than built on container/heap, which would box each of some ten thousand events a run.
type Heap[E interface{ Before(*E) bool }] []E

// Push adds an element.
func (h *Heap[E]) Push(e E) {
	*h = append(*h, e)
	all, i := *h, len(*h)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.Before(&all[parent]) {
			break
		}
		all[i] = all[parent]
		i = parent
	}
	all[i] = e
}

// Pop takes the first element of a heap that is not empty.
func (h *Heap[E]) Pop() E {
	all := *h
	first, last := all[0], len(all)-1
	e := &all[last] // not a copy, whose address would have it allocated
	for i := 0; last > 0; {
		least := 2*i + 1
		if right := least + 1; right < last && all[right].Before(&all[least]) {
			least = right
		}
		if least >= last || !all[least].Before(e) {
			all[i] = *e
			break
		}
		all[i] = all[least]
		i = least
	}
	clear(all[last:]) // let go of what it refers to
	*h = all[:last]
	return first
}
