// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"encoding/binary"
)

// Messages, notes and the spans of reads begin with their version. A node that does not know it
// refuses the message, which counts as lost.
const (
	messageVersion = 2
	noteVersion    = 1
	spansVersion   = 1
)

// Parts of an encoded message; a set bit means the part follows, in this order.
const (
	partRequest = 1 << iota
	partAnswer
	partRevoke
	partConfirm
	partReport
	partNews
	partUsage
	partLists
	allParts = 1<<iota - 1
)

// AppendMessage appends the encoding of m: version, parts, term, the bound of the clock if
// there is a request or an answer, and the parts that m has. Numbers are unsigned varints, a nonce's boot is eight bytes, little
// endian, and texts and lists come behind their length.
func AppendMessage(dst []byte, m *Message) []byte {
	parts := byte(0)
	has := func(part byte, yes bool) bool {
		if yes {
			parts |= part
		}
		return yes
	}
	dst = append(dst, messageVersion, 0)
	at := len(dst) - 1
	dst = binary.AppendUvarint(dst, uint64(m.Term))
	if m.measures() {
		dst = binary.AppendUvarint(dst, uint64(m.Clock.DriftPPM))
		dst = binary.AppendUvarint(dst, uint64(m.Clock.Resolution))
	}
	if has(partRequest, !m.Request.isNone()) {
		dst = appendNonce(dst, m.Request)
	}
	if has(partAnswer, !m.Answer.Nonce.isNone()) {
		dst = appendNonce(dst, m.Answer.Nonce)
		dst = binary.AppendUvarint(dst, uint64(m.Answer.For))
		dst = binary.AppendUvarint(dst, uint64(m.Answer.Seq))
	}
	if has(partRevoke, !m.Revoke.isNone()) {
		dst = appendNonce(dst, m.Revoke)
	}
	if has(partConfirm, !m.Confirm.isNone()) {
		dst = appendNonce(dst, m.Confirm)
	}
	if has(partReport, m.Report != Report{}) {
		dst = binary.AppendUvarint(dst, uint64(m.Report.Known))
		dst = binary.AppendUvarint(dst, uint64(m.Report.Adopted))
	}
	if has(partNews, m.News != News{}) {
		dst = binary.AppendUvarint(dst, uint64(m.News.Newest))
		dst = binary.AppendUvarint(dst, uint64(m.News.Least))
	}
	if has(partUsage, len(m.Usage) > 0) {
		dst = binary.AppendUvarint(dst, uint64(len(m.Usage)))
		for _, u := range m.Usage {
			dst = appendSpan(dst, u.Span)
			dst = binary.AppendUvarint(dst, uint64(u.Reads))
			dst = binary.AppendUvarint(dst, uint64(u.Writes))
		}
	}
	if has(partLists, len(m.Lists) > 0) {
		dst = binary.AppendUvarint(dst, uint64(len(m.Lists)))
		for i := range m.Lists {
			dst = appendRoster(dst, &m.Lists[i])
		}
	}
	dst[at] = parts
	return dst
}

// AppendNote appends the encoding of x: version, term, index and roster.
func AppendNote(dst []byte, x Note) []byte {
	dst = append(dst, noteVersion)
	dst = binary.AppendUvarint(dst, uint64(x.Term))
	dst = binary.AppendUvarint(dst, uint64(x.Index))
	return binary.AppendUvarint(dst, uint64(x.Newest))
}

// AppendSpans appends the encoding of the spans of a read: version, and the spans
// behind their number.
func AppendSpans(dst []byte, spans []Span) []byte {
	dst = binary.AppendUvarint(append(dst, spansVersion), uint64(len(spans)))
	for _, s := range spans {
		dst = appendSpan(dst, s)
	}
	return dst
}

func appendNonce(dst []byte, x Nonce) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(x.Boot))
	return binary.AppendUvarint(dst, x.Counter)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendSpan(dst []byte, s Span) []byte { return appendText(appendText(dst, s.Start), s.End) }

func appendNodes(dst []byte, ids []NodeID) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ids)))
	for _, id := range ids {
		dst = binary.AppendUvarint(dst, uint64(id))
	}
	return dst
}

// A roster's flags: bit 0 is Retired, and bits 1 and 2 are Tuner. A version that knows no
// tuner that can be switched takes rosters without an operator's word about the tuner only.
const (
	tunerShift = 1
	allFlags   = 1 | byte(TunerOn)<<tunerShift
)

// appendRoster appends a roster: its id, leader and flags, the voters, the spans
// with their responders, and the wishes.
func appendRoster(dst []byte, r *Roster) []byte {
	dst = binary.AppendUvarint(dst, uint64(r.ID.Term))
	dst = binary.AppendUvarint(dst, uint64(r.ID.Seq))
	dst = binary.AppendUvarint(dst, uint64(r.Leader))
	dst = append(dst, bit(r.Retired)|byte(r.Tuner)<<tunerShift)
	dst = appendNodes(appendNodes(dst, r.Voters.Incoming), r.Voters.Outgoing)
	dst = binary.AppendUvarint(dst, uint64(len(r.Spans)))
	for _, a := range r.Spans {
		dst = appendSpan(dst, a.Span)
		dst = binary.AppendUvarint(dst, uint64(len(a.Responders)))
		for _, x := range a.Responders {
			dst = binary.AppendUvarint(dst, uint64(x.Node))
			dst = binary.AppendUvarint(dst, uint64(x.Barrier))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Wanted)))
	for _, w := range r.Wanted {
		dst = appendNodes(append(appendSpan(dst, w.Span), bit(w.Tuned)), w.Nodes)
	}
	return dst
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
