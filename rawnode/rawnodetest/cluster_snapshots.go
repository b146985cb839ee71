// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rawnode"
)

// streamTicks is how many ticks may pass without a sign of a snapshot's other end.
const streamTicks = 50

// Open opens the present state.
func (n *node) Open(to uint64) (world.Snapshot, error) {
	snap, err := n.sm.Snapshot()
	if err == nil && snap == nil {
		err = errors.New("the state machine returned neither a snapshot nor an error")
	}
	if err != nil {
		n.c.tell(n.id, "opens no snapshot: %v", err)
		return world.Snapshot{}, err
	}
	meta := snap.Meta()
	n.c.tell(n.id, "sends a snapshot of index %d to node %d", meta.Index, to)
	return world.Snapshot{Meta: replica.SnapshotMeta(meta), Body: snap, Close: func() error { return n.closed(snap) }, Chunk: n.c.opts.ChunkBytes}, nil
}

// closed closes a snapshot, which must not fail.
func (n *node) closed(snap rawnode.Snapshot) error {
	err := snap.Close()
	if err != nil {
		n.c.fail("node %d: close a snapshot: %v", n.id, err)
	}
	return err
}

// Room lets the next piece go at once.
func (n *node) Room(_ uint64, next func()) { next() }

// SendChunk sends a piece. The next piece is read after this piece has left, so that commands are
// applied meanwhile.
func (n *node) SendChunk(m wire.Message, _ int, next func()) {
	n.send(m)
	n.after(n.c.net.Link(n.id, m.To).Traits().Least, next)
}

// Sent tells the replica the outcome of a snapshot that was sent; a failure after a pause.
func (n *node) Sent(to uint64, err error) {
	n.c.tell(n.id, "snapshot to node %d ends: %v", to, err)
	if errors.Is(err, replica.ErrState) {
		n.c.fail("node %d: a snapshot: %v", n.id, err)
		return
	}
	pause := time.Duration(0)
	if err != nil {
		pause = 10 * n.c.opts.TickInterval
	}
	n.after(pause, func() { n.post(func(r *replica.Replica) { r.SnapshotSent(to, err) }) })
}

// Offered has nothing to do.
func (n *node) Offered(uint64, error) {}

// restore replaces the state, or reports the reason of a failure. A body that did not arrive whole
// fails in the middle, as under a host.
func (n *node) restore(in *world.Incoming) {
	snap := in.Header.GetSnapshot()
	meta := rawnode.SnapshotMeta{Index: snap.GetMetadata().GetIndex(), Host: snap.GetData()}
	var body io.Reader = bytes.NewReader(in.Body)
	if in.Err != nil {
		body = io.MultiReader(body, broken{in.Err})
	}
	err := n.sm.Restore(meta, body)
	n.c.tell(n.id, "restores a snapshot of index %d: %v", meta.Index, err)
	switch {
	case err == nil && in.Err != nil:
		n.c.fail("node %d: Restore of a body that failed (%v) returned no error", n.id, in.Err)
		return
	case err != nil && in.Err == nil:
		n.c.fail("node %d: Restore of a whole snapshot of index %d: %v", n.id, meta.Index, err)
		return
	case err == nil:
		n.applied = meta.Index
	}
	n.drive.Restored(in, err)
	n.durable()
}

// broken is a reader that fails with err.
type broken struct{ err error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, b.err }
