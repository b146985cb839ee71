// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"
)

// GatewayKinds are the kinds that a gateway sends; a gateway's peers send it HomeKinds.
const (
	GatewayKinds Kinds = 1<<KindProposal | 1<<KindAttach | 1<<kindQuery | 1<<kindNote
	HomeKinds    Kinds = 1<<KindVerdict | 1<<kindReport | 1<<kindReply | 1<<kindNote
)

// StreamID names the reports of a home to a gateway: the start of the home, and a number
// counted in it. The zero value is no stream.
type StreamID struct{ Boot, Number uint64 }

// Attach asks a replica to be a gateway's home. Sent again, it says that the gateway lives, and
// which reports have come.
type Attach struct {
	Life     uint64   // the start of the gateway's process
	Number   uint64   // of the attachment, counted in the life
	Stream   StreamID // of the home, or zero: no report has come
	Received uint64   // counted reports that have come, in order
	Leaves   bool     // the gateway needs this home no more
}

// Report is what a home tells a gateway. A counted report is sent again until it is acknowledged.
// Any other is worth something only to a gateway that has got Count counted reports.
type Report struct {
	Life, Number uint64   // of the attachment
	Stream       StreamID // if Closed: zero, or of a stream that goes on until the gateway leaves
	Counted      bool
	Count        uint64 // of the counted reports up to here, this one included
	// Leader is the leader known to the home, or 0, in LeaderTerm.
	Leader, LeaderTerm uint64
	// Term and Index are of an entry that the home has applied: all entries of the gateway up to
	// there are in the Row, or in the counted reports up to this one.
	Term, Index uint64
	Row         *OriginRow // in the first counted report, and only there
	// Voters and Learners are the members, in a counted report if they have changed; ascending, at most maxFirst each.
	Voters, Learners []uint64
	Entries          []EntryResults
	// Closed, if not empty, says why this node is not the gateway's home, or not any more.
	Closed string
}

// OriginRow says which batches of the gateway were applied: of the boot, those in Above, and of those
// below the floor perhaps some. Batches of earlier boots are not applied any more.
type OriginRow struct {
	Boot, Floor uint64
	Above       []uint64 // ascending, at least Floor; at most MaxAbove
}

// EntryResults are the results of one batch of the gateway.
type EntryResults struct {
	Boot, Sequence, Index uint64
	// Lost says that the home does not know the results, because it has the entry by a snapshot.
	Lost    bool
	Results []CommandResult
}

// CommandResult is the result of a command: its bytes, or the reason for which it has none.
type CommandResult struct {
	Data    []byte
	NoBytes string // at most maxReasonLen bytes
}

// Bounds of Reports.
const (
	MaxAbove         = 1 << 20 // sequences in a row
	MaxResults       = 1 << 18 // results in a report
	MaxReportEntries = 1 << 12 // entries in a report
)

// QueryPolicy names a policy of reads. The numbers are part of the format.
type QueryPolicy uint8

// The policies; package rawnode explains each.
const (
	QueryReadIndex QueryPolicy = 1 + iota
	QueryAtResponder
	QueryLeaderLease
	QueryQuorum
	QueryStale
	QueryLocal
	endOfQueryPolicies
)

// Query asks the state machine of a home, behind a read barrier. A query has no effect, and may be sent again, also
// to another home.
type Query struct {
	Life, Number uint64 // of the gateway's process; counted in the life
	Policy       QueryPolicy
	MaxAge       time.Duration // of QueryStale, in whole microseconds
	MaxEntries   uint64        // likewise
	Patience     time.Duration // for which the gateway waits, in whole microseconds
	Spans        []byte        // the keys that the query looks at, as package leases encodes them; none: every key
	Data         []byte
}

// ReplyCode says how a query ended. The numbers are part of the format.
type ReplyCode uint8

// The codes.
const (
	Answered   ReplyCode = 1 + iota // Data is the answer
	QueryFails                      // the state machine has answered with an error, in Reason
	NoQueries                       // the state machine takes none
	AskAgain                        // the query was not answered, for the Reason
	endOfReplyCodes
)

