// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// Open opens the present state: its length, the state, and the padding of its values.
func (m *member) Open(uint64) (world.Snapshot, error) {
	w, host := m.n.w, m.host
	if w.opts.Bug == lostOrigins {
		host = withoutOrigins(host)
	}
	w.faults.meets(m, momentSnapshot)
	w.reach.SnapshotsSent++
	size := m.state.size()
	snap := world.Snapshot{Meta: replica.SnapshotMeta{Index: m.applied, Host: host}, Chunk: max(w.plan.chunkBytes, size/64)}
	if w.opts.Bug == newerBody {
		snap.Body = &lateBody{m: m}
		return snap, nil
	}
	body := m.state.encode()
	if w.opts.Bug == lostSessions {
		body = body[:storeHead]
	}
	snap.Body = bytes.NewReader(append(withLength(body), make([]byte, size)...))
	return snap, nil
}

// withLength puts the length of a state in front of the state.
func withLength(body []byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(body))), body...)
}

// lateBody plants [newerBody]: the state as it is when the first chunk is read.
type lateBody struct {
	m *member
	r io.Reader
}

// Read implements io.Reader.
func (b *lateBody) Read(p []byte) (int, error) {
	if b.r == nil {
		b.r = bytes.NewReader(withLength(b.m.state.encode()))
	}
	return b.r.Read(p)
}

// Room waits until the connection has room for a chunk.
func (m *member) Room(to uint64, next func()) {
	l, p := m.n.egress.lane(to, wire.ClassBulk), &m.n.w.plan
	switch {
	case l.bytes >= min(p.linkBytes, 2*p.chunkBytes):
		m.n.egress.wakers = append(m.n.egress.wakers, m.n.bound(func() { m.Room(to, next) }))
	case m.n.w.opts.Bug == newerBody:
		m.n.after(3*tickTime, next)
	default:
		next()
	}
}

// SendChunk sends a piece of a snapshot, which takes time.
func (m *member) SendChunk(msg wire.Message, size int, next func()) {
	costs := &m.n.w.plan.costs
	m.n.cpu.Add(func() (time.Duration, func()) {
		return costs.Sent + per(size, costs.WireKiB), func() {
			m.n.egress.send(msg)
			next()
		}
	})
}

// Sent tells the replica how sending a snapshot went.
func (m *member) Sent(to uint64, err error) {
	if errors.Is(err, replica.ErrState) {
		m.n.w.fail(noFailure, "%v: %v", m.n, err)
	}
	m.drive.Post(0, func(r *replica.Replica) { r.SnapshotSent(to, err) })
}

// Offered counts the snapshots that the replica refuses.
func (m *member) Offered(_ uint64, err error) {
	switch {
	case err == nil:
		m.n.w.faults.offered(m)
		return
	case errors.Is(err, replica.ErrBadMessage):
		m.n.w.fail(noFailure, "%v refuses a snapshot: %v", m.n, err)
	}
	m.n.w.reach.SnapshotsRefused++
}

// restore is done by the apply stage: the state is replaced, durably.
func (m *member) restore(in *world.Incoming) {
	n := m.n
	if in.Err != nil {
		m.drive.Restored(in, in.Err)
		return
	}
	size, head := binary.Uvarint(in.Body)
	meta := in.Header.GetSnapshot()
	kept := keptState{index: meta.GetMetadata().GetIndex(), host: meta.GetData(), encoded: in.Body[head:][:size]}
	life := n.life
	n.disk.Do(n.disk.takes(len(in.Body), true), func() {
		if n.life == life && n.up {
			n.kept[m.g.id] = kept
			n.bound(func() { m.restored(in, kept) })()
		}
	})
}

// restored puts a state into force that is durable.
func (m *member) restored(in *world.Incoming, kept keptState) {
	state, err := decodeStore(kept.encoded, m.n.w.plan.sessions)
	if err != nil && m.n.w.opts.Bug == lostSessions {
		state, err = newStore(m.n.w.plan.sessions)
		if err == nil {
			state.applied = binary.LittleEndian.Uint64(kept.encoded)
		}
	}
	switch {
	case err != nil:
		m.n.w.fail(sameCommands, "%v: snapshot: %v", m.n, err)
		return
	case kept.index < m.applied:
		m.n.w.fail(sameCommands, "%v restores the state at %d after it applied %d", m.n, kept.index, m.applied)
		return
	}
	state.noTable = m.state.noTable
	m.state, m.applied, m.host = state, kept.index, kept.host
	m.local.Applied(m.applied)
	m.n.w.reach.SnapshotsRestored++
	m.n.w.tell(m.n.id, "group %d restored at %d", m.g.id, kept.index)
	m.drive.Restored(in, nil)
	m.drive.Post(0, func(r *replica.Replica) { r.Durable(kept.index) })
}

// withoutOrigins plants [lostOrigins]: the host's bytes, with an empty table. In
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
