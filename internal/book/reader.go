// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// Reader keeps the book of a process that is no node, and in no book: it asks the nodes that it knows for
// their books, one after the other.
type Reader struct {
	book *Book
	send func([]wire.Message)
}

// NewReader returns the reader of a process's book.
func NewReader(b *Book, send func([]wire.Message)) *Reader { return &Reader{b, send} }

// Run asks until ctx ends.
func (r *Reader) Run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for i := 0; ; i++ {
		if ids := slices.Sorted(maps.Keys(r.book.All())); len(ids) > 0 {
			_, sum := r.book.read()
			if m, ok := r.book.message(ids[i%len(ids)], note{Sum: sum, Asks: true}); ok {
				r.send([]wire.Message{m})
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Receive implements rawnode.Receiver, for notes.
func (r *Reader) Receive(m wire.Message) {
	body, ok := m.Body.(wire.Note)
	if !ok {
		return
	}
	if n, err := readNote(body.Data); err != nil {
		r.book.warn("a note of a node is left out", "from", m.From, "error", err)
	} else if n.Facts != nil {
		r.book.Learn(*n.Facts)
	}
}

// Unreachable implements rawnode.Receiver.
func (r *Reader) Unreachable(uint64) {}
