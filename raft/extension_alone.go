// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"bytes"
	"math"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// alone is coding and leases off: entries stay as proposed, no brake holds Raft
// back, and news has no effect. Only envelopes are refused: a node without coding must
// not take an envelope for a payload.
type alone struct{ log *raftLog }

func (alone) Seal(ents []*pb.Entry) {
	for _, e := range ents {
		e.Data = bytes.Clone(e.Data) // empty and absent are not the same on the wire
	}
}
func (alone) Form(_ uint64, ents []*pb.Entry, _ int) ([]*pb.Entry, int) { return ents, 0 }
func (alone) Accept(ents []*pb.Entry) error                             { return extend.Foreign(ents, extend.Off) }
func (alone) Unwrap(ents []*pb.Entry, _ uint64) ([]*pb.Entry, error)    { return ents, nil }

func (alone) Committable(k uint64) uint64 { return k }
func (alone) CommittableBy(k uint64, _ func(uint64) uint64) uint64 {
	return k
}
func (alone) Releasable(k uint64) uint64        { return k }
func (alone) Room(uint64, uint64) int           { return math.MaxInt }
func (alone) ShownMatch(_, match uint64) uint64 { return match }
func (alone) MayPropose(e *pb.Entry) error {
	if extend.Foreign([]*pb.Entry{e}, extend.Off) != nil {
		return extend.ErrReserved
	}
	return nil
}
func (alone) MayVote(*pb.Message, bool) bool { return true }
func (alone) MayRun() bool                   { return true }
func (alone) MayChange(*extend.Change) error { return nil }
func (alone) MayHandTo(uint64) bool          { return true }
func (alone) MayLead() bool                  { return true }
func (alone) Recovered() (uint64, bool)      { return 0, true }
func (alone) MayCampaign() bool              { return false }
func (alone) MayRestore(ecraft.ID) bool      { return false }

func (p alone) LeaderIndex(*pb.Message) uint64  { return p.log.committed }
func (alone) TakeRead(*pb.Message) bool         { return false }
func (alone) HoldRead(*pb.Message, uint64) bool { return false }

func (alone) Appended([]*pb.Entry)               {}
func (alone) Truncated(uint64)                   {}
func (alone) Committed(uint64, uint64)           {}
func (alone) Applied(uint64)                     {}
func (alone) Restored(uint64)                    {}
func (alone) Survey(ents []*pb.Entry) error      { return extend.Foreign(ents, extend.Off) }
func (alone) Surveyed(uint64)                    {}
func (alone) Load(ents []*pb.Entry) error        { return extend.Foreign(ents, extend.Off) }
func (alone) HandedOut()                         {}
func (alone) Stored()                            {}
func (alone) Offered(uint64)                     {}
func (alone) Turned(extend.Role, uint64, uint64) {}
func (alone) Switched(tracker.ProgressMap)       {}
func (alone) VotersChanged()                     {}
func (alone) Cuts(uint64)                        {}
func (alone) Arrives(*pb.Message)                {}
func (alone) Handled(*pb.Message)                {}
func (alone) Leaves(*pb.Message)                 {}
func (alone) Unreachable(uint64)                 {}

func (alone) Check(*pb.Message) error { return nil }
func (alone) Step(*pb.Message) error  { return nil }
func (alone) Claims(*pb.Message) bool { return false }
func (alone) Tick()                   {}
func (alone) Poll()                   {}
func (alone) TakeOver() bool          { return false }
func (alone) Asked() []extend.Effect  { return nil }
