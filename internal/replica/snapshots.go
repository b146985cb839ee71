// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
)

// A snapshot on its way is a MsgSnap and a body. The body is the state
// machine's, is streamed, and is restored before the core hears of the MsgSnap:
// so what the core then knows is durable already. If the core has no use for it
// by then, the state machine is merely ahead, and the steps up to there are left
// out.

// ErrOutgoingFull tells SnapshotSent that a snapshot was not sent because others are
// being sent: nothing has failed.
var ErrOutgoingFull = errors.New("other snapshots are being sent")

// Answers of OfferSnapshot.
var (
	// ErrNotNeeded says that this node has applied the snapshot's index already. For the
	// sender the answer is as good as a restored snapshot.
	ErrNotNeeded = errors.New("this node has applied that much")
	// ErrRestoring says that another snapshot is being restored.
	ErrRestoring = errors.New("this node is restoring another snapshot")
	// errNoLog says that the first write to the log is not durable.
	errNoLog = errors.New("the log of this node has nothing yet, and is to have something before the state has: the disk has not answered")
)

// SnapshotHeader returns the message to send in place of s.Message, for a state
// that was opened after the core asked: it is as good or newer.
func SnapshotHeader(s SnapshotSend, meta SnapshotMeta) (*pb.Message, error) {
	h, err := decodeHostState(meta.Host)
	if err != nil {
		return nil, err
	}
	if h.at.index != meta.Index {
		return nil, fmt.Errorf("%w: the snapshot is of index %d, the host's bytes in it of %d", ErrState, meta.Index, h.at.index)
	}
	m := proto.Clone(s.Message).(*pb.Message)
	m.Snapshot = &pb.Snapshot{Metadata: h.meta(), Data: meta.Host}
	return m, nil
}

// sendSnapshot asks the driver to send a snapshot that the core wants sent.
func (r *Replica) sendSnapshot(m *pb.Message) {
	s := SnapshotSend{To: m.GetTo(), Message: m, Least: r.least(m), Sources: r.sources(m)}
	s.Urgency, _ = urgency(r.host.conf, s.To, append(slices.Clone(s.Sources), r.cfg.ID))
	r.holding.letGo(s.To)
	r.keep.holds[s.To] = hold{index: s.Least, total: r.keep.total}
	r.out.Snapshots = append(r.out.Snapshots, s)
}

// least returns the lowest index of a snapshot that does as well as one of the present state: the log goes on from there.
// So a follower goes on with what it fetches as an earlier leader has told it to. With coding, the core may want a
// follower beyond an entry that the log still has.
func (r *Replica) least(m *pb.Message) uint64 {
	index := m.GetSnapshot().GetMetadata().GetIndex()
	if r.coding.core != nil || r.keep.compacted == 0 {
		return index
	}
	return min(index, r.keep.compacted)
}

