// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// Snapshots are sent in pieces. Each piece is read after the previous piece has left, so that
// commands are applied meanwhile. The receiver restores a snapshot after all pieces have arrived.

const (
	maxOutgoing = 2
	streamTicks = 50 // ticks without a sign of the other end
)

var (
	errUnreachable = errors.New("the peer cannot be reached")
	errSilent      = errors.New("no word from the other end")
)

type outgoing struct {
	stream, to uint64
	header     *pb.Message
	snap       rawnode.Snapshot
	number     uint64 // of the next piece
	deadline   time.Duration
	ended      bool
}

type incoming struct {
	from, stream, next uint64
	header             *pb.Message
	body               []byte
	whole              bool
	err                error
	deadline           time.Duration
}

func (n *node) patience() time.Duration { return n.c.Now() + streamTicks*n.c.opts.TickInterval }

// sendSnapshot begins to send the present state.
func (n *node) sendSnapshot(s replica.SnapshotSend) {
	if len(n.out) >= maxOutgoing {
		n.report(s.To, replica.ErrOutgoingFull)
		return
	}
	snap, err := n.sm.Snapshot()
	if err == nil && snap == nil {
		err = errors.New("the state machine returned neither a snapshot nor an error")
	}
	if err != nil {
		n.c.tell(n.id, "opens no snapshot: %v", err)
		n.report(s.To, err)
		return
	}
	meta := snap.Meta()
	header, err := replica.SnapshotHeader(s, replica.SnapshotMeta(meta))
	if err != nil {
		n.c.fail("node %d: a snapshot of index %d: %v", n.id, meta.Index, err)
		return
	}
	n.c.tell(n.id, "sends a snapshot of index %d to node %d", meta.Index, s.To)
	n.stream++
	o := &outgoing{stream: n.stream, to: s.To, header: header, snap: snap, deadline: n.patience()}
	n.out[o.stream] = o
	n.piece(o)
}

// report tells the replica the outcome of a snapshot that was sent; a failure after a pause.
func (n *node) report(to uint64, err error) {
	pause := time.Duration(0)
	if err != nil {
		pause = 10 * n.c.opts.TickInterval
	}
	n.after(pause, func() { n.post(func(r *replica.Replica) { r.SnapshotSent(to, err) }) })
}

// piece sends the next piece.
func (n *node) piece(o *outgoing) {
	if o.ended {
		return
	}
	buf := make([]byte, n.c.opts.ChunkBytes)
	size, err := io.ReadFull(o.snap, buf)
	c := wire.Chunk{Stream: o.stream, Number: o.number, Data: buf[:size], Last: errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)}
	if o.number == 0 {
		c.Header = o.header
	}
	if err != nil && !c.Last {
		c.Broken = err.Error()
	}
	o.number++
	n.send(wire.Message{Group: theGroup, From: n.id, To: o.to, Body: c})
	switch {
	case c.Broken != "":
		n.endStream(o, err)
	case !c.Last:
		n.after(n.c.links[n.id][o.to].Delay, func() {
			o.deadline = n.patience()
			n.piece(o)
		})
	}
}

// endStream ends the sending of a snapshot.
func (n *node) endStream(o *outgoing, err error) {
	if o.ended {
		return
	}
	o.ended = true
	delete(n.out, o.stream)
	if closed := o.snap.Close(); closed != nil {
		n.c.fail("node %d: close a snapshot: %v", n.id, closed)
	}
	n.c.tell(n.id, "snapshot to node %d ends: %v", o.to, err)
	n.report(o.to, err)
}

// streamStatus takes the status of a snapshot from its receiver.
func (n *node) streamStatus(from uint64, st wire.ChunkStatus) {
	o := n.out[st.Stream]
	if o == nil || o.to != from {
		return
	}
	var err error
	if !st.OK {
		err = fmt.Errorf("node %d: %s", from, st.Reason)
	}
	n.endStream(o, err)
}

// expire gives up snapshots without a sign of the other end for too long.
func (n *node) expire() {
	for _, stream := range slices.Sorted(maps.Keys(n.out)) {
		if o := n.out[stream]; n.c.Now() > o.deadline {
			n.endStream(o, errSilent)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(n.in)) {
		if in := n.in[from]; n.c.Now() > in.deadline && !in.whole {
			n.giveUp(in, errSilent)
		}
	}
}

// chunk takes a piece of a snapshot.
func (n *node) chunk(from uint64, c wire.Chunk) {
	in := n.in[from]
	if c.Number == 0 {
		if in != nil {
			n.giveUp(in, errors.New("the sender began another"))
		}
		n.offer(from, c)
		return
	}
	if in != nil && in.stream == c.Stream {
		n.take(in, c)
	}
}

// offer asks the replica whether the node accepts a snapshot. The state machine gets the snapshot
// after all earlier steps.
func (n *node) offer(from uint64, c wire.Chunk) {
	n.r.At(n.c.Now())
	if err := n.r.OfferSnapshot(from, c.Header); err != nil {
		n.answer(from, c.Stream, err)
		return
	}
	in := &incoming{from: from, stream: c.Stream, header: c.Header}
	n.in[from] = in
	n.flush()
	n.steps = append(n.steps, step{restore: in})
	n.take(in, c)
}

func (n *node) take(in *incoming, c wire.Chunk) {
	switch {
	case c.Broken != "":
		n.giveUp(in, errors.New(c.Broken))
		return
	case c.Number != in.next:
		n.giveUp(in, fmt.Errorf("chunk %d came where %d was due", c.Number, in.next))
		return
	}
	in.next++
	in.deadline = n.patience()
	in.body = append(in.body, c.Data...)
	in.whole = c.Last
	n.work()
}

func (n *node) giveUp(in *incoming, err error) {
	if n.in[in.from] == in {
		delete(n.in, in.from)
	}
	if !in.whole {
		in.err = err
	}
	n.work()
}

// restore replaces the state, or reports the reason of a failure. A body that did not arrive whole
// fails in the middle, as under a host.
func (n *node) restore(in *incoming) {
	snap := in.header.GetSnapshot()
	meta := rawnode.SnapshotMeta{Index: snap.GetMetadata().GetIndex(), Host: snap.GetData()}
	var body io.Reader = bytes.NewReader(in.body)
	if in.err != nil {
		body = io.MultiReader(body, broken{in.err})
	}
	err := n.sm.Restore(meta, body)
	n.c.tell(n.id, "restores a snapshot of index %d: %v", meta.Index, err)
	switch {
	case err == nil && in.err != nil:
		n.c.fail("node %d: Restore of a body that failed (%v) returned no error", n.id, in.err)
		return
	case err != nil && in.err == nil:
		n.c.fail("node %d: Restore of a whole snapshot of index %d: %v", n.id, meta.Index, err)
		return
	case err == nil:
		n.applied = meta.Index
	}
	if n.in[in.from] == in {
		delete(n.in, in.from)
	}
	n.post(func(r *replica.Replica) {
		r.SnapshotRestored(in.header, err)
		n.answer(in.from, in.stream, err)
	})
	n.durable()
}

// broken is a reader that fails with err.
type broken struct{ err error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, b.err }

// answer tells the sender of a snapshot the outcome.
func (n *node) answer(to, stream uint64, err error) {
	st := wire.ChunkStatus{Stream: stream, OK: err == nil || errors.Is(err, replica.ErrNotNeeded)}
	if !st.OK {
		st.Reason = err.Error()
	}
	n.send(wire.Message{Group: theGroup, From: n.id, To: to, Body: st})
}
