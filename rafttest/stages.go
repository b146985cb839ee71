// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"bytes"
	"errors"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// This file is the stages of a simulated host: the log writer, the state
// machine, the sender and the receiver of messages and snapshots.

// logWork is work for the log: one of its fields.
type logWork struct {
	write   *replica.Append
	compact *replica.Compact
}

type writeQueue struct {
	waiting []logWork
	busy    bool
}

// startWrites writes the waiting work, one piece or all, and syncs once.
func (p *hostProcess) startWrites() {
	q := &p.writes
	if q.busy || len(q.waiting) == 0 {
		return
	}
	n := p.s.plan.batchOf(len(q.waiting))
	batch := q.waiting[:n:n]
	q.waiting, q.busy = q.waiting[n:], true
	mustSync := false
	for _, w := range batch {
		if w.compact != nil {
			p.compactLog(w.compact)
			continue
		}
		p.n.disk.put(w.write.Write)
		mustSync = mustSync || !w.write.Write.Lazy
	}
	done := func() { p.written(batch) }
	switch {
	case !mustSync:
		p.n.later(10*time.Microsecond, done)
	case p.s.opts.Bug == ackBeforeSync:
		p.n.sync(func() {})
		p.n.later(10*time.Microsecond, done)
	default:
		p.n.sync(done)
	}
}

func (p *hostProcess) written(batch []logWork) {
	p.writes.busy = false
	p.post(func(r *replica.Replica) {
		for _, w := range batch {
			if w.write != nil {
				r.AppendDone(*w.write)
			}
		}
	})
	p.startWrites()
}

// Append gives work to the log.
func (p *hostProcess) Append(a *replica.Append) {
	p.writes.waiting = append(p.writes.waiting, logWork{write: a})
}

// Compact gives work to the log.
func (p *hostProcess) Compact(c *replica.Compact) {
	p.writes.waiting = append(p.writes.waiting, logWork{compact: c})
}

// put writes a replica's durable state, as a storage engine does: all or
// nothing survives a crash.
func (d *disk) put(w storage.Write) {
	var hs *hardState
	if !raft.IsEmptyHardState(w.HardState) {
		h := hardStateOf(w.HardState)
		hs = &h
	}
	d.writeAll(w.Snapshot, w.Entries, hs, true)
}

// compactLog notes the state in place of the head of the log, and cuts the
// head.
func (p *hostProcess) compactLog(c *replica.Compact) {
	if err := (hostLog{p.n.disk}).SetSnapshot(c.Snapshot, nil); err != nil && !errors.Is(err, raft.ErrSnapOutOfDate) {
		p.s.fail(noPanic, "node %d: %v", p.n.id, err)
		return
	}
	p.s.reach.Checkpoints++
	if err := (hostLog{p.n.disk}).Compact(c.Index); err == nil {
		p.s.reach.LogCuts++
	}
}

// Append implements replica.Log, which replicas do not call.
func (l hostLog) Append(w storage.Write, done func(error)) error {
	l.put(w)
	l.sync(len(l.pending))
	done(nil)
	return nil
}

// SetSnapshot implements replica.Log.
func (l hostLog) SetSnapshot(meta *pb.SnapshotMetadata, data []byte) error {
	if meta.GetIndex() <= l.live.checkpoint.GetMetadata().GetIndex() {
		return raft.ErrSnapOutOfDate
	}
	l.write(record{checkpoint: &pb.Snapshot{Metadata: meta, Data: data}})
	return nil
}

// Compact implements replica.Log.
func (l hostLog) Compact(index uint64) error {
	if index <= l.live.baseIndex {
		return raft.ErrCompacted
	}
	l.write(record{cut: index})
	return nil
}

// Step gives the state machine its next piece of work.
func (p *hostProcess) Step() {
	w := p.drive.Take()
	if w.Apply != nil {
		p.n.later(p.s.rng.Within(0, p.s.plan.applyMax), func() { p.applyStep(*w.Apply) })
		return
	}
	in := w.Restore
	if in.Err != nil {
		p.n.later(0, func() { p.drive.Restored(in, in.Err) })
		return
	}
	// The state machine makes a restored state durable before it says so.
	inc := p.n.incarnation
	p.n.spindle.Beside(p.n.syncTime(), func() {
		if p.n.incarnation == inc {
			snap := in.Header.GetSnapshot()
			p.n.kept = keptState{index: snap.GetMetadata().GetIndex(), host: snap.GetData(), store: in.Body}
			p.n.whenAwake(func() { p.restored(in) })
		}
	})
}

// applyStep applies a step, unless the state is beyond it already.
func (p *hostProcess) applyStep(a replica.Apply) {
	var results []any
	if a.Batch.Index > p.applied {
		for _, data := range a.Batch.Commands {
			c, err := decodeCommand(data)
			if err != nil {
				p.s.fail(stateMachineSafety, "node %d, up to entry %d: %v", p.n.id, a.Batch.Index, err)
				return
			}
			p.s.check.took(p.n, c.attempt)
			results = append(results, p.store.apply(c))
		}
		p.applied = a.Batch.Index
		if a.Batch.Host != nil {
			p.hostBytes = a.Batch.Host
		}
		p.s.check.equal(p.n, p.applied, p.store.digest())
		p.keepState()
	}
	p.post(func(r *replica.Replica) { r.ApplyDone(a, results) })
	p.drive.Stepped()
}