// sources are the members, other than this node and the receiver, that are heard and hold the
// log as far as a snapshot goes, and so may have applied it.
func (r *Replica) sources(snap *pb.Message) (ids []uint64) {
	_, progress := r.core.Members()
	for id, p := range progress {
		if id != r.cfg.ID && id != snap.GetTo() && p.Match >= snap.GetSnapshot().GetMetadata().GetIndex() && r.reachable(id) && !r.settings.barred(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// FetchHeader returns the header of a snapshot that a follower fetches from this node, for a state
// that was opened after the follower asked. Provides is asked after the state was opened.
func FetchHeader(to uint64, f wire.Fetch, meta SnapshotMeta) (*pb.Message, error) {
	h, err := SnapshotHeader(SnapshotSend{Message: &pb.Message{Type: pb.MsgSnap.Enum(), To: &to, Term: &f.Term}}, meta)
	if err != nil {
		return nil, err
	}
	snap := h.GetSnapshot().GetMetadata()
	if snap.GetIndex() < f.Index {
		return nil, fmt.Errorf("applied up to index %d, want %d", snap.GetIndex(), f.Index)
	}
	if !members.Has(snap.GetConfState(), to) {
		return nil, fmt.Errorf("%w: node %d, as of index %d", ErrNotMember, to, snap.GetIndex())
	}
	return h, nil
}

// Provides reports why this node must not send its state, as it was before the call, to a follower
// that a leader of a term has told to fetch one: see package fetch.
func (r *Replica) Provides(f wire.Fetch) error {
	r.drain()
	switch {
	case r.err != nil:
		return r.err
	case r.state.Term > f.Term:
		return fmt.Errorf("this node is in term %d, the snapshot was offered in term %d", r.state.Term, f.Term)
	case r.host.at.index < f.Index:
		return fmt.Errorf("applied up to index %d, want %d", r.host.at.index, f.Index)
	}
	return nil
}

// OfferedFetch asks whether to follow a leader's offer, and fetch a snapshot. If this node has
// applied as much already, the leader's core learns of it.
func (r *Replica) OfferedFetch(from uint64, o wire.Offer) error {
	r.drain()
	switch {
	case r.err != nil:
		return r.err
	case o.Term == 0 || o.Term == math.MaxUint64 || o.Index == 0:
		r.count.BadMessages++
		return fmt.Errorf("%w: node %d offers a snapshot of index %d in term %d", ErrBadMessage, from, o.Index, o.Term)
	case o.Term < r.state.Term:
		return fmt.Errorf("this node is in term %d, the snapshot was offered in term %d", r.state.Term, o.Term)
	case r.settings.barred(from):
		return fmt.Errorf("%w: nothing is taken from node %d", ErrSettings, from)
	case o.Index <= r.host.at.index:
		r.step(&pb.Message{Type: pb.MsgSnap.Enum(), From: new(from), To: new(r.cfg.ID), Term: new(o.Term),
			Snapshot: &pb.Snapshot{Metadata: r.host.meta(), Data: r.host.encode()}})
		return ErrNotNeeded
	case r.restoring != 0:
		return ErrRestoring
	case r.writes.nothing():
		return errNoLog
	}
	return nil
}

// Urgency returns how urgent it is that this node follows a leader's offer, by the members of its own state. The
// offer names the members that are complete. A node without a state is on its way to become a learner.
func (r *Replica) Urgency(from uint64, o wire.Offer) wire.Urgency {
	u, _ := urgency(r.host.conf, r.cfg.ID, append(slices.Clone(o.Sources), from))
	return u
}

// SnapshotSent reports the end of a snapshot: err is nil if the peer has restored the
// snapshot. After an error the core sends the next snapshot soon; a driver waits before
// reporting an error.
func (r *Replica) SnapshotSent(to uint64, err error) {
	switch {
	case err == nil:
		r.count.SnapshotsSent++
	case !errors.Is(err, ErrOutgoingFull):
		r.count.SnapshotsFailed++
	}
	r.keep.arrived(to, err == nil)
	r.core.ReportSnapshot(to, err == nil)
	r.dirty = true
}

// OfferSnapshot asks whether to take a peer's snapshot. After nil, the driver lets the
// state machine restore the snapshot, behind the steps given before, and calls
// SnapshotRestored.
func (r *Replica) OfferSnapshot(from uint64, header *pb.Message) error {
	if r.err != nil {
		return r.err
	}
	h, err := checkSnapshot(from, r.cfg.ID, header)
	if err != nil {
		r.count.BadMessages++
		return err
	}
	if first := h.origins.first(); len(first) > 0 && len(r.founding.members) > 0 && !slices.Equal(first, r.founding.members) {
		r.founding.meet(from, first)
		return fmt.Errorf("%w: snapshot of a group that began with the members %s, this node's with %s", ErrFirstMembers, firstNames(first, h.origins.mark()), firstNames(r.founding.members, r.founding.mark))
	}
	r.drain()
	switch {
	case h.at.index <= r.host.at.index:
		r.step(header) // the core answers with this node's index
		return ErrNotNeeded
	case r.restoring != 0:
		return ErrRestoring
	case r.writes.nothing():
		return errNoLog
	}
	r.restoring = h.at.index
	return nil
}

// SnapshotRestored says how restoring an offered snapshot went.
func (r *Replica) SnapshotRestored(header *pb.Message, err error) {
	r.drain() // what was committed meanwhile is cut at the snapshot's index
	r.restoring = 0
	if err != nil {
		r.count.RestoresFailed++
		return
	}
	h, err := decodeHostState(header.GetSnapshot().GetData())
	if err != nil {
		r.Fail(err)
		return
	}
	r.count.SnapshotsInstalled++
	if h.at.index > r.applied.at.index {
		r.applied = h.mark()
		// Steps before the snapshot's index may be at the apply stage still: no report may name its index before them.
		r.home.endStreams("this node has entries by a snapshot")
	}
	if h.at.index > r.host.at.index {
		r.host, r.founding.firstMembers = h, foundedBy(h.origins)
		r.keep.configured()
		r.outbox.jumped(h.origins, h.at)
	}
	r.step(header)
	r.reads.release()
}

// coreJumped notes that the core's place in the log is behind a snapshot that this
// node has restored; or behind an earlier snapshot, which the core had a use for.
func (r *Replica) coreJumped(s *pb.Snapshot) {
	h, err := decodeHostState(s.GetData())
	if err != nil {
		r.Fail(err)
		return
	}
	if r.origins = h.origins; h.at.index == r.host.at.index {
		r.origins = r.host.origins
	}
}
