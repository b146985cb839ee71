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
	case p.s.opts.Bug == AckBeforeSync:
		p.n.sync(func() {})
		p.n.later(10*time.Microsecond, done)
	default:
		p.n.sync(done)
	}
}

func (p *hostProcess) written(batch []logWork) {
	p.writes.busy = false
	for _, w := range batch {
		if w.write != nil {
			p.r.AppendDone(*w.write)
		}
	}
	p.turn()
	p.startWrites()
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
		p.s.fail(NoPanic, "node %d: %v", p.n.id, err)
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

// stepWork is work for the state machine: one of its fields.
type stepWork struct {
	step    *replica.Apply
	restore *arrived
}

// arrived is a snapshot that came from a peer.
type arrived struct {
	from, stream uint64
	header       *pb.Message
	body         []byte
}

type stepQueue struct {
	waiting []stepWork
	busy    bool
}

// startSteps gives the state machine its next piece of work.
func (p *hostProcess) startSteps() {
	q := &p.steps
	if q.busy || len(q.waiting) == 0 {
		return
	}
	w := q.waiting[0]
	q.waiting, q.busy = q.waiting[1:], true
	if w.step != nil {
		p.n.later(p.s.rng.Within(0, p.s.plan.applyMax), func() { p.applyStep(*w.step) })
		return
	}
	// The state machine makes a restored state durable before it says so.
	inc := p.n.incarnation
	p.n.spindle.Beside(p.n.syncTime(), func() {
		if p.n.incarnation == inc {
			snap := w.restore.header.GetSnapshot()
			p.n.kept = keptState{index: snap.GetMetadata().GetIndex(), host: snap.GetData(), store: w.restore.body}
			p.n.whenAwake(func() { p.restored(w.restore) })
		}
	})
}

// applyStep applies a step, unless the state is beyond it already.
func (p *hostProcess) applyStep(a replica.Apply) {
	p.steps.busy = false
	var results []any
	if a.Batch.Index > p.applied {
		for _, data := range a.Batch.Commands {
			c, err := decodeCommand(data)
			if err != nil {
				p.s.fail(StateMachineSafety, "node %d, up to entry %d: %v", p.n.id, a.Batch.Index, err)
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
	p.r.ApplyDone(a, results)
	p.turn()
	p.startSteps()
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
			p.r.Durable(state.index)
			p.turn()
		})
	})
}

// restored puts the state of a snapshot into force, which is durable by now.
func (p *hostProcess) restored(a *arrived) {
	p.steps.busy = false
	index := a.header.GetSnapshot().GetMetadata().GetIndex()
	if err := p.store.decode(a.body); err != nil {
		p.s.fail(EqualStates, "node %d: snapshot: %v", p.n.id, err)
		return
	}
	if index < p.applied {
		p.s.fail(ApplyOrder, "node %d restores the state at %d after it applied %d", p.n.id, index, p.applied)
		return
	}
	p.applied, p.hostBytes = index, a.header.GetSnapshot().GetData()
	p.s.check.equal(p.n, index, p.store.digest())
	p.r.SnapshotRestored(a.header, nil)
	p.r.Durable(index)
	p.post(a.from, wire.ChunkStatus{Stream: a.stream, OK: true})
	p.turn()
	p.startSteps()
}

// post sends something of the host's own.
func (p *hostProcess) post(to uint64, body wire.Body) {
	p.send(wire.Message{Group: hostGroup, From: p.n.id, To: to, Body: body})
}

