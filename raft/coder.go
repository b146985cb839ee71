// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// This page says everything that an extension may do to Raft. What the host is to
// Raft, Raft is to an extension: news goes in, effects come out. An extension reads
// the log and a view of the rest (package extend), and changes nothing itself: what
// it asks for is carried out in one place, perform.go.
//
// An extension may change what the Data of an entry holds (forms), and may hold
// Raft back (brakes): a brake answers with less, or later, than Raft alone would,
// and changes nothing. It hears of what happens (news), and has work of its own.
//
// Coded replication does more than hold Raft back in five places. Each has its
// argument:
//
//   - The winner of an election cuts its log (Recovered). Nobody can have committed
//     what it cuts: any majority can decode what is committed, a majority has
//     answered and cannot, and that majority refuses older terms from then on.
//   - A refused vote tells what is committed (Leaves, Arrives). What is committed is
//     so in any term, and a candidate that has the very entry agrees with the voter up
//     to there.
//   - A node that lacks a payload may campaign before it has applied a committed
//     change (MayCampaign), a learner too that the change makes a voter. It counts
//     votes by all configurations in its log, and may be the only node that can win.
//   - A snapshot may take the place of a log that holds the snapshot's last entry
//     (MayRestore): only if nothing stands behind that entry, so that nothing that was
//     acknowledged is dropped.
//   - A leader that cannot apply what it commits hands leadership over (the effect
//     HandOver), as a host may at any time.
//
// Leases do more in four places:
//
//   - A responder answers a read (TakeRead). Everything that was acknowledged or read
//     before is in its log: leaders waited for it (Committable), and no other leader
//     can be elected while a majority is bound to it (MayVote, MayRun).
//   - A leader answers a read without a round of heartbeats (TakeRead), for the
//     same reason, and not below its LeaderIndex.
//   - A read waits that a leader has confirmed (HoldRead). It may, at any place.
//   - A responder commits by notes (the effect Commit): it counts, by Raft's own rule and by
//     that of leases, what others say that they hold durably.
//
// Neither is plainCoder. Coding is coding.Coder, leases are laid over one of these by
// leased.
type coder interface {
	// Forms: what stands in Data. Id, type and order of entries stay.

	// Seal makes entries that a leader is about to append what it stores. Until then
	// they share the memory of the proposal.
	Seal(ents []*pb.Entry)
	// Form makes of entries of a leader's log what a member is sent, in at most room
	// bytes but at least one entry, if that can be made now. The host makes what it
	// returns shorter by saved bytes.
	Form(to uint64, ents []*pb.Entry, room int) (made []*pb.Entry, saved int)
	// Accept refuses entries from a leader that this node could not make use of.
	Accept(ents []*pb.Entry) error
	// Unwrap makes of committed entries what the host is to see, up to so many bytes
	// but at least one entry if its payload is here.
	Unwrap(ents []*pb.Entry, most uint64) ([]*pb.Entry, error)

	// Brakes.

	// Committable returns the highest index up to k that may be committed.
	Committable(k uint64) uint64
	// CommittableBy is the same at any node, by what held says that members hold.
	CommittableBy(k uint64, held func(id uint64) uint64) uint64
	// Releasable returns the highest index up to k that the host may be handed.
	Releasable(k uint64) uint64
	// Room bounds the bytes of entries, from index next on, that a member may be sent
	// now; 0: none.
	Room(to, next uint64) int
	// ShownMatch returns the part of a member's matching log that hosts see.
	ShownMatch(id, match uint64) uint64
	// MayPropose returns why an entry cannot be appended as it was proposed.
	MayPropose(e *pb.Entry) error
	// MayChange reports whether a configuration change may be appended now.
	MayChange(change *extend.Change) bool
	// MayVote reports whether this node may vote for a candidate, as far as that does
	// not follow from terms and logs; wished: the candidate campaigns because its leader
	// hands over, and has looked whether the candidate can lead.
	MayVote(m *pb.Message, wished bool) bool
	// MayRun reports whether this node may become a candidate.
	MayRun() bool
	// MayHandTo reports whether leadership may go to a member whose log is complete.
	MayHandTo(id uint64) bool
	// MayLead reports whether the winner of an election may lead at once. Recovered
	// says when it may if not, and from where its log is to be cut first; 0: nowhere.
	MayLead() bool
	Recovered() (cut uint64, done bool)

	// Two brakes of Raft's own that an extension may lift.

	// MayCampaign reports whether this node may campaign although it has not applied a
	// committed change.
	MayCampaign() bool
	// MayRestore reports whether a snapshot may take the place of a log that holds the
	// snapshot's last entry.
	MayRestore(id ecraft.ID) bool

	// Reads.

	// LeaderIndex returns the index that a leader takes for a read: what it has
	// committed, unless others may have seen more.
	LeaderIndex(m *pb.Message) uint64
	// TakeRead and HoldRead take a read over, and report whether they did: one that
	// has arrived, which this node may answer by itself; one that a leader has
	// confirmed, whose index is not committed yet.
	TakeRead(m *pb.Message) bool
	HoldRead(m *pb.Message, index uint64) bool

	// News of the log: from raftLog, as it happens.

	Appended(ents []*pb.Entry)
	Truncated(from uint64) // is about to happen
	Committed(from, to uint64)
	Applied(index uint64)
	Restored(index uint64) // a snapshot is about to take the place of the log
	// Survey and Load: this node has found these entries as it started, applied ones and
	// others. An error keeps the node from starting. Surveyed: all entries behind an
	// index were shown, or will be.
	Survey(ents []*pb.Entry) error
	Surveyed(before uint64)
	Load(ents []*pb.Entry) error
	// HandedOut and Stored: a Ready had entries, and the host has stored them.
	HandedOut()
	Stored()
	// Offered: a Ready had entries to apply up to this index, and no more, although
	// Releasable let more pass.
	Offered(index uint64)

	// News of roles and members.

	// Turned: this node has another role, term or leader.
	Turned(role extend.Role, term, lead uint64)
	// Switched: another configuration is in force; before are the members before.
	Switched(before tracker.ProgressMap)
	// VotersChanged: other voters count, as the log has other unapplied changes.
	VotersChanged()
	// Cuts: the winner of an election is about to cut its log, or not to (0), and leads.
	Cuts(index uint64)

	// News of messages.

	// Arrives: a message of another node is here, of any term. Handled: Raft has taken
	// it. Leaves: a message is complete and about to leave; an extension may fill its
	// fields that Raft leaves empty.
	Arrives(m *pb.Message)
	Handled(m *pb.Message)
	Leaves(m *pb.Message)
	Unreachable(id uint64)

	// Work.

	// Check refuses a message of an extension that no correct node sends, Step takes
	// one. Claims reports whether it is the question of a node that has won an election.
	Check(m *pb.Message) error
	Step(m *pb.Message) error
	Claims(m *pb.Message) bool
	Tick()
	Poll()
	// TakeOver begins a leader's term, and reports whether that takes other entries
	// than Raft's empty one.
	TakeOver() bool
	// Asked returns the effects that were asked for since the last call.
	Asked() []extend.Effect
}
