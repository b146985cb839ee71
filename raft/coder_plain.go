// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"bytes"
	"math"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/coding"
	"github.com/weftraft/weft/raft/internal/extend"
)

// plainCoder is coding and leases off: entries stay as proposed, no brake holds Raft
// back, and news has no effect. Only envelopes are refused: a node without coding must
// not take an envelope for a payload.
type plainCoder struct{ log *raftLog }

func (plainCoder) Seal(ents []*pb.Entry) {
	for _, e := range ents {
		e.Data = bytes.Clone(e.Data) // empty and absent are not the same on the wire
	}
}
func (plainCoder) Form(_ uint64, ents []*pb.Entry, _ int) ([]*pb.Entry, int) { return ents, 0 }
func (plainCoder) Accept(ents []*pb.Entry) error                             { return coding.Foreign(ents, coding.Off) }
func (plainCoder) Unwrap(ents []*pb.Entry, _ uint64) ([]*pb.Entry, error)    { return ents, nil }

func (plainCoder) Committable(k uint64) uint64 { return k }
func (plainCoder) CommittableBy(k uint64, _ func(uint64) uint64) uint64 {
	return k
}
func (plainCoder) Releasable(k uint64) uint64        { return k }
func (plainCoder) Room(uint64, uint64) int           { return math.MaxInt }
func (plainCoder) ShownMatch(_, match uint64) uint64 { return match }
func (plainCoder) MayPropose(e *pb.Entry) error {
	if coding.Foreign([]*pb.Entry{e}, coding.Off) != nil {
		return coding.ErrReserved
	}
	return nil
}
func (plainCoder) MayVote(*pb.Message, bool) bool { return true }
func (plainCoder) MayRun() bool                   { return true }
func (plainCoder) MayChange(*extend.Change) error { return nil }
func (plainCoder) MayHandTo(uint64) bool          { return true }
func (plainCoder) MayLead() bool                  { return true }
func (plainCoder) Recovered() (uint64, bool)      { return 0, true }
func (plainCoder) MayCampaign() bool              { return false }
func (plainCoder) MayRestore(ecraft.ID) bool      { return false }

func (p plainCoder) LeaderIndex(*pb.Message) uint64  { return p.log.committed }
func (plainCoder) TakeRead(*pb.Message) bool         { return false }
func (plainCoder) HoldRead(*pb.Message, uint64) bool { return false }

func (plainCoder) Appended([]*pb.Entry)               {}
func (plainCoder) Truncated(uint64)                   {}
func (plainCoder) Committed(uint64, uint64)           {}
func (plainCoder) Applied(uint64)                     {}
func (plainCoder) Restored(uint64)                    {}
func (plainCoder) Survey(ents []*pb.Entry) error      { return coding.Foreign(ents, coding.Off) }
func (plainCoder) Surveyed(uint64)                    {}
func (plainCoder) Load(ents []*pb.Entry) error        { return coding.Foreign(ents, coding.Off) }
func (plainCoder) HandedOut()                         {}
func (plainCoder) Stored()                            {}
func (plainCoder) Offered(uint64)                     {}
func (plainCoder) Turned(extend.Role, uint64, uint64) {}
func (plainCoder) Switched(tracker.ProgressMap)       {}
func (plainCoder) VotersChanged()                     {}
func (plainCoder) Cuts(uint64)                        {}
func (plainCoder) Arrives(*pb.Message)                {}
func (plainCoder) Handled(*pb.Message)                {}
func (plainCoder) Leaves(*pb.Message)                 {}
func (plainCoder) Unreachable(uint64)                 {}

func (plainCoder) Check(*pb.Message) error { return nil }
func (plainCoder) Step(*pb.Message) error  { return nil }
func (plainCoder) Claims(*pb.Message) bool { return false }
func (plainCoder) Tick()                   {}
func (plainCoder) Poll()                   {}
func (plainCoder) TakeOver() bool          { return false }
func (plainCoder) Asked() []extend.Effect  { return nil }