// keepState writes a copy of the state to the state machine's own storage now
// and then.
func (p *hostProcess) keepState() {
	if p.flushing || p.applied < p.n.kept.index+p.s.plan.checkpointEvery {
		return
	}
	p.flushing = true
	state := keptState{index: p.applied, host: p.hostBytes, store: p.store.encode()}
	inc := p.n.incarnation
	p.n.spindle.Beside(p.n.syncTime(), func() {
		if p.n.incarnation != inc {
			return
		}
		if state.index > p.n.kept.index {
			p.n.kept = state
			p.s.reach.StatesKept++
		}
		p.n.whenAwake(func() {
			p.flushing = false
			p.post(func(r *replica.Replica) { r.Durable(state.index) })
		})
	})
}

// restored puts the state of a snapshot into force, which is durable by now.
func (p *hostProcess) restored(in *world.Incoming) {
	snap := in.Header.GetSnapshot()
	index := snap.GetMetadata().GetIndex()
	if err := p.store.decode(in.Body); err != nil {
		p.s.fail(equalStates, "node %d: snapshot: %v", p.n.id, err)
		return
	}
	if index < p.applied {
		p.s.fail(appliesInOrder, "node %d restores the state at %d after it applied %d", p.n.id, index, p.applied)
		return
	}
	p.applied, p.hostBytes = index, snap.GetData()
	p.s.check.equal(p.n, index, p.store.digest())
	p.drive.Restored(in, nil)
	p.post(func(r *replica.Replica) { r.Durable(index) })
}

// Send sends messages.
func (p *hostProcess) Send(messages []wire.Message) {
	for _, m := range messages {
		p.send(m)
	}
}

// send puts a message into a frame and gives it to the network.
func (p *hostProcess) send(m wire.Message) {
	s, n := p.s, p.n
	pkt := packet{from: n.id, to: m.To, data: world.Encoded(m), sender: n.incarnation}
	_, isSnapshot := m.Body.(wire.Chunk)
	pkt.tells = isSnapshot && s.opts.Bug != silentLoss || !isSnapshot && !s.rng.Chance(s.plan.silent)
	s.net.send(pkt)
}

func (p *hostProcess) hear(lost packet, _ bool) { p.drive.Unreachable(lost.to) }

// patience is how long a node waits for the other end of a snapshot.
func (p *hostProcess) patience() time.Duration {
	if p.s.opts.Bug == silentLoss {
		return 1000 * time.Hour
	}
	return 10 * electionTime
}

var errBusy = errors.New("the snapshot is not ready")

// Open opens the present state for a peer, in one piece.
func (p *hostProcess) Open(uint64) (world.Snapshot, error) {
	p.s.reach.SnapshotsSent++
	if p.s.snapshotBusy() {
		return world.Snapshot{}, errBusy
	}
	body := p.store.encode()
	return world.Snapshot{Meta: replica.SnapshotMeta{Index: p.applied, Host: p.hostBytes},
		Body: bytes.NewReader(body), Chunk: len(body) + 1}, nil
}

// Room has room.
func (p *hostProcess) Room(_ uint64, next func()) { next() }

// SendChunk sends a snapshot.
func (p *hostProcess) SendChunk(m wire.Message, _ int, next func()) {
	p.send(m)
	next()
}

// Sent tells the replica how sending went.
func (p *hostProcess) Sent(to uint64, err error) {
	p.n.later(0, func() { p.post(func(r *replica.Replica) { r.SnapshotSent(to, err) }) })
}

// Offered counts snapshots that the replica does not take.
func (p *hostProcess) Offered(_ uint64, err error) {
	if err != nil {
		p.s.reach.SnapshotsRefused++
	}
}

// receive takes a frame.
func (p *hostProcess) receive(from uint64, data []byte) {
	p.post(func(*replica.Replica) {
		if err := world.Decode(data, func(m wire.Message) { p.receiveMessage(from, m) }); err != nil {
			p.s.fail(noPanic, "a frame from node %d to node %d does not survive its encoding: %v", from, p.n.id, err)
		}
	})
}

func (p *hostProcess) receiveMessage(from uint64, m wire.Message) {
	switch b := m.Body.(type) {
	case wire.Raft:
		p.s.tellMessage(p.n.id, "<", b.Message)
	case wire.Chunk:
		p.s.tellMessage(p.n.id, "< chunk", b.Header)
	case wire.ChunkStatus:
		p.s.tell(p.n.id, "< chunk status %d>%d %v", from, p.n.id, b.OK)
	default:
		p.s.tell(p.n.id, "< %v %d>%d", m.Kind(), from, p.n.id)
	}
	if err := p.drive.Deliver(m); err != nil {
		p.s.fail(noPanic, "node %d refuses a message of node %d: %v", p.n.id, from, err)
	}
}
