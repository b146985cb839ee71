// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// repeats has the place in the log of the entries sent last to each peer, until the peer
// answers an append.
//
// A core without knowledge of the end of a peer's log (a new leader, or after a loss) sends
// entries with each heartbeat's answer until the entries are acknowledged. A peer whose
// disk is stuck acknowledges nothing, and holds the entries in memory: the core would send
// the same entries until the disk recovers. So a repeated append has no entries. A peer
// able to answer answers an empty append, too, and the core goes on from there. If the
// first append was lost, the repetition costs a round trip.
//
// A leader may send a shorter append at any time, so no safety rests on repeats.
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
