// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// This page lists everything an extension may do to Raft. Raft is to an extension as
// the host is to Raft: news goes in, effects come out. An extension reads the log and a
// view of the rest (package extend), and changes nothing itself: Raft carries out the
// extension's effects in one place, perform.go.
//
// An extension may change what the Data of an entry holds (forms), and may hold Raft
// back (brakes): a brake answers with less, or later, than Raft alone would, and
// changes nothing. Raft tells an extension of events (news), and gives it time for work
// of its own.
//
// Coded replication does more than hold Raft back in five places. Each has its
// argument:
//
//   - The winner of an election cuts its log (Recovered). No leader can have committed
//     an entry of the cut part: any majority can decode a committed entry, a majority
//     has answered and cannot decode the first cut entry, and this majority refuses
//     older terms from then on.
//   - A refused vote carries the voter's last committed entry (Leaves, Arrives). A
//     committed entry is committed in every term, and a candidate with the same entry
//     agrees with the voter up to there.
//   - A node that lacks a payload may campaign before it has applied a committed change
//     (MayCampaign), also a learner if the change makes the learner a voter. The node
//     counts votes by all configurations in its log, and may be the only node able to
//     win.
//   - A snapshot may take the place of a log that holds the snapshot's last entry
//     (MayRestore): only if no entry stands behind the last one, because the log may
//     have acknowledged such an entry.
//   - A leader unable to apply a committed entry hands leadership over (the effect
//     HandOver), as a host may at any time.
//
// Leases do more in four places:
//
//   - A responder answers a read (TakeRead). The responder's log has every entry
//     acknowledged or read before: leaders wait for the responder (Committable), and no
//     other leader can be elected while leases bind a majority (MayVote, MayRun).
//   - A leader answers a read without a round of heartbeats (TakeRead), for the
//     same reason, and not below its LeaderIndex.
//   - A confirmed read waits (HoldRead). A read may wait at any place.
//   - A responder commits by notes (the effect Commit): notes name the durable entries
//     of their senders, and the responder counts them by Raft's rule and by the rule of
//     leases.
//
// alone is Raft alone, coding.Coder is coding; both lays leases over either, and says what
// leases hear of and hold back: forms, lifts and surveys are for coding alone, reads for leases
// alone.
type extension interface {
	forms
	brakes
	lifts
	reads
	surveys
	logNews
	memberNews
	messageNews
	work
}

// forms are the contents of Data. Id, type and order of entries stay.
type forms interface {
	// Seal brings entries into the form for the leader's log, before the leader appends
	// them. Unsealed entries share the memory of the proposal.
	Seal(ents []*pb.Entry)
	// Form brings entries of the leader's log into the form for a member: at most room
	// bytes, but at least one entry unless the first cannot be made now. The host
	// shortens the result by saved bytes.
	Form(to uint64, ents []*pb.Entry, room int) (made []*pb.Entry, saved int)
	// Accept refuses a leader's entries in a form useless to this node.
	Accept(ents []*pb.Entry) error
	// Unwrap brings committed entries into the form for the host: up to most bytes, but
	// at least one entry unless its payload is missing.
	Unwrap(ents []*pb.Entry, most uint64) ([]*pb.Entry, error)
}

