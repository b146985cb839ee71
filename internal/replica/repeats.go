// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// repeats knows where in the log each peer was sent entries last that has not
// answered an append since.
//
// A core that does not know where a peer's log ends (it has just come to lead, or
// something was lost) sends entries with each heartbeat's answer until they are
// acknowledged. A peer whose disk is stuck acknowledges nothing, and keeps what
// it has: it would be sent the same entries for ever. So what is sent to it a
// second time has no entries. A peer that can answer answers that, too, and the
// core goes on from there. Had the first been lost, that costs a round trip.
//
// A shorter append is one that a leader may send at any time, so no safety rests
// on this.
type repeats map[uint64]wire.Place // by peer

// cut returns m, or without entries if m is a repetition.
func (r repeats) cut(m *pb.Message) (_ *pb.Message, repeated bool) {
	place, ok := wire.PlaceOf(wire.Message{Body: wire.Raft{Message: m}})
	if !ok || place.Empty {
		return m, false
	}
	last, sent := r[m.GetTo()]
	if !sent || place.Term != last.Term || place.Index > last.Index {
		r[m.GetTo()] = place
		return m, false
	}
	return &pb.Message{
		Type: m.Type, To: m.To, From: m.From, Term: m.Term,
		LogTerm: m.LogTerm, Index: m.Index, Commit: m.Commit,
	}, true
}

// answered notes that a peer answers appends.
func (r repeats) answered(m *pb.Message) {
	if m.GetType() == pb.MsgAppResp {
		delete(r, m.GetFrom())
	}
}
