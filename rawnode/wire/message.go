// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Message is one message between the replicas of a group.
type Message struct {
	Group uint64 // the Raft group, any number
	From  uint64 // node id of the sender, not 0
	To    uint64 // node id of the receiver, not 0
	Body  Body   // never nil
	// Background makes m travel in ClassBackground, whatever its body is. It is
	// not encoded: the connection says it.
	Background bool
}

// Kind returns the kind of the body.
func (m Message) Kind() Kind { return m.Body.kind() }

// Class returns which queue and connection m belongs to.
func (m Message) Class() Class {
	if m.Background {
		return ClassBackground
	}
	return m.Body.class()
}

// Size returns an estimate of m's encoded size in bytes, for budgets.
func (m Message) Size() int { return m.Body.size() + messageOverhead }

// messageOverhead is the most that Message adds to its body: kind, three
// addresses and a length.
const messageOverhead = 1 + 4*10

// Kind says what a message's body is. The numbers are part of the format.
type Kind uint8

// The kinds that this version knows.
const (
	KindRaft        Kind = 1 + iota // Raft
	KindProposal                    // Proposal
	KindVerdict                     // Verdict
	KindTransfer                    // Transfer
	KindChunk                       // Chunk
	KindChunkStatus                 // ChunkStatus
	KindFirst                       // First
	KindLogEnd                      // LogEnd
	endOfKinds
)

var kindNames = [endOfKinds]string{"", "raft", "proposal", "verdict", "transfer", "chunk", "chunk-status", "first-members", "log-end"}

