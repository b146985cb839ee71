// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package extend is Raft as an extension, such as coded replication, sees it. An
// extension changes nothing itself: it reads a Log and a View, and queues Effects,
// which package raft carries out in one place. The interface of extensions is on one
// page: raft/extension.go.
package extend

import (
	"math"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/encoded"
)

// Log is the log as an extension reads it.
type Log interface {
	// First and Last are the bounds: the first entry not compacted, and the last
	// entry. Term returns the term of an entry between First and Last, and of the
	// entry before First.
	First() uint64
	Last() ecraft.ID
	Term(index uint64) (uint64, error)
	// Slice returns the entries in [lo, hi), up to so many bytes but at least one of
	// a range that is not empty.
	Slice(lo, hi uint64, most uint64) ([]*pb.Entry, error)
	Committed() uint64
	// Applied is the index that the host has applied.
	Applied() uint64
	// Released returns the highest index never needed again by this node, whatever
	// crashes, if the log begins at index first.
	Released(first uint64) uint64
	// Stored returns the first index of Storage, as a process that starts now would
	// find the log, and the last index behind which the log is not known to be written.
	Stored() (first, last uint64)
	// Snapshot asks the host for its snapshot; the host may take a new one.
	Snapshot() (*pb.Snapshot, error)
}

// View is the rest of Raft. No result may be changed.
type View interface {
	Term() uint64
	// Lead is the leader known to this node, possibly the node itself; 0 without one.
	Lead() uint64
	Role() Role
	// Progress is the progress of a member's log: at a leader, of members of
	// configurations to come too. It says false for a node that is not followed.
	Progress(id uint64) (tracker.Progress, bool)
	Electorate() Electorate
	// Transferee is the member to which leadership is being handed; 0: no member. must:
	// this leader can never apply what it commits, so nothing may delay the transfer that
	// safety does not need.
	Transferee() (id uint64, must bool)
	// Held is the configuration change that waits for a brake; nil: none.
	Held() *Change
}

// Change is a configuration change as a brake sees it.
type Change struct {
	// To is the voters of the configuration after the change, if they alone count then;
	// nil if the present voters go on counting, as on entering a joint configuration,
	// and if only learners change.
	To quorum.MajorityConfig
	// New are the nodes with a vote after the change and without one now, in order of id.
	New []uint64
	// Second says that another change stands before this one in the same proposal.
	Second bool
	// Leaves says that no host has proposed the change: the change leaves a joint
	// configuration with an automatic leave.
	Leaves bool
	// Insists: the host validates changes itself and may have proposed a next change that
	// builds on this one, so this one may wait but must not be refused.
	Insists bool
}

// Electorate is who counts: the questions of package electorate that extensions ask.
type Electorate interface {
	Sets() []quorum.MajorityConfig
	Torn() bool
	Smallest() int
	Everyone() []uint64
	Expects(id uint64) bool
	Brings() []uint64
	Heirs() (ids []uint64, since uint64)
	Settled(applied uint64) (cs *pb.ConfState, index uint64, ok bool)
	MayFollow() error
	FirstPending() uint64
	InForceTo(applied uint64) uint64
	// Config is the configuration in force, for leases: rosters name voters and learners.
	Config() tracker.Config
	Coming() []quorum.MajorityConfig
}

// Role is a node's role.
type Role int

// The roles. A Winner has won an election, does not lead yet, and recovers payloads.
const (
	Follower Role = iota
	Candidate
	Winner
	Leader
)

// Limit returns the longest prefix that encodes to at most so many bytes, but at
// least one entry of a slice that has any.
func Limit(ents []*pb.Entry, most uint64) []*pb.Entry {
	if most == math.MaxUint64 {
		return ents
	}
	size := uint64(0)
	for i, e := range ents {
		if size += uint64(encoded.Size(e)); size > most && i > 0 {
			return ents[:i]
		}
	}
	return ents
}

// Effect is a request of an extension to Raft.
type Effect struct {
	Do Do
	// To is a member, ID an entry or its index.
	To  uint64
	ID  ecraft.ID
	Msg *pb.Message
	// Holds says that Msg tells its receiver, beside all else, that this node holds the log
	// durably up to an index, in the term that stands in LogTerm.
	Holds uint64
	Ent   *pb.Entry
	// Members are those at ID.
	Members *pb.ConfState
	Err     error
}

// IsSaidBy reports whether a message of another effect says that this node holds as much.
func (e Effect) IsSaidBy(o Effect) bool {
	return o.Holds >= e.Holds && o.Msg.GetTo() == e.Msg.GetTo() && o.Msg.GetLogTerm() == e.Msg.GetLogTerm()
}

// Do is the kind of an Effect.
type Do int

// The kinds of effects.
const (
	Send     Do = iota // Msg leaves
	Vouch              // Msg leaves when this node's log is durable up to now
	Report             // the leader is sent an acknowledgement up to ID.Index
	Append             // Ent, of this term, is put at the end of the leader's log, which gives it an index
	Resend             // To is sent its next entries, if there are any
	Probe              // the same, and an append without entries if there are none
	Spread             // every member is sent its next entries
	Beat               // To is sent a heartbeat
	Snapshot           // To is sent a snapshot
	HandOver           // leadership is handed to To
	Continue           // a transfer goes on, if the transferee is ready by now
	Learn              // another node has Members in force, and has applied its log up to ID
	Commit             // the log is committed up to ID, if the log has that entry
	Refuse             // the change that waits is refused: an empty entry takes its place
	Retry              // the change that waits is appended, if it may be by now
	Count              // the leader counts acknowledgements again
	Answer             // Msg, a read, is answered with ID.Index, a committed index
	Redirect           // Msg, a read, is taken as if no extension did, and goes to the leader
	Bear               // the winner of an election gets on: its patience begins anew
	Fail               // the log cannot be read: Err
)

// Queue is effects in order, for an extension to embed.
type Queue struct{ effects []Effect }

// Ask queues an effect.
func (q *Queue) Ask(e Effect) { q.effects = append(q.effects, e) }

// Asked returns the effects since the last call, in order.
func (q *Queue) Asked() []Effect {
	out := q.effects
	q.effects = nil
	return out
}
