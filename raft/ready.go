// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Ready is the host's work for the state machine: write, send, apply. An empty field
// asks for nothing. Slices and their elements are shared with the state machine:
// neither the host nor the state machine changes them. The slice CommittedEntries is the
// host's own, to filter in place for example; its elements are shared.
type Ready struct {
	// SoftState is the new soft state; nil if unchanged.
	*SoftState

	// HardState is to be written before Messages are sent; nil if unchanged. With async
	// storage writes MsgStorageAppend has it too.
	*pb.HardState

	// ReadStates are confirmed reads (see ReadIndex).
	ReadStates []ReadState

	// Entries are to be written before Messages are sent. Entries replace the log from
	// their first index on. With async storage writes MsgStorageAppend has them too.
	Entries []*pb.Entry

	// Snapshot is to be written and applied; nil if there is none. A snapshot replaces
	// the log. With async storage writes MsgStorageAppend has it too.
	Snapshot *pb.Snapshot

	// CommittedEntries are to be applied, in order. With async storage writes
	// MsgStorageApply has them too.
	CommittedEntries []*pb.Entry

	// Messages are to be sent after Entries, HardState and Snapshot are written. With
	// async storage writes Messages leave at once, because messages that must wait are
	// responses in MsgStorageAppend. The local threads' messages are last.
	//
	// The host reports how sending a MsgSnap went (ReportSnapshot).
	Messages []*pb.Message

	// MustSync says that the writes must be durable, not merely issued, before Messages
	// are sent.
	MustSync bool
}

// MustSync reports whether going from the hard state prevst to st, with entsnum new
// entries, needs a durable write. A new commit index alone needs none, because a node
// learns the commit index again.
func MustSync(st, prevst *pb.HardState, entsnum int) bool {
	return entsnum != 0 || st.GetVote() != prevst.GetVote() || st.GetTerm() != prevst.GetTerm()
}

func (r *raft) hardState() hardState {
	return hardState{term: r.term, vote: r.vote, commit: r.log.committed}
}

// HasReady reports whether Ready would ask for anything.
func (rn *RawNode) HasReady() bool {
	r := rn.raft
	if r.log.err != nil {
		return false
	}
	hs := r.hardState()
	return len(r.outbox) > 0 || len(r.vouching) > 0 ||
		len(r.readStates) > 0 ||
		r.softState() != rn.toldSoft ||
		hs != rn.toldHard && hs != hardState{} ||
		len(r.log.tail.unhanded()) > 0 ||
		r.log.tail.unhandedSnapshot() != nil ||
		r.log.hasNextCommitted(rn.appliesUnwritten())
}

// Ready returns the host's work, and counts the work as taken on. Unless writes are
// asynchronous, Advance must follow before the next Ready.
func (rn *RawNode) Ready() Ready {
	rd := rn.offer()
	rn.accept(rd)
	return rd
}

// appliesUnwritten reports whether entries may be applied before their write here is
// reported: a host with one turn for both writes first and applies second, a host with
// two threads may not.
func (rn *RawNode) appliesUnwritten() bool { return !rn.raft.cfg.AsyncStorageWrites }

// offer builds a Ready and changes nothing.
func (rn *RawNode) offer() Ready {
	r := rn.raft
	if r.log.err != nil {
		return Ready{}
	}
	rd := Ready{Entries: r.log.tail.unhanded(), Snapshot: r.log.tail.unhandedSnapshot(), ReadStates: r.readStates}
	rn.committed = r.log.nextCommitted(rn.appliesUnwritten())
	rd.CommittedEntries = slices.Clone(rn.committed)
	if r.log.err != nil { // reading the committed entries failed
		return Ready{}
	}
	if soft := r.softState(); soft != rn.toldSoft {
		rd.SoftState = &SoftState{soft.Lead, soft.RaftState} // soft itself stays on the stack
	}
	hs := r.hardState()
	if hs != rn.toldHard {
		rd.HardState = hs.proto()
	}
	rd.MustSync = len(rd.Entries) > 0 || hs.term != rn.toldHard.term || hs.vote != rn.toldHard.vote
	rd.Messages = rn.outgoing(rd)
	return rd
}

