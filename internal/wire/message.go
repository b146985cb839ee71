// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Message is one message between the replicas of a group.
type Message struct {
	Group uint64 // the Raft group, any number
	From  uint64 // node id of the sender, not 0
	To    uint64 // node id of the receiver, not 0
	Body  Body   // never nil
	// Background makes m travel in ClassBackground, with any body. The field is not
	// encoded, because the connection implies the class.
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

// messageOverhead bounds the bytes added by Message to its body: kind, three addresses
// and a length.
const messageOverhead = 1 + 4*10

// Kind is the kind of a message's body. The numbers are part of the format.
type Kind uint8

// The known kinds.
const (
	KindRaft        Kind = 1 + iota // Raft
	KindProposal                    // Proposal
	KindVerdict                     // Verdict
	kindTransfer                    // Transfer
	kindChunk                       // Chunk
	kindChunkStatus                 // ChunkStatus
	KindFirst                       // First
	KindLogEnd                      // LogEnd
	kindNote                        // Note
	KindSettings                    // Settings
	KindOffer                       // Offer
	KindFetch                       // Fetch
	kindHealth                      // Health
	KindAttach                      // Attach
	kindReport                      // Report
	kindQuery                       // Query
	kindReply                       // Reply
	KindNamed                       // Named
	kindLack                        // Lack
	kindFill                        // Fill
	KindWant                        // Want
	KindRun                         // Named, with a Run
	endOfKinds
)

var kindNames = [endOfKinds]string{"", "raft", "proposal", "verdict", "transfer", "chunk", "chunk-status", "first-members", "log-end", "note", "settings", "snapshot-offer", "snapshot-fetch", "health", "gateway-attach", "gateway-report", "gateway-query", "gateway-reply", "named", "lack", "fill", "want", "run"}

// String returns the kind's name.
func (k Kind) String() string {
	if k > 0 && k < endOfKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Kinds is a set of kinds, as announced in a hello: bit k stands for Kind k.
type Kinds uint64

// AllKinds are the known kinds.
const AllKinds Kinds = 1<<endOfKinds - 2

// KindsOf returns the set of the kinds with these names, or an error that names an unknown
// one.
func KindsOf(names []string) (Kinds, error) {
	var s Kinds
	for _, name := range names {
		k := slices.Index(kindNames[:], name)
		if k < 1 {
			return 0, fmt.Errorf("kind %q is unknown, want one of %q", name, kindNames[1:])
		}
		s |= 1 << k
	}
	return s, nil
}

// Has reports whether k is in the set.
func (s Kinds) Has(k Kind) bool { return k < 64 && s>>k&1 == 1 }

// Class is a set of messages that compete with each other. Each class has its own queue
// and connection.
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
	// ClassBackground carries messages without urgency: units pushed by followers to
	// each other, and appends for a replica that is far behind.
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

// MarshalText returns the class's name, for logs.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Body is one of Raft, Proposal, Verdict, Transfer, Chunk, ChunkStatus, First, LogEnd,
// Note, Settings, Offer, Fetch, Health, Attach, Report, Query, Reply, Named, Lack, Fill and Want.
type Body interface {
	kind() Kind
	class() Class
	size() int
	encode(e *encoder)
}

// Raft carries a message of the Raft core. Its addresses are in the Message around the
// body.
type Raft struct {
	*pb.Message
	Digests
	// OwnForm says that coded entries are in the sending node's form, behind a clear
	// prefix of ClearPrefix bytes (see raft.Coding.LateSeal). Encoding the message
	// brings them into the receiver's form, shorter by Saves bytes. The three fields
	// are not encoded.
	OwnForm            bool
	ClearPrefix, Saves int
}

// CommandID names a batch of commands: the node of their entry, the start of the node's
// process, and a number counted from 1 in each boot.
type CommandID struct {
	Origin   uint64
	Boot     uint64
	Sequence uint64
}

// String returns the three numbers.
func (id CommandID) String() string { return fmt.Sprintf("%d/%d/%d", id.Origin, id.Boot, id.Sequence) }

// Proposal is an entry on its way to the leader. The leader appends the entry only in
// the named term: so the entry is in the log in that term, or nowhere.
type Proposal struct {
	ID CommandID
	// Number counts the sendings of an origin's boot. A leader handles each sending
	// once, and none behind a later one: so a refused sending stays refused, even if a
	// network delivers twice.
	Number uint64
	Term   uint64 // the term in which To is believed to lead
	// ConfChange says that Data is an encoded ConfChangeV2, not an entry in its
	// envelope.
	ConfChange bool
	// Force says that a ConfChange is to be made even if the leader expects the group
	// to stop.
	Force bool
	Data  []byte
}

// Outcome is a leader's decision on a proposal. The numbers are part of the format.
type Outcome uint8

// The outcomes.
const (
	Accepted  Outcome = 1 + iota // in the leader's log, at Index and Term
	NotLeader                    // To does not lead in the term; Leader may
	Busy                         // the leader takes nothing now: try again later
	Malformed                    // unreadable to the leader, or fits no configuration
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

// Verdict answers a Proposal. Unless Outcome is Accepted, this sending of the proposal
// is not in the log and never will be.
type Verdict struct {
	ID      CommandID
	Number  uint64 // of the sending
	Outcome Outcome
	Index   uint64 // of the entry, if accepted; if busy, a later boot of the origin's, or 0
	Term    uint64 // the leader's, or the refusing node's
	Leader  uint64 // the leader known to the refusing node, or 0
	Reason  string // in words, about the proposal; at most maxReasonLen bytes
}

// Transfer asks the leader to hand leadership to Transferee.
type Transfer struct {
	Term       uint64 // the term in which To is believed to lead
	Transferee uint64
}

// Chunk is a piece of a snapshot's body. The first has number 0 and carries the
// snapshot's Raft message; the body follows, in order.
type Chunk struct {
	Stream uint64 // chosen by the sender, and never before
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
	Reason string // why not, if not OK; at most maxReasonLen bytes
}

// First lists the first members of a group. Two nodes with different lists do not
// belong to one group, whatever the group's number is.
type First struct {
	Members []uint64 // ascending; 1 to maxFirst members, without 0
}

// LogEnd asks a member where its log ends, for a quorum read, or answers. An answer has
// the boot and the number of its question.
type LogEnd struct {
	Boot   uint64 // of the asking node
	Number uint64 // of the question, in the boot
	Answer bool
	Index  uint64 // of the last entry, in an answer
	First  uint32 // as in Raft
}

// Note carries bytes from the program on top of one node to the program on top of another.
// No group of Raft takes part: Message.Group is a number that the two programs agree on.
type Note struct{ Data []byte }

// Settings are what the sending node's replica is set to, of that which members compare.
type Settings struct {
	Ask bool      // the receiver is to send its own
	All []Setting // at most MaxSettings
}

// Setting is one setting: its name, and its value in words. Must says that it must be equal
// at all replicas. Each text has at most MaxSettingBytes.
type Setting struct {
	Must        bool
	Name, Value string
}

// Bounds of Settings.
const (
	MaxSettings     = 64
	MaxSettingBytes = 256
)

// Offer tells a follower that it needs a snapshot, and where to fetch one; see package
// fetch. The answer is a ChunkStatus, when the follower has restored a snapshot.
type Offer struct {
	Stream uint64 // chosen by the leader, and never before
	Term   uint64 // in which the sender leads
	Index  uint64 // the least index of a snapshot that is of use
	// Sources are members other than the leader that may have such a snapshot:
	// ascending; at most maxFirst members, without 0.
	Sources []uint64
}

// FetchStep is what a Fetch wants. The numbers are part of the format.
type FetchStep uint8

// The steps of fetching a snapshot.
const (
	// FetchAsk asks whether a member would send a snapshot; the answer is a ChunkStatus.
	FetchAsk FetchStep = 1 + iota
	// FetchTake takes chunks: all below Number have come, and the chunks below Until may be sent.
	// With Number 0 it begins a stream.
	FetchTake
	// FetchAgain is FetchTake after a silence: the chunks from Number on are to be sent again.
	FetchAgain
	// FetchLives tells a leader that its offer with this Stream is being followed, or a source that
	// its stream is, and how many chunks have come.
	FetchLives
	endOfFetchSteps
)

// Fetch is a follower's part in fetching a snapshot.
type Fetch struct {
	Step          FetchStep
	Stream        uint64 // chosen by the follower, and never before; or that of an offer, in FetchLives
	Term          uint64 // of the offer
	Index         uint64 // of the offer
	Number, Until uint64
	// Urgency, in FetchAsk alone, takes the place of Until, which a question has no use for: members of
	// earlier versions send 0 there, and ignore it.
	Urgency Urgency
}

// Urgency says how much a group needs that a member catches up: the lower, the more. The numbers are part of
// the format.
type Urgency uint8

// The urgencies. A sender of an earlier version says 0.
const (
	// UrgencyEdge is of a voter without which one more failure stops the group.
	UrgencyEdge Urgency = 1 + iota
	// UrgencyVoter is of a voter of a group that survives one more failure.
	UrgencyVoter
	// UrgencyLearner is of a member without a vote.
	UrgencyLearner
	endOfUrgencies
)

// Health tells another node how long things take at the sending node. Any group that both nodes have
// may carry it. Fields behind the known fields are ignored, so that later versions can add fields.
type Health struct {
	// Sync, Turn, Wait and Send are as in placement.Figure, in whole microseconds.
	Sync, Turn, Wait, Send time.Duration
	Stalled                bool
	// Weight is the node's weight as a leader. GroupWeight is 0, or one more than the weight of the node
	// in the message's group, where that is another.
	Weight, GroupWeight uint64
	// Stamp, Answers and Held, in whole microseconds, and Links are as in placement.Report. Senders of earlier versions
	// have none of them.
	Stamp, Answers, Held time.Duration
	Links                []HealthLink
}

// HealthLink is the round trip between the sender of a Health and another node, in whole microseconds.
type HealthLink struct {
	Node  uint64
	Round time.Duration
}

// Named is a MsgApp without the data of some entries: data that the receiver has sent to the leader
// itself, and may still have, or that another member passes on. See package names.
type Named struct {
	Raft
	// Number counts the Named messages of the sending process, from 1.
	Number uint64
	// Names are of the entries without data, in order, at least one; or none, and Run stands for all entries.
	Names []Name
	Run   Run
}

// Run stands for all entries of a MsgApp, which has none itself: entries with data alone, of the message's term, behind
// its index.
type Run struct {
	Count  uint64 // of entries, at most MaxRun; 0: there is no run
	Relay  uint64 // the member that has the data
	Length uint64 // of all data in bytes, 1 to MaxFrame
	Sum    uint64 // checksum of all data: see names.Sum and package names
}

// MaxRun bounds the entries of a run.
const MaxRun = 1 << 12

// Name stands for the data of an entry.
type Name struct {
	Entry          uint64 // place in the message, from 0
	Boot, Sequence uint64 // of the receiver's batch: where to look, and no reason to believe; 0: Relay is the place
	Length         uint64 // of the data in bytes, 1 to MaxFrame
	Sum            uint64 // checksum of the data: see names.Sum
	// Relay is the member that has the data, if not 0; Boot and Sequence are 0 then.
	Relay uint64
}

// Lack tells a leader that its Named message cannot be joined; Term and Number are of that message.
type Lack struct{ Term, Number uint64 }

// Want asks a relay for the data of the entries that it is named for in a Named message, which Term and Number
// are of. Entries are these, by ascending index, 1 to MaxEntries.
type Want struct {
	Term, Number uint64
	Entries      []EntryAt
}

// EntryAt is where an entry stands, which says which entry it is.
type EntryAt struct{ Index, Term uint64 }

// Fill answers a Lack with the data of all named entries, in order, and a Want with that of the entries wanted; with
// none, if the leader or the relay does not have the data.
type Fill struct {
	Term, Number uint64
	Data         [][]byte
}

// RaftBody returns the message of the Raft core in m, with or without names, or false.
func (m Message) RaftBody() (Raft, bool) {
	switch b := m.Body.(type) {
	case Raft:
		return b, true
	case Named:
		return b.Raft, true
	}
	return Raft{}, false
}

// maxHealthLinks is how many links a Health can have.
const maxHealthLinks = 32

// maxFirst is how many first members a First can have, and how many sources an Offer.
const maxFirst = 1000

func (Raft) kind() Kind        { return KindRaft }
func (Proposal) kind() Kind    { return KindProposal }
func (Verdict) kind() Kind     { return KindVerdict }
func (Transfer) kind() Kind    { return kindTransfer }
func (Chunk) kind() Kind       { return kindChunk }
func (ChunkStatus) kind() Kind { return kindChunkStatus }
func (First) kind() Kind       { return KindFirst }
func (LogEnd) kind() Kind      { return KindLogEnd }
func (Note) kind() Kind        { return kindNote }
func (Settings) kind() Kind    { return KindSettings }
func (Offer) kind() Kind       { return KindOffer }
func (Fetch) kind() Kind       { return KindFetch }
func (Health) kind() Kind      { return kindHealth }
func (Attach) kind() Kind      { return KindAttach }
func (Report) kind() Kind      { return kindReport }
func (Query) kind() Kind       { return kindQuery }
func (Reply) kind() Kind       { return kindReply }
func (Lack) kind() Kind        { return kindLack }
func (Fill) kind() Kind        { return kindFill }
func (Want) kind() Kind        { return KindWant }

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
func (Note) class() Class        { return ClassBackground }
func (Settings) class() Class    { return ClassControl }
func (Offer) class() Class       { return ClassControl }
func (Fetch) class() Class       { return ClassControl }
func (Health) class() Class      { return ClassControl }
func (Attach) class() Class      { return ClassControl }
func (Report) class() Class      { return ClassAppend }
func (Query) class() Class       { return ClassAppend }
func (Reply) class() Class       { return ClassAppend }
func (Lack) class() Class        { return ClassControl }
func (Fill) class() Class        { return ClassAppend }
func (Want) class() Class        { return ClassControl }
