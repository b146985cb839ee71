// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// shownLog is the log as extensions read it.
type shownLog struct{ *raftLog }

func (l shownLog) First() uint64                   { return l.firstIndex() }
func (l shownLog) Last() ecraft.ID                 { return ecraft.ID{Term: l.last().Term, Index: l.last().Index} }
func (l shownLog) Term(i uint64) (uint64, error)   { return l.term(i) }
func (l shownLog) Committed() uint64               { return l.committed }
func (l shownLog) Applied() uint64                 { return l.applied }
func (l shownLog) Snapshot() (*pb.Snapshot, error) { return l.snapshot() }

func (l shownLog) Slice(lo, hi, most uint64) ([]*pb.Entry, error) {
	return l.slice(lo, hi, entryEncodingSize(most))
}

func (l shownLog) Stored() (first, last uint64) { return l.storedFirst(), l.tail.base.Index }

// Released returns the highest index the host will never need again, after any crash:
// the compacted part, or more by [Releaser].
func (l shownLog) Released(first uint64) uint64 {
	k := first - 1
	if s, ok := l.storage.(Releaser); ok {
		k = max(k, min(s.Released(), l.applied))
	}
	return k
}

// changeLog is the log as the electorate reads it.
type changeLog struct{ *raftLog }

func (l changeLog) Entry(index uint64) (*pb.Entry, error) { return l.entry(index) }
func (l changeLog) HandedOut() uint64                     { return l.applying }

// shownRaft is the rest of Raft as extensions see it.
type shownRaft struct{ *raft }

func (s shownRaft) Term() uint64                  { return s.term }
func (s shownRaft) Lead() uint64                  { return s.lead }
func (s shownRaft) Role() extend.Role             { return shownRole(s.role) }
func (s shownRaft) Electorate() extend.Electorate { return s.members }

func (s shownRaft) Progress(id uint64) (tracker.Progress, bool) {
	if pr := s.members.Progress(id); pr != nil {
		return *pr, true
	}
	return tracker.Progress{}, false
}

func (s shownRaft) Transferee() (id uint64, must bool) {
	if l := s.leading(); l != nil {
		return l.transferee, l.transferee != None && l.mustHand
	}
	return None, false
}

func (s shownRaft) Held() *extend.Change {
	if l := s.leading(); l != nil {
		return l.heldChange()
	}
	return nil
}

func shownRole(ro role) extend.Role {
	switch ro.(type) {
	case *leader:
		return extend.Leader
	case *recoverer:
		return extend.Winner
	case *candidate:
		return extend.Candidate
	}
	return extend.Follower
}
