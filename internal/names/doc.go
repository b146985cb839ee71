// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package names lets a leader append at a follower without sending data that came from the
// follower.
//
// A node that follows forwards the batches of its clients to the leader, and keeps each batch until
// the batch is applied. The data of the batch's entry is the batch, byte for byte. So the leader
// sends the follower the MsgApp without that data: with a name, which is the length and a checksum of
// the data, and the number of the batch. The follower joins the message with its batch and gives its
// core the message that the leader's core has made.
//
//	leader                                  follower
//	Giver.Name:  MsgApp -> Named   ------>  Taker.Arrive: joined, for the core; or else
//	Giver.Lack                     <------  Lack, and the message waits, with its lane
//	             Fill              ------>  Taker.Fill, then Taker.Resolve: joined
//
// The core does not know of names: a message with a name is its MsgApp, later or lost. The number
// of a batch only says where to look; length and checksum, which are the leader's, say whether the
// bytes are the entry's. What the follower keeps, and the originals that the leader keeps for Fill,
// are memory: nobody acknowledges, counts, recovers from, or needs either.
//
// Names serve plain entries. Of a coded entry a follower is sent a unit, and not the payload.
//
// Where members stand in zones, a leader also sends names of data that another member in the receiver's
// zone, the relay, is sent anyway: see [Zones]. The receiver asks the relay, and the leader only if the
// relay is silent.
//
//	leader                      relay                    follower
//	Zones: MsgApp    ------->   Relay.Saw
//	Giver.Name: MsgApp -> Named           ------------>  Taker.Arrive: it waits
//	                            Relay.Want      <------  Want
//	                            Relay.Answers   ------>  Taker.Fill, then Taker.Resolve: joined
//	Giver.Lack                            <------------  Taker.Overdue: Lack, after a silence
//
// A learner's append of several entries may be sent as a run: one name for all of them. Nobody waits for a learner, so its small
// entries need not go directly.
//
// All else goes directly: heartbeats, votes, acknowledgements. A relay makes no message of Raft, so From
// and Term of each are the leader's.
//
// All times are ticks of the replica, as arguments.
package names

import (
	"encoding/binary"
	"errors"
	"hash/crc64"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// minBytes is the least length of named data. A name takes about 40 bytes and a checksum of the data
// at both ends; below about a dozen times that, the headers of entry and message weigh as much.
const minBytes = 512

// errBad says that a peer's message about names is faulty.
var errBad = errors.New("bad message about names")

var table = crc64.MakeTable(crc64.ECMA)

// Ask is a message for a peer.
type Ask struct {
	To   uint64
	Body wire.Body
}

// Sum returns the checksum of an entry's data.
func Sum(data []byte) uint64 { return crc64.Checksum(data, table) }

// sumOf returns the checksum of the data of a run's entries: of their lengths, too.
func sumOf(data [][]byte) (sum uint64) {
	var length [binary.MaxVarintLen64]byte
	for _, d := range data {
		sum = crc64.Update(sum, table, length[:binary.PutUvarint(length[:], uint64(len(d)))])
		sum = crc64.Update(sum, table, d)
	}
	return sum
}

// fitsRun reports whether data is what a run stands for.
func fitsRun(r wire.Run, data [][]byte) bool {
	length := uint64(0)
	for _, d := range data {
		length += uint64(len(d))
	}
	return uint64(len(data)) == r.Count && length == r.Length && sumOf(data) == r.Sum
}

// withRun returns the append that a run stands for. The entries are as a core makes them for data alone.
func withRun(b wire.Raft, data [][]byte) wire.Raft {
	b = withData(b, nil, nil)
	for i, d := range data {
		b.Entries = append(b.Entries, &pb.Entry{Term: new(b.GetTerm()), Index: new(b.GetIndex() + 1 + uint64(i)), Data: d})
	}
	return b
}

// fits reports whether data is what a name stands for.
func fits(n wire.Name, data []byte) bool {
	return uint64(len(data)) == n.Length && Sum(data) == n.Sum
}

// withData returns a copy of an append in which the named entries have these data, or none. Nothing
// of b changes.
func withData(b wire.Raft, names []wire.Name, data [][]byte) wire.Raft {
	m := b.Message
	out := &pb.Message{
		Type: m.Type, To: m.To, From: m.From, Term: m.Term, LogTerm: m.LogTerm, Index: m.Index,
		Entries: slices.Clone(m.Entries), Commit: m.Commit, Vote: m.Vote, Snapshot: m.Snapshot,
		Reject: m.Reject, RejectHint: m.RejectHint, Context: m.Context, Responses: m.Responses,
	}
	out.ProtoReflect().SetUnknown(m.ProtoReflect().GetUnknown())
	for i, n := range names {
		e := m.Entries[n.Entry]
		entry := &pb.Entry{Type: e.Type, Term: e.Term, Index: e.Index}
		entry.ProtoReflect().SetUnknown(e.ProtoReflect().GetUnknown())
		if data != nil {
			entry.Data = data[i]
		}
		out.Entries[n.Entry] = entry
	}
	b.Message = out
	return b
}