// Reply answers a Query.
type Reply struct {
	Life, Number uint64 // of the query
	Code         ReplyCode
	Reason       string // at most maxReasonLen bytes
	// Index, By, Lag and Age, in whole microseconds, are as in rawnode.ReadResult.
	Index uint64
	By    uint8
	Lag   uint64
	Age   time.Duration
	Data  []byte
}

func (e *encoder) streamID(s StreamID) {
	e.uvarint(s.Boot)
	e.uvarint(s.Number)
}

func (d *decoder) streamID() StreamID { return StreamID{Boot: d.uvarint(), Number: d.uvarint()} }

func (Attach) size() int { return 5*10 + 1 }

func (b Attach) encode(e *encoder) {
	e.uvarint(b.Life)
	e.uvarint(b.Number)
	e.streamID(b.Stream)
	e.uvarint(b.Received)
	e.bool(b.Leaves)
}

// Flag bits of Report.
const (
	reportCounted = 1 << iota
	reportRow
	reportFlagsEnd
)

func (b Report) size() int {
	n := 1 + 14*10 + 10*(len(b.Voters)+len(b.Learners)) + len(b.Closed)
	if b.Row != nil {
		n += 3*10 + 10*len(b.Row.Above)
	}
	for _, r := range b.Entries {
		n += r.Size()
	}
	return n
}

// Size bounds the bytes of the results in a report.
func (r EntryResults) Size() int {
	n := 5 * 10
	for _, c := range r.Results {
		n += 1 + 10 + len(c.Data) + len(c.NoBytes)
	}
	return n
}

func (b Report) encode(e *encoder) {
	flags := byte(0)
	if b.Counted {
		flags |= reportCounted
	}
	if b.Row != nil {
		flags |= reportRow
	}
	e.byte(flags)
	e.uvarint(b.Life)
	e.uvarint(b.Number)
	e.streamID(b.Stream)
	for _, v := range [...]uint64{b.Count, b.Leader, b.LeaderTerm, b.Term, b.Index} {
		e.uvarint(v)
	}
	e.text(b.Closed)
	e.ids(b.Voters)
	e.ids(b.Learners)
	if b.Row != nil {
		e.uvarint(b.Row.Boot)
		e.uvarint(b.Row.Floor)
		e.uvarint(uint64(len(b.Row.Above)))
		last := b.Row.Floor
		for _, s := range b.Row.Above {
			e.uvarint(s - last)
			last = s
		}
	}
	e.uvarint(uint64(len(b.Entries)))
	for _, r := range b.Entries {
		e.uvarint(r.Boot)
		e.uvarint(r.Sequence)
		e.uvarint(r.Index)
		e.bool(r.Lost)
		e.uvarint(uint64(len(r.Results)))
		for _, c := range r.Results {
			if e.bool(c.NoBytes != ""); c.NoBytes != "" {
				e.text(c.NoBytes)
			} else {
				e.bytes(c.Data)
			}
		}
	}
}

func decodeReport(d *decoder) Report {
	flags := d.byte()
	if flags >= reportFlagsEnd {
		d.fail("report flags %#x", flags)
	}
	b := Report{Counted: flags&reportCounted != 0, Life: d.uvarint(), Number: d.uvarint(), Stream: d.streamID()}
	for _, v := range [...]*uint64{&b.Count, &b.Leader, &b.LeaderTerm, &b.Term, &b.Index} {
		*v = d.uvarint()
	}
	b.Closed, b.Voters, b.Learners = d.text(), d.ids(), d.ids()
	if flags&reportRow != 0 {
		b.Row = d.originRow()
	}
	n := d.uvarint()
	if n > MaxReportEntries {
		d.fail("results of %d entries, want at most %d", n, MaxReportEntries)
	}
	room := uint64(MaxResults)
	for d.err == nil && uint64(len(b.Entries)) < n {
		b.Entries = append(b.Entries, d.entryResults(&room))
	}
	if d.err == nil && (b.Row != nil) != (b.Counted && b.Count == 1) {
		d.fail("report %d, counted %t, has a row: %t", b.Count, b.Counted, b.Row != nil)
	}
	if d.err == nil && len(b.Entries)+len(b.Voters)+len(b.Learners) > 0 && !b.Counted {
		d.fail("a report with news is not counted")
	}
	return b
}

