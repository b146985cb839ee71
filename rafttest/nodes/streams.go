// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// Snapshots go in chunks, as a host sends them: at most two at a time, at the
// pace of the link; the receiver's state machine waits for the whole.

const (
	maxOutgoing   = 2
	streamTimeout = 5 * electionTime
)

var (
	errUnreachable = errors.New("the peer cannot be reached")
	errBusy        = errors.New("other snapshots are being sent")
	errSilent      = errors.New("no word from the other end")
)

type outgoing struct {
	stream, to uint64
	header     *pb.Message
	body       []byte
	number     uint64 // of the next chunk
	deadline   time.Duration
	ended      bool
}

type incoming struct {
	from, stream, next uint64
	header             *pb.Message
	body               []byte
	size               int
	whole              bool
	err                error
	deadline           time.Duration
}

// outgoing returns the snapshots that are being sent, in a fixed order.
func (m *member) outgoing() []*outgoing {
	var all []*outgoing
	for _, stream := range slices.Sorted(maps.Keys(m.out)) {
		all = append(all, m.out[stream])
	}
	return all
}

// sendSnapshot begins to send the present state.
func (m *member) sendSnapshot(s replica.SnapshotSend) {
	w := m.n.w
	report := func(err error) {
		m.post(0, func(r *replica.Replica) { r.SnapshotSent(s.To, err) })
	}
	if len(m.out) >= maxOutgoing {
		report(errBusy)
		return
	}
	host := m.host
	if w.opts.Bug == LostOrigins {
		host = withoutOrigins(host)
	}
	header, err := replica.SnapshotHeader(s, replica.SnapshotMeta{Index: m.applied, Host: host})
	if err != nil {
		w.fail(NoFailure, "%v: %v", m.n, err)
		return
	}
	body := m.state.encode()
	if w.opts.Bug == LostSessions {
		body = body[:storeHead]
	}
	w.reach.SnapshotsSent++
	m.nextStream++
	o := &outgoing{stream: m.nextStream, to: s.To, header: header, deadline: w.Now() + streamTimeout}
	o.body = binary.AppendUvarint(nil, uint64(len(body)))
	o.body = append(append(o.body, body...), make([]byte, m.state.size())...)
	m.out[o.stream] = o
	if w.opts.Bug == NewerBody {
		m.n.after(3*tickTime, func() { m.nextChunk(o) })
		return
	}
	m.nextChunk(o)
}

// nextChunk sends the next piece when there is room for it.
func (m *member) nextChunk(o *outgoing) {
	w := m.n.w
	if o.ended || len(o.body) == 0 && o.number > 0 {
		return
	}
	l := m.n.egress.lane(o.to, wire.ClassBulk)
	if l.bytes >= min(w.plan.linkBytes, 2*w.plan.chunkBytes) {
		m.n.egress.wakers = append(m.n.egress.wakers, m.n.bound(func() { m.nextChunk(o) }))
		return
	}
	if w.opts.Bug == NewerBody && o.number == 0 {
		body := m.state.encode()
		o.body = append(binary.AppendUvarint(nil, uint64(len(body))), body...)
	}
	n := min(len(o.body), max(w.plan.chunkBytes, m.state.size()/64))
	c := wire.Chunk{Stream: o.stream, Number: o.number, Data: o.body[:n:n], Last: n == len(o.body)}
	if o.number == 0 {
		c.Header = o.header
	}
	o.body = o.body[n:]
	o.number++
	o.deadline = w.Now() + streamTimeout
	costs := &w.plan.costs
	m.n.cpu.Add(func() (time.Duration, func()) {
		return costs.Sent + per(n, costs.WireKiB), func() {
			m.n.egress.send(wire.Message{Group: m.g.id, From: m.n.id, To: o.to, Body: c})
			m.nextChunk(o)
		}
	})
}

// endStream tells the replica, once, how sending went.
func (m *member) endStream(o *outgoing, err error) {
	if o.ended {
		return
	}
	o.ended = true
	delete(m.out, o.stream)
	m.post(0, func(r *replica.Replica) { r.SnapshotSent(o.to, err) })
}

// streamStatus takes the receiver's word.
func (m *member) streamStatus(from uint64, st wire.ChunkStatus) {
	o := m.out[st.Stream]
	if o == nil || o.to != from {
		return
	}
	var err error
	if !st.OK {
		err = fmt.Errorf("node %d: %s", from, st.Reason)
	}
	m.endStream(o, err)
}

