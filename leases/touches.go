// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"cmp"
	"slices"
)

// touchLimit bounds the memory for the spans of entries. The spans of entries
// beyond it are not kept, and such an entry counts as touching every key.
const touchLimit = 1 << 16

// touch is an entry whose keys are known.
type touch struct {
	index Index
	spans []Span
}

// touches knows which keys the entries of this node's log touch. An entry that is
// not listed touches every key, as all entries do if the host does not tell.
type touches struct {
	list []touch // Invariant: indexes ascend.
	// version changes whenever an answer about an entry may have changed.
	version uint64
}

// note records the keys of an entry behind all others.
func (t *touches) note(index Index, spans []Span) {
	if spans != nil && len(t.list) < touchLimit {
		t.version++
		t.list = append(t.list, touch{index: index, spans: slices.Clone(spans)})
	}
}

// cut forgets entries above last.
func (t *touches) cut(last Index) {
	n, _ := t.from(last + 1)
	if n < len(t.list) {
		t.version++
	}
	clear(t.list[n:])
	t.list = t.list[:n]
}

// forget drops entries up to index, which no question is about any more.
func (t *touches) forget(index Index) {
	if n, _ := t.from(index + 1); n > 0 {
		t.list = slices.Delete(t.list, 0, n)
	}
}

// from returns the place of the first listed entry at or above index, and
// whether it is index's own.
func (t *touches) from(index Index) (place int, exact bool) {
	return slices.BinarySearchFunc(t.list, index, func(x touch, i Index) int { return cmp.Compare(x.index, i) })
}

// first returns the lowest entry above after, and up to upTo, that touches a key of
// span.
func (t *touches) first(after Index, span Span, upTo Index) (Index, bool) {
	if after >= upTo { // after may be the last index that there is: what a peer says has no bound
		return 0, false
	}
	at, _ := t.from(after + 1)
	for i := after + 1; i <= upTo; i++ {
		if at == len(t.list) || t.list[at].index != i || span.overlapsAny(t.list[at].spans) {
			return i, true
		}
		at++
	}
	return 0, false
}

// last returns the highest entry up to upTo, and above floor, that touches a key of
// span; floor if there is none.
func (t *touches) last(upTo Index, span Span, floor Index) Index {
	at, _ := t.from(upTo + 1)
	for i := upTo; i > floor; i-- {
		if at == 0 || t.list[at-1].index != i || span.overlapsAny(t.list[at-1].spans) {
			return i
		}
		at--
	}
	return floor
}