func (d *decoder) originRow() *OriginRow {
	row := &OriginRow{Boot: d.uvarint(), Floor: d.uvarint()}
	n := d.uvarint()
	if n > MaxAbove || n > uint64(len(d.b)) {
		d.fail("%d sequences, want at most %d, in %d bytes", n, MaxAbove, len(d.b))
	}
	last := row.Floor
	for d.err == nil && uint64(len(row.Above)) < n {
		step := d.uvarint()
		if step > math.MaxUint64-last || step == 0 && len(row.Above) > 0 {
			d.fail("a sequence %d behind %d", step, last)
		}
		last += step
		row.Above = append(row.Above, last)
	}
	return row
}

// entryResults reads the results of a batch. room is how many results there may still be.
func (d *decoder) entryResults(room *uint64) EntryResults {
	r := EntryResults{Boot: d.uvarint(), Sequence: d.uvarint(), Index: d.uvarint(), Lost: d.bool()}
	n := d.uvarint()
	if n > *room || n > uint64(len(d.b)) {
		d.fail("%d results, want at most %d, in %d bytes", n, *room, len(d.b))
		return r
	}
	*room -= n
	for d.err == nil && uint64(len(r.Results)) < n {
		var c CommandResult
		if !d.bool() {
			c.Data = d.bytes()
		} else if c.NoBytes = d.text(); c.NoBytes == "" {
			d.fail("no bytes, and no reason")
		}
		r.Results = append(r.Results, c)
	}
	return r
}

func (b Query) size() int { return 1 + 7*10 + len(b.Spans) + len(b.Data) }

func (b Query) encode(e *encoder) {
	e.uvarint(b.Life)
	e.uvarint(b.Number)
	e.byte(byte(b.Policy))
	e.uvarint(uint64(b.MaxAge.Microseconds()))
	e.uvarint(b.MaxEntries)
	e.uvarint(uint64(b.Patience.Microseconds()))
	e.bytes(b.Spans)
	e.bytes(b.Data)
}

func decodeQuery(d *decoder) Query {
	b := Query{Life: d.uvarint(), Number: d.uvarint(), Policy: QueryPolicy(d.byte()), MaxAge: d.micros(math.MaxInt64), MaxEntries: d.uvarint(),
		Patience: d.micros(math.MaxInt64), Spans: d.bytes(), Data: d.bytes()}
	if b.Policy == 0 || b.Policy >= endOfQueryPolicies {
		d.fail("read policy %d", b.Policy)
	}
	return b
}

func (b Reply) size() int { return 2 + 7*10 + len(b.Reason) + len(b.Data) }

func (b Reply) encode(e *encoder) {
	e.uvarint(b.Life)
	e.uvarint(b.Number)
	e.byte(byte(b.Code))
	e.text(b.Reason)
	e.uvarint(b.Index)
	e.byte(b.By)
	e.uvarint(b.Lag)
	age := uint64(0) // not known
	if b.Age >= 0 {
		age = uint64(b.Age.Microseconds()) + 1
	}
	e.uvarint(age)
	e.bytes(b.Data)
}

func decodeReply(d *decoder) Reply {
	b := Reply{Life: d.uvarint(), Number: d.uvarint(), Code: ReplyCode(d.byte()), Reason: d.text(), Index: d.uvarint(), By: d.byte(), Lag: d.uvarint()}
	if b.Age = d.micros(math.MaxInt64) - time.Microsecond; b.Age < 0 {
		b.Age = -1
	}
	b.Data = d.bytes()
	if b.Code == 0 || b.Code >= endOfReplyCodes {
		d.fail("reply code %d", b.Code)
	}
	return b
}
