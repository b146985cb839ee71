// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"time"
)

// Bounds of a message.
const (
	MaxRosters = 16  // rosters in one announcement
	MaxUsage   = 256 // spans in one report to the tuner
)

// Message is what a node tells another about leases. Its parts ride together; a part
// with its zero value is absent. The Raft message around it has the sender and the
// receiver.
type Message struct {
	Term Term // the sender's; Revoke and Confirm hold in any term

	// Clock is how well the sender's clock keeps time: in every message of a Node with a
	// Request or an Answer. The zero value stands for the receiver's own bound.
	Clock   ClockBound
	Request Nonce  // "grant me a lease on my role"
	Answer  Answer // to a Request
	Revoke  Nonce  // "drop the leases that I granted to your requests up to this one"
	Confirm Nonce  // "I hold no lease that you granted to my requests up to this one"

	Report Report   // to the leader
	News   News     // from the leader
	Usage  []Usage  // to the leader: for its tuner
	Lists  []Roster // from the leader: its rosters in use up to the newest, or as many of the newest as fit
}

// ClockBound is the bound of a node's clock, by the settings of that node: see Config.DriftPPM
// and Config.Resolution. Two nodes go by the worse of their bounds.
type ClockBound struct {
	DriftPPM   int
	Resolution time.Duration
}

// measures reports whether a message has a time that two clocks measure: a request, or the answer to one.
func (m *Message) measures() bool { return !m.Request.isNone() || !m.Answer.Nonce.isNone() }

// Answer grants a lease, or only says that a Request has arrived.
type Answer struct {
	Nonce Nonce
	For   time.Duration // from the instant when the Request was sent; 0 grants nothing
	Seq   Seq           // the roster of Message.Term on which the lease is granted
}

// Report says which rosters of Message.Term a node knows and has adopted.
type Report struct {
	Known   Seq // the newest that it has whole
	Adopted Seq
}

// News says which rosters of Message.Term are in use.
type News struct {
	Newest Seq
	Least  Seq // older rosters make no node stable any more
}

// isEmpty reports whether a message says nothing.
func (m *Message) isEmpty() bool {
	return m.Request.isNone() && m.Answer.Nonce.isNone() && m.Revoke.isNone() && m.Confirm.isNone() &&
		m.Report == Report{} && m.News == News{} && len(m.Usage) == 0 && len(m.Lists) == 0
}

// validate returns an error about the first impossible part of a message.
func (m *Message) validate() error {
	switch {
	case m.Term == 0:
		return malformed("a message of term 0")
	case m.Clock != ClockBound{} && !m.measures():
		return malformed("a bound of the clock, %+v, without a request or an answer", m.Clock)
	case m.Clock.DriftPPM < 0 || m.Clock.DriftPPM > maxDriftPPM || m.Clock.Resolution < 0 || m.Clock.Resolution > longest:
		return malformed("a clock with drift %d ppm and resolution %v; at most %d and %v", m.Clock.DriftPPM, m.Clock.Resolution, maxDriftPPM, longest)
	case m.Answer.Nonce.isNone() && m.Answer != Answer{}:
		return malformed("an answer to no request")
	case m.Answer.For < 0:
		return malformed("a grant for %v", m.Answer.For)
	case (m.Answer.For > 0) != (m.Answer.Seq > 0):
		return malformed("a grant for %v on roster %d; both or neither", m.Answer.For, m.Answer.Seq)
	case m.Report.Adopted > m.Report.Known:
		return malformed("roster %d is adopted, and the newest known is %d", m.Report.Adopted, m.Report.Known)
	case m.News.Least > m.News.Newest:
		return malformed("roster %d is in use, and the newest is %d", m.News.Least, m.News.Newest)
	case len(m.Lists) > MaxRosters:
		return malformed("%d rosters, at most %d", len(m.Lists), MaxRosters)
	case len(m.Lists) > 0 && m.Lists[len(m.Lists)-1].ID.Seq != m.News.Newest:
		return malformed("the last of %d rosters is %v, and the newest is %d", len(m.Lists), m.Lists[len(m.Lists)-1].ID, m.News.Newest)
	case len(m.Usage) > MaxUsage:
		return malformed("usage of %d spans, at most %d", len(m.Usage), MaxUsage)
	}
	for i := range m.Lists {
		r := &m.Lists[i]
		if err := r.validate(); err != nil {
			return err
		}
		if first := m.Lists[0].ID; r.ID.Term != m.Term || r.ID.Seq != first.Seq+Seq(i) {
			return malformed("roster %v at place %d behind %v, in a message of term %d", r.ID, i, first, m.Term)
		}
	}
	for _, u := range m.Usage {
		if !u.Span.valid() {
			return malformed("usage of span %v, which has no key, or a bound of more than %d bytes", u.Span, MaxKey)
		}
	}
	return nil
}

// Outgoing is a message and its receiver.
type Outgoing struct {
	To      NodeID
	Message Message
}

// Note says that a node holds its leader's log of Term up to Index, durably. A note
// vouches like an acknowledgement, and leaves when an acknowledgement may leave.
type Note struct {
	Term  Term
	Index Index
	// Newest is the leader's newest roster if the leader sends the note; 0 otherwise.
	Newest Seq
}

func (n Note) validate() error {
	if n.Term == 0 || n.Index == 0 {
		return malformed("a note of term %d up to index %d; both begin with 1", n.Term, n.Index)
	}
	return nil
}

func (n Note) String() string {
	return fmt.Sprintf("term %d, index %d, roster %d", n.Term, n.Index, n.Newest)
}
