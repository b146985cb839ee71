// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package extend has what an extension of Raft, such as coded replication, sees
// of it and may ask of it. An extension changes nothing itself: it reads a Log
// and a View, and queues Effects, which package raft carries out in one place.
// What an extension may do, and when it is asked, is on one page: raft/coder.go.
package extend

import (
	"math"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weftraft/weft/ecraft"
)

// Log is the log as an extension reads it.
type Log interface {
	// First and Last are its bounds: the first entry that is not compacted, the
	// last one. Term returns the term of an entry between them, and of the one
	// before the first.
	First() uint64
	Last() ecraft.ID
	Term(index uint64) (uint64, error)
	// Slice returns the entries in [lo, hi), up to so many bytes but at least one of
	// a range that is not empty.
	Slice(lo, hi uint64, most uint64) ([]*pb.Entry, error)
	Committed() uint64
	// Applied is what the host has applied.
	Applied() uint64
	// Released returns the highest index that this node will never need again, whatever
	// crashes, if the log begins at index first.
	Released(first uint64) uint64
	// Stored returns the first index of Storage, that of a process which would start
	// now, and the last index behind which the log is not known to be written.
	Stored() (first, last uint64)
	// Snapshot asks the host for a snapshot, which may make it take one.
	Snapshot() (*pb.Snapshot, error)
}

// View is what an extension sees of the rest of Raft. Nothing that it returns
// may be changed.
type View interface {
	Term() uint64
	// Lead is the leader that this node follows, or is; 0 if it knows none.
	Lead() uint64
	Role() Role
	// Members is the configuration in force and, at a leader, what is known of each
	// member's log: members of configurations to come are among them.
	Members() *tracker.ProgressTracker
	Electorate() Electorate
	// Transferee is the member that leadership is being handed to; 0: none.
	Transferee() uint64
	// Held is the configuration change that waits for a brake; nil: none.
	Held() *Change
}

// Change is a configuration change as a brake sees it.
type Change struct {
	// To is the voters that count alone once it is in force; nil if the present ones go
	// on counting, as on entering a joint configuration, and where only learners change.
	To quorum.MajorityConfig
	// New are the nodes that get a vote and have none, in order of id.
	New []uint64
	// Second says that another change stands before it in the same proposal.
	Second bool
	// Leaves says that no host has proposed it: it leaves a joint configuration that is
	// to be left by itself.
	Leaves bool
	// Insists says that it must not be refused: others may fit behind it.
	Insists bool
}

// Electorate is whose votes and acknowledgements count.
type Electorate interface {
	// Sets returns the sets of voters a majority of each of which must agree.
	Sets() []quorum.MajorityConfig
	// Torn reports whether configurations that are not in force are among these.
	Torn() bool
	// Everyone returns all members, learners too, in order of id.
	Everyone() []uint64
	// Expects reports whether a node is a member of a configuration to come.
	Expects(id uint64) bool
	// Changes are the indexes of the changes that are not in force, ascending.
	Changes() []uint64
	// Newest is the voters after the last of them; nil if there is none.
	Newest() map[uint64]struct{}
}

// Role is what a node does.
type Role int

// The roles. A Winner has won an election and does not lead yet: it recovers.
const (
	Follower Role = iota
	Candidate
	Winner
	Leader
)

// EncodedSize returns the bytes of entries as encoded. It is proto.Size, several
// times as fast: every entry is measured four times on its way through a node, and
// that was most of the time spent on small ones. A field costs a byte for its tag and
// then its value.
func EncodedSize(ents ...*pb.Entry) (n int) {
	for _, e := range ents {
		n += len(e.ProtoReflect().GetUnknown())
		if e.Type != nil {
			n += 1 + protowire.SizeVarint(uint64(*e.Type))
		}
		if e.Term != nil {
			n += 1 + protowire.SizeVarint(*e.Term)
		}
		if e.Index != nil {
			n += 1 + protowire.SizeVarint(*e.Index)
		}
		if e.Data != nil {
			n += 1 + protowire.SizeBytes(len(e.Data))
		}
	}
	return n
}

// Limit returns the longest prefix that encodes to at most so many bytes, but at
// least one entry of a slice that has any.
func Limit(ents []*pb.Entry, most uint64) []*pb.Entry {
	if most == math.MaxUint64 {
		return ents
	}
	size := uint64(0)
	for i, e := range ents {
		if size += uint64(EncodedSize(e)); size > most && i > 0 {
			return ents[:i]
		}
	}
	return ents
}

// Effect is one thing that an extension asks of Raft.
type Effect struct {
	Do Do
	// To is a member, ID an entry or its index.
	To  uint64
	ID  ecraft.ID
	Msg *pb.Message
	Ent *pb.Entry
	Err error
}

// Do says what an Effect asks for.
type Do int

// What an extension can ask for.
const (
	Send     Do = iota // Msg leaves
	Vouch              // Msg leaves when what this node holds by now is durable
	Report             // the leader hears of what this node holds, up to ID.Index
	Append             // Ent is appended to the log of the leader that this node is
	Resend             // To is sent the entries that come next for it, if there are any
	Probe              // the same, and an append without entries if there are none
	Spread             // everybody is sent what comes next
	Beat               // To is sent a heartbeat
	Snapshot           // To is sent a snapshot
	HandOver           // leadership is handed to To
	Continue           // a transfer goes on, if the transferee is ready by now
	Commit             // the log is committed up to ID, if it holds that entry
	Refuse             // the change that waits is refused: an empty entry takes its place
	Retry              // it is appended, if it may be by now
	Count              // the leader counts acknowledgements again
	Answer             // Msg, a read, is answered with ID.Index, which is committed
	Redirect           // Msg, a read, is taken as if no extension did, and goes to the leader
	Bear               // the winner of an election gets on: its patience begins anew
	Fail               // the log cannot be read as what it says it is: Err
)

// Queue is effects in order, for an extension to embed.
type Queue struct{ effects []Effect }

// Ask queues an effect.
func (q *Queue) Ask(e Effect) { q.effects = append(q.effects, e) }

// Asked returns what was asked since the last call, in order.
func (q *Queue) Asked() []Effect {
	out := q.effects
	q.effects = nil
	return out
}

// Ahead returns how many entries wait to be appended.
func (q *Queue) Ahead() (n uint64) {
	for _, e := range q.effects {
		if e.Do == Append {
			n++
		}
	}
	return n
}