// String returns the kind's name.
func (k Kind) String() string {
	if k > 0 && k < endOfKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Kinds is a set of kinds, as announced in a hello: bit k stands for Kind k.
type Kinds uint64

// AllKinds are those that this version knows.
const AllKinds Kinds = 1<<endOfKinds - 2

// Has reports whether k is in the set.
func (s Kinds) Has(k Kind) bool { return k < 64 && s>>k&1 == 1 }

// Class says what a message competes with. Each has its own queue and
// connection.
type Class uint8

// The classes.
const (
	// ClassControl is small and urgent: heartbeats, votes, acknowledgements,
	// verdicts.
	ClassControl Class = iota
	// ClassAppend carries log entries and proposals.
	ClassAppend
	// ClassBulk carries snapshots.
	ClassBulk
	// ClassBackground carries what nobody waits for: units that followers push to
	// each other, and appends for a replica that only has to catch up some time.
	ClassBackground
	// NumClasses is how many there are.
	NumClasses
)

var classNames = [NumClasses]string{"control", "append", "bulk", "background"}

// String returns the class's name.
func (c Class) String() string {
	if c < NumClasses {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// MarshalText returns the class's name, so that logs show it.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Body is one of Raft, Proposal, Verdict, Transfer, Chunk, ChunkStatus, First and
// LogEnd.
type Body interface {
	kind() Kind
	class() Class
	size() int
	encode(e *encoder)
}

// Raft carries a message of the Raft core. Its addresses are those of the
// Message around it.
type Raft struct {
	*pb.Message
	// First is a digest of the first members of the sending node's group, 0 if that
	// node does not know them. It is encoded as a field of the message that earlier
	// versions leave alone.
	First uint32
	// OwnForm says that coded entries are in the sending node's form, behind a
	// clear prefix of ClearPrefix bytes (see raft.Coding.LateSeal). As the
	// message is encoded they become what the receiver is to have, which takes
	// Saves bytes less. None of these three is encoded.
	OwnForm            bool
	ClearPrefix, Saves int
}

// CommandID names a batch of commands: the node where they entered, the start
// of that node's process, and a number counted from 1 in each boot.
type CommandID struct {
	Origin   uint64
	Boot     uint64
	Sequence uint64
}

// String returns the three numbers.
func (id CommandID) String() string { return fmt.Sprintf("%d/%d/%d", id.Origin, id.Boot, id.Sequence) }

// Proposal is an entry on its way to the leader. The leader appends it only in
// the term that is named: so it is in the log in that term, or nowhere.
type Proposal struct {
	ID CommandID
	// Number counts the sendings of an origin's boot. A leader looks at each
	// sending once, and at none behind a later one: so what it refuses stays
	// refused, even if a network delivers twice.
	Number uint64
	Term   uint64 // the term in which To is believed to lead
	// ConfChange tells that Data is an encoded ConfChangeV2, and not an entry
	// in its envelope.
	ConfChange bool
	// Force tells that a ConfChange is to be made even if the leader finds that
	// the group may stop for it.
	Force bool
	Data  []byte
}

// Outcome says what a leader did with a proposal. The numbers are part of the
// format.
type Outcome uint8

// The outcomes.
const (
	Accepted  Outcome = 1 + iota // it is in the leader's log, at Index and Term
	NotLeader                    // To does not lead in that term; Leader may
	Busy                         // the leader takes nothing now: try again later
	Malformed                    // the leader cannot read it, or it fits no configuration
	NoMember                     // a change of a node that is no member
	Unsafe                       // a change after which the group may not go on
	endOfOutcomes
)

var outcomeNames = [endOfOutcomes]string{"", "accepted", "not leader", "busy", "malformed", "no member", "unsafe"}

// String returns the outcome's name.
func (o Outcome) String() string {
	if o > 0 && o < endOfOutcomes {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Verdict answers a Proposal. Unless Outcome is Accepted, that sending of it
// is not in the log and never will be.
type Verdict struct {
	ID      CommandID
	Number  uint64 // of the sending
	Outcome Outcome
	Index   uint64 // of the entry, if accepted; if busy, a later boot of the origin's, or 0
	Term    uint64 // the leader's, or of the one that refuses
	Leader  uint64 // whom the refusing node believes to lead, or 0
	Reason  string // in words, if it is about the proposal; at most MaxReasonLen bytes
}

// Transfer asks the leader to hand leadership to Transferee.
type Transfer struct {
	Term       uint64 // the term in which To is believed to lead
	Transferee uint64
}

// Chunk is a piece of a snapshot's body. The first has number 0 and carries the
// Raft message that the snapshot belongs to; the body follows, in order.
type Chunk struct {
	Stream uint64 // chosen by the sender, unlike any it chose before
	Number uint64 // counts the chunks of a stream, from 0
	// Header is the MsgSnap, in the first chunk only. Its snapshot carries the
	// host's own state as Data, and no body.
	Header *pb.Message
	Data   []byte
	Last   bool // the body ends with this chunk
	// Broken, if not empty, says why the sender gives the stream up.
	Broken string
}

// ChunkStatus says how a stream of chunks ended at the receiver.
type ChunkStatus struct {
	Stream uint64
	OK     bool
	Reason string // why not, if not OK; at most MaxReasonLen bytes
}

// First says who the first members of a group were. Two nodes that differ in it do
// not belong to one group, whatever its number is.
type First struct {
	Members []uint64 // ascending; 1 to MaxFirst of them, without 0
}

// LogEnd asks a member where its log ends, for a quorum read, or answers. An answer has
// the boot and the number of its question.
type LogEnd struct {
	Boot   uint64 // of the node that asks
	Number uint64 // of the question, in that boot
	Answer bool
	Index  uint64 // of the last entry, in an answer
	First  uint32 // as in Raft
}

// MaxFirst is how many first members a First can have.
const MaxFirst = 1000

func (Raft) kind() Kind        { return KindRaft }
func (Proposal) kind() Kind    { return KindProposal }
func (Verdict) kind() Kind     { return KindVerdict }
func (Transfer) kind() Kind    { return KindTransfer }
func (Chunk) kind() Kind       { return KindChunk }
func (ChunkStatus) kind() Kind { return KindChunkStatus }
func (First) kind() Kind       { return KindFirst }
func (LogEnd) kind() Kind      { return KindLogEnd }

func (b Raft) class() Class {
	switch b.GetType() {
	case pb.MsgApp:
		return ClassAppend
	case pb.MsgSnap:
		return ClassBulk
	case msgUnits:
		return b.unitsClass()
	}
	return ClassControl
}
func (Proposal) class() Class    { return ClassAppend }
func (Verdict) class() Class     { return ClassControl }
func (Transfer) class() Class    { return ClassControl }
func (Chunk) class() Class       { return ClassBulk }
func (ChunkStatus) class() Class { return ClassControl }
func (First) class() Class       { return ClassControl }
func (LogEnd) class() Class      { return ClassControl }