// outgoing returns the messages of a Ready: messages free to leave at once, then
// messages after writing.
func (rn *RawNode) outgoing(rd Ready) []*pb.Message {
	r := rn.raft
	var later []*pb.Message
	if r.cfg.AsyncStorageWrites {
		if m := r.storageAppend(rd); m != nil {
			later = append(later, m)
		}
		if len(rd.CommittedEntries) > 0 {
			later = append(later, r.storageApply(rd.CommittedEntries, rn.committed))
		}
	} else {
		// The host sends after writing, so vouching messages may go with the rest.
		// Messages of this node to itself wait for Advance.
		for _, m := range r.vouching {
			if m.GetTo() != r.id {
				later = append(later, m)
			}
		}
	}
	if len(r.outbox) == 0 {
		return later
	}
	return append(slices.Clip(r.outbox), later...)
}

// accept notes that the host works on rd, the last result of offer.
func (rn *RawNode) accept(rd Ready) {
	r := rn.raft
	if r.log.err != nil {
		return
	}
	if rd.SoftState != nil {
		rn.toldSoft = *rd.SoftState
	}
	if !IsEmptyHardState(rd.HardState) {
		rn.toldHard = hardStateOf(rd.HardState)
	}
	if !r.cfg.AsyncStorageWrites {
		rn.planAdvance(rd)
	}
	r.readStates, r.outbox, r.vouching = nil, nil, nil
	if len(rd.Entries) > 0 {
		r.extension.HandedOut()
	}
	r.log.tail.hand()
	r.log.acceptApplying(rn.committed, rn.appliesUnwritten())
	rn.committed = nil
	r.checkInvariants()
}

// planAdvance keeps the messages of this node to itself that follow from the host's
// work on rd, until Advance.
func (rn *RawNode) planAdvance(rd Ready) {
	r := rn.raft
	if len(rn.onAdvance) > 0 {
		r.cfg.Logger.Panicf("raft: node %x: a second Ready was taken without Advance for the first", r.id)
	}
	if rn.reports == nil {
		rn.reports = new([2]envelope)
	}
	for _, m := range r.vouching {
		if m.GetTo() == r.id {
			rn.onAdvance = append(rn.onAdvance, m)
		}
	}
	if m := r.storageAppendResp(&rn.reports[0], rd); m != nil {
		rn.onAdvance = append(rn.onAdvance, m)
	}
	if len(rn.committed) > 0 {
		rn.onAdvance = append(rn.onAdvance, r.storageApplyResp(&rn.reports[1], rn.committed))
	}
}

// Advance says that the host has done the work of the last Ready: the writes are done,
// and the committed entries are applied, or will be before any later entry. The
// argument is ignored. With async storage writes the responses take the place of
// Advance, and Advance panics.
func (rn *RawNode) Advance(_ Ready) {
	r := rn.raft
	if r.cfg.AsyncStorageWrites {
		r.cfg.Logger.Panicf("raft: node %x: Advance was called, but Config.AsyncStorageWrites is set; deliver the responses instead", r.id)
	}
	for i, m := range rn.onAdvance {
		_ = r.Step(m) // the only possible error is ErrStorage, which stays
		rn.onAdvance[i] = nil
	}
	rn.onAdvance = rn.onAdvance[:0]
}

// DescribeReady describes a Ready, a line or more for each part present.
func DescribeReady(rd Ready, f EntryFormatter) string {
	var parts []string
	add := func(s string) { parts = append(parts, s) }
	if rd.SoftState != nil {
		add(DescribeSoftState(*rd.SoftState) + "\n")
	}
	if !IsEmptyHardState(rd.HardState) {
		add("HardState " + DescribeHardState(rd.HardState) + "\n")
	}
	if len(rd.ReadStates) > 0 {
		add(fmt.Sprintf("ReadStates %v\n", rd.ReadStates))
	}
	if len(rd.Entries) > 0 {
		add("Entries:\n" + DescribeEntries(rd.Entries, f))
	}
	if !IsEmptySnap(rd.Snapshot) {
		add("Snapshot " + DescribeSnapshot(rd.Snapshot) + "\n")
	}
	if len(rd.CommittedEntries) > 0 {
		add("CommittedEntries:\n" + DescribeEntries(rd.CommittedEntries, f))
	}
	if len(rd.Messages) > 0 {
		add("Messages:\n")
	}
	for _, m := range rd.Messages {
		add(DescribeMessage(m, f) + "\n")
	}
	if len(parts) == 0 {
		return "<empty Ready>"
	}
	return fmt.Sprintf("Ready MustSync=%t:\n%s", rd.MustSync, strings.Join(parts, ""))
}
