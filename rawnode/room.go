// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/wire"
)

// room is a place for chunks that a host sends: see [CatchUp]. A nil error of await ends the wait for
// the last chunks that were asked for.
type room struct {
	h     *Host
	place catchup.Place
	free  chan struct{} // has a token when there is room
}

func (h *Host) room() *room {
	r := &room{h: h, free: make(chan struct{}, 1)}
	r.place = catchup.Place{Direction: catchup.Sending, Ready: func() { r.free <- struct{}{} }}
	return r
}

// ask asks that there be room for so many chunks, of a snapshot of which some bytes were sent.
func (r *room) ask(u wire.Urgency, sent int64, chunks uint64) bool {
	return r.h.cfg.CatchUp.shared().Ask(&r.place, u, r.h.left(sent), r.h.chunks(chunks))
}

func (r *room) await(ctx context.Context) error {
	select {
	case <-r.free:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *room) give(chunks uint64) { r.h.cfg.CatchUp.shared().Give(&r.place, r.h.chunks(chunks)) }

func (r *room) leave() { r.h.cfg.CatchUp.shared().Leave(&r.place) }

// chunks returns the bytes of so many chunks.
func (h *Host) chunks(n uint64) int64 { return int64(n) * int64(h.cfg.ChunkBytes) }

// sized notes the size of a snapshot that was sent or restored.
func (h *Host) sized(bytes int64, err error) {
	if err == nil {
		h.size.Store(bytes)
	}
}

// left returns how many bytes of a snapshot are left after some, as far as its size is known, or 0.
func (h *Host) left(done int64) int64 {
	size := h.size.Load()
	if size == 0 {
		return 0
	}
	return max(size-done, 1)
}