// expireStreams gives up streams that have waited too long.
func (m *member) expireStreams() {
	for _, o := range m.outgoing() {
		if m.n.w.Now() > o.deadline {
			m.endStream(o, errSilent)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(m.in)) {
		if in := m.in[from]; m.n.w.Now() > in.deadline && !in.whole {
			m.failIncoming(in, errSilent)
		}
	}
}

// chunk takes a piece of a snapshot.
func (m *member) chunk(from uint64, c wire.Chunk) {
	in := m.in[from]
	if c.Number == 0 {
		if in != nil {
			if in.stream == c.Stream {
				return // delivered twice
			}
			m.failIncoming(in, errors.New("the sender began another"))
		}
		if in = m.open(from, c); in == nil {
			return
		}
	}
	if in == nil || in.stream != c.Stream || c.Number < in.next || in.whole {
		return
	}
	if c.Number > in.next {
		m.failIncoming(in, fmt.Errorf("chunk %d came where %d was due", c.Number, in.next))
		return
	}
	in.next++
	in.deadline = m.n.w.Now() + streamTimeout
	in.body = append(in.body, c.Data...)
	if in.whole = c.Last; in.whole {
		in.size = len(in.body)
		m.nextStep()
	}
}

// open offers the replica a snapshot; an accepted snapshot goes to the apply
// stage, behind all earlier work.
func (m *member) open(from uint64, c wire.Chunk) *incoming {
	if err := m.r.OfferSnapshot(from, c.Header); err != nil {
		if errors.Is(err, replica.ErrBadMessage) {
			m.n.w.fail(NoFailure, "%v refuses a snapshot: %v", m.n, err)
		}
		m.n.w.reach.SnapshotsRefused++
		m.answer(from, c.Stream, err)
		return nil
	}
	in := &incoming{from: from, stream: c.Stream, header: c.Header}
	m.in[from] = in
	m.offered()
	m.flush()
	m.addStep(step{restore: in})
	return in
}

func (m *member) failIncoming(in *incoming, err error) {
	delete(m.in, in.from)
	in.err = err
	m.nextStep()
}

// restore is done by the apply stage: the state is replaced, durably.
func (m *member) restore(in *incoming) {
	n := m.n
	if in.err == nil {
		size, head := binary.Uvarint(in.body)
		body := in.body[head:][:size]
		meta := in.header.GetSnapshot()
		kept := keptState{index: meta.GetMetadata().GetIndex(), host: meta.GetData(), encoded: body}
		life := n.life
		n.disk.Do(n.disk.takes(in.size, true), func() {
			if n.life == life && n.up {
				n.kept[m.g.id] = kept
				n.bound(func() { m.restored(in, kept) })()
			}
		})
		return
	}
	m.stepped = false
	m.post(0, func(r *replica.Replica) { r.SnapshotRestored(in.header, in.err) })
	m.answer(in.from, in.stream, in.err)
	m.nextStep()
}

// restored puts a state into force that is durable.
func (m *member) restored(in *incoming, kept keptState) {
	m.stepped = false
	if m.in[in.from] == in {
		delete(m.in, in.from)
	}
	state, err := decodeStore(kept.encoded, m.n.w.plan.sessions)
	if err != nil && m.n.w.opts.Bug == LostSessions {
		state, err = newStore(m.n.w.plan.sessions)
		if err == nil {
			state.applied = binary.LittleEndian.Uint64(kept.encoded)
		}
	}
	switch {
	case err != nil:
		m.n.w.fail(SameCommands, "%v: snapshot: %v", m.n, err)
		return
	case kept.index < m.applied:
		m.n.w.fail(SameCommands, "%v restores the state at %d after it applied %d", m.n, kept.index, m.applied)
		return
	}
	state.noTable = m.state.noTable
	m.state, m.applied, m.host = state, kept.index, kept.host
	m.local.Applied(m.applied)
	m.n.w.reach.SnapshotsRestored++
	m.n.w.tell(m.n.id, "group %d restored at %d", m.g.id, kept.index)
	m.post(0, func(r *replica.Replica) {
		r.SnapshotRestored(in.header, nil)
		r.Durable(kept.index)
		m.answer(in.from, in.stream, nil)
	})
	m.nextStep()
}

// answer tells the sender of a snapshot how it ended.
func (m *member) answer(to, stream uint64, err error) {
	st := wire.ChunkStatus{Stream: stream, OK: err == nil || errors.Is(err, replica.ErrNotNeeded)}
	if !st.OK {
		st.Reason = err.Error()
	}
	m.send([]wire.Message{{Group: m.g.id, From: m.n.id, To: to, Body: st}})
}

// withoutOrigins plants [LostOrigins]: the host's bytes, with an empty table. In
// front of it are a version, index, term, and a configuration with its length.
func withoutOrigins(host []byte) []byte {
	at, last := 1, uint64(0)
	for range 3 {
		v, n := binary.Uvarint(host[at:])
		at, last = at+n, v
	}
	at += int(last)
	return append(slices.Clone(host[:at]), 0)
}