// send puts a message into a frame and gives it to the network.
func (p *hostProcess) send(m wire.Message) {
	s, n := p.s, p.n
	var f wire.Frame
	f.AppendMessage(m)
	var frame bytes.Buffer
	if _, err := f.WriteMessages(&frame); err != nil {
		s.fail(NoPanic, "node %d: a %v does not encode: %v", n.id, m.Kind(), err)
		return
	}
	pkt := packet{from: n.id, to: m.To, data: frame.Bytes()}
	c, isSnapshot := m.Body.(wire.Chunk)
	switch {
	case isSnapshot && s.opts.Bug == SilentLoss:
	case isSnapshot:
		pkt.lost = n.bound(func() { p.streamEnded(c.Stream, errLost) })
	case !s.rng.Chance(s.plan.silent):
		pkt.lost = n.bound(func() {
			p.r.Unreachable(m.To)
			p.turn()
		})
	}
	s.net.send(pkt)
}

var (
	errLost    = errors.New("the snapshot was lost on the way")
	errRefused = errors.New("the peer did not take the snapshot")
	errSilent  = errors.New("the peer did not answer")
)

// sendSnapshot sends the present state to a peer, in one piece.
func (p *hostProcess) sendSnapshot(sn replica.SnapshotSend) {
	p.s.reach.SnapshotsSent++
	header, err := replica.SnapshotHeader(sn, replica.SnapshotMeta{Index: p.applied, Host: p.hostBytes})
	p.stream++
	stream := p.stream
	p.streams[stream] = func(err error) { p.r.SnapshotSent(sn.To, err) }
	if err != nil || p.s.snapshotBusy() {
		p.n.later(0, func() { p.streamEnded(stream, errLost) })
		return
	}
	p.post(sn.To, wire.Chunk{Stream: stream, Header: header, Data: p.store.encode(), Last: true})
	if p.s.opts.Bug != SilentLoss {
		p.n.later(10*electionTime, func() { p.streamEnded(stream, errSilent) })
	}
}

// streamEnded tells the replica, once, how sending a snapshot went.
func (p *hostProcess) streamEnded(stream uint64, err error) {
	if end := p.streams[stream]; end != nil {
		delete(p.streams, stream)
		end(err)
		p.turn()
	}
}

// receive takes a frame.
func (p *hostProcess) receive(from uint64, data []byte) {
	payload, err := wire.ReadFrame(bytes.NewReader(data), wire.FrameMessages, wire.DefaultMaxFrame, nil)
	if err == nil {
		_, err = wire.DecodeMessages(payload, func(m wire.Message) { p.receiveMessage(from, m) })
	}
	if err != nil {
		p.s.fail(NoPanic, "a frame from node %d to node %d does not survive its encoding: %v", from, p.n.id, err)
		return
	}
	p.turn()
}

func (p *hostProcess) receiveMessage(from uint64, m wire.Message) {
	switch b := m.Body.(type) {
	case wire.Raft:
		p.s.tellMessage(p.n.id, "<", b.Message)
	case wire.Chunk:
		p.s.tellMessage(p.n.id, "< chunk", b.Header)
		p.offered(from, b)
		return
	case wire.ChunkStatus:
		p.s.tell(p.n.id, "< chunk status %d>%d %v", from, p.n.id, b.OK)
		err := error(nil)
		if !b.OK {
			err = errRefused
		}
		p.streamEnded(b.Stream, err)
		return
	default:
		p.s.tell(p.n.id, "< %v %d>%d", m.Kind(), from, p.n.id)
	}
	if err := p.r.Receive(m); err != nil {
		p.s.fail(NoPanic, "node %d refuses a message of node %d: %v", p.n.id, from, err)
	}
}

// offered takes a snapshot if the replica wants it.
func (p *hostProcess) offered(from uint64, c wire.Chunk) {
	if err := p.r.OfferSnapshot(from, c.Header); err != nil {
		p.s.reach.SnapshotsRefused++
		p.post(from, wire.ChunkStatus{Stream: c.Stream, OK: errors.Is(err, replica.ErrNotNeeded), Reason: err.Error()})
		return
	}
	p.turn() // the steps that the replica was given before go first
	p.steps.waiting = append(p.steps.waiting, stepWork{restore: &arrived{from: from, stream: c.Stream, header: c.Header, body: c.Data}})
	p.startSteps()
}