// brakes hold Raft back.
type brakes interface {
	// Committable returns the highest index, at most k, free to commit.
	Committable(k uint64) uint64
	// CommittableBy is Committable at any node, with held as the index each member
	// holds durably.
	CommittableBy(k uint64, held func(id uint64) uint64) uint64
	// Releasable returns the highest index, at most k, to hand to the host.
	Releasable(k uint64) uint64
	// Room bounds the bytes of entries, from index next on, in one append to a member
	// now; 0: none.
	Room(to, next uint64) int
	// ShownMatch returns the match index of a member as shown to hosts.
	ShownMatch(id, match uint64) uint64
	// MayPropose returns why a proposed entry cannot be appended, or nil.
	MayPropose(e *pb.Entry) error
	// MayChange returns why a configuration change, which follows no pending one, must not
	// be appended now, or nil.
	MayChange(change *extend.Change) error
	// MayVote reports whether this node may vote for a candidate, apart from terms and
	// logs; wished: the candidate campaigns because its leader hands over, after
	// checking that the candidate can lead.
	MayVote(m *pb.Message, wished bool) bool
	// MayRun reports whether this node may become a candidate.
	MayRun() bool
	// MayHandTo reports whether leadership may go to a member whose log is complete.
	MayHandTo(id uint64) bool
	// MayLead reports whether the winner of an election may lead at once. If not,
	// Recovered reports when the winner may, and the index from which the log is to be
	// cut first; 0: nowhere.
	MayLead() bool
	Recovered() (cut uint64, done bool)
}

// lifts are brakes of Raft's own, to be lifted by an extension.
type lifts interface {
	// MayCampaign reports whether this node may campaign with a committed change
	// unapplied.
	MayCampaign() bool
	// MayRestore reports whether a snapshot may replace a log holding the snapshot's
	// last entry.
	MayRestore(id ecraft.ID) bool
}

// reads are linearizable reads.
type reads interface {
	// LeaderIndex returns a leader's index for a read: the commit index, or more if
	// other nodes may have seen more.
	LeaderIndex(m *pb.Message) uint64
	// TakeRead takes over a read that has arrived, if this node may answer the read by
	// itself; HoldRead takes over a confirmed read until its index is committed. Both
	// report whether the read is taken.
	TakeRead(m *pb.Message) bool
	HoldRead(m *pb.Message, index uint64) bool
}

// surveys show the log as a node starts.
type surveys interface {
	// Survey shows the extension the oldest applied entries,
	// Load all unapplied ones. An error keeps the node from starting. Surveyed: all
	// entries behind an index were shown, or will be.
	Survey(ents []*pb.Entry) error
	Surveyed(before uint64)
	Load(ents []*pb.Entry) error
}

// logNews is news of the log: from raftLog, as it happens.
type logNews interface {
	Appended(ents []*pb.Entry)
	Truncated(from uint64) // is about to happen
	Committed(from, to uint64)
	Applied(index uint64)
	Restored(index uint64) // a snapshot is about to take the place of the log
	// HandedOut and Stored: a Ready had entries, and the host has stored them.
	HandedOut()
	Stored()
	// Offered: a Ready had no entries to apply behind this index, although Releasable
	// allows more.
	Offered(index uint64)
}

// memberNews is news of roles and members.
type memberNews interface {
	// Turned: this node has a new role, term or leader.
	Turned(role extend.Role, term, lead uint64)
	// Switched: another configuration is in force; before are the members before.
	Switched(before tracker.ProgressMap)
	// VotersChanged: other voters count, as the log has other unapplied changes.
	VotersChanged()
	// Cuts: the winner of an election is about to cut its log, or not to (0), and leads.
	Cuts(index uint64)
}

// messageNews is news of messages.
type messageNews interface {
	// Arrives: a message of another node is here, of any term. Handled: Raft has taken
	// the message. Leaves: a message is complete and about to leave; an extension may
	// fill fields left empty by Raft.
	Arrives(m *pb.Message)
	Handled(m *pb.Message)
	Leaves(m *pb.Message)
	Unreachable(id uint64)
}

// work is done in an extension's own time.
type work interface {
	// Check refuses messages of the extension's own types unless a correct node could
	// have sent them; Step takes them. Claims reports whether the sender asks as the
	// winner of an election.
	Check(m *pb.Message) error
	Step(m *pb.Message) error
	Claims(m *pb.Message) bool
	Tick()
	Poll()
	// TakeOver begins a leader's term, and reports whether the extension's entries take
	// the place of Raft's empty one.
	TakeOver() bool
	// Asked returns the effects queued since the last call.
	Asked() []extend.Effect
}
