// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"sync/atomic"
)

// Budget bounds the bytes of commands that wait, over all groups that share it, and of entries that
// arrive while the node cannot write: with many groups at a node, the bounds of each alone would add up to more than
// there is. Beyond it commands are refused with [ErrOverloaded], and a command that
// is larger than the whole budget with [ErrTooLarge]. A nil Budget bounds nothing.
type Budget struct {
	limit   int64
	used    atomic.Int64 // never above limit
	refused atomic.Uint64
}

// NewBudget makes a budget of so many bytes.
func NewBudget(bytes int64) *Budget { return &Budget{limit: bytes} }

// Limit returns the budget, in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// Used returns the bytes in use.
func (b *Budget) Used() int64 { return b.used.Load() }

// Refused returns how often there was no room, or never could be.
func (b *Budget) Refused() uint64 { return b.refused.Load() }

// Reserve takes n bytes from a budget, or returns why not; nil has no bound. The caller
// gives them back with Release.
func Reserve(b *Budget, n int) error { return b.take(n) }

// Release gives n bytes back.
func Release(b *Budget, n int) { b.give(n) }

// take reserves n bytes, or returns why not.
func (b *Budget) take(n int) error {
	if b == nil {
		return nil
	}
	if int64(n) > b.limit {
		b.refused.Add(1)
		return fmt.Errorf("%w: %d bytes, the budget of all groups is %d; split the command, or raise the budget", ErrTooLarge, n, b.limit)
	}
	if !b.has(n) {
		b.refused.Add(1)
		return fmt.Errorf("%w: %d bytes of commands over all groups, the bound is %d; try again later", ErrOverloaded, b.Used(), b.limit)
	}
	return nil
}

// has reserves n bytes, and reports whether there is room.
func (b *Budget) has(n int) bool {
	if b == nil {
		return true
	}
	for {
		used := b.used.Load()
		if used+int64(n) > b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+int64(n)) {
			return true
		}
	}
}

// give returns n bytes.
func (b *Budget) give(n int) {
	if b != nil {
		b.used.Add(-int64(n))
	}
}
