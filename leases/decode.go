// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"encoding/binary"
	"math"
	"time"
)

// ParseMessage is the inverse of AppendMessage. ParseMessage takes a message's
// only encoding, with nothing behind the message; anything else gives an error
// wrapping ErrMalformed. The message shares no memory with data.
func ParseMessage(data []byte) (Message, error) {
	p := parser{rest: data}
	p.version(messageVersion)
	parts := p.bits(allParts)
	m := Message{Term: Term(p.number())}
	if parts&(partRequest|partAnswer) != 0 {
		m.Clock = ClockBound{DriftPPM: int(p.number32()), Resolution: p.duration()}
	}
	if parts&partRequest != 0 {
		m.Request = p.nonce()
	}
	if parts&partAnswer != 0 {
		m.Answer = Answer{Nonce: p.nonce(), For: p.duration(), Seq: Seq(p.number())}
	}
	if parts&partRevoke != 0 {
		m.Revoke = p.nonce()
	}
	if parts&partConfirm != 0 {
		m.Confirm = p.nonce()
	}
	if parts&partReport != 0 {
		m.Report = Report{Known: Seq(p.number()), Adopted: Seq(p.number())}
		p.need(m.Report != Report{}, "an empty report")
	}
	if parts&partNews != 0 {
		m.News = News{Newest: Seq(p.number()), Least: Seq(p.number())}
		p.need(m.News != News{}, "empty news")
	}
	if parts&partUsage != 0 {
		m.Usage = make([]Usage, p.count(1, "spans with usage", MaxUsage))
		for i := range m.Usage {
			m.Usage[i] = Usage{Span: p.span(), Reads: p.number32(), Writes: p.number32()}
		}
	}
	if parts&partLists != 0 {
		m.Lists = make([]Roster, p.count(1, "rosters", MaxRosters))
		for i := range m.Lists {
			m.Lists[i] = p.roster()
		}
	}
	p.end()
	if p.err == nil {
		p.err = m.validate()
	}
	if p.err != nil {
		return Message{}, p.err
	}
	return m, nil
}

// ParseSpans is the inverse of AppendSpans. ParseSpans takes the spans' only
// encoding, at most MaxSpans spans, each with a key; anything else gives an error
// wrapping ErrMalformed.
func ParseSpans(data []byte) ([]Span, error) {
	p := parser{rest: data}
	p.version(spansVersion)
	spans := make([]Span, p.count(1, "spans of a read", MaxSpans))
	for i := range spans {
		spans[i] = p.span()
		p.need(spans[i].valid(), "a span without a key")
	}
	p.end()
	if p.err != nil {
		return nil, p.err
	}
	return spans, nil
}

// ParseNote is the inverse of AppendNote, and as strict as ParseMessage.
func ParseNote(data []byte) (Note, error) {
	p := parser{rest: data}
	p.version(noteVersion)
	x := Note{Term: Term(p.number()), Index: Index(p.number()), Newest: Seq(p.number())}
	p.end()
	if p.err == nil {
		p.err = x.validate()
	}
	if p.err != nil {
		return Note{}, p.err
	}
	return x, nil
}

// parser reads values off the front of rest. After its first error it returns
// zero values, and counts are 0, so that a caller need not look at err in between.
type parser struct {
	rest []byte
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = malformed(format, args...)
	}
	p.rest = nil
}

func (p *parser) need(ok bool, what string) {
	if !ok {
		p.fail("%s", what)
	}
}

// end fails if anything is left.
func (p *parser) end() {
	if len(p.rest) > 0 {
		p.fail("%d bytes behind the end", len(p.rest))
	}
}

func (p *parser) take(n int) []byte {
	if n > len(p.rest) {
		p.fail("%d bytes where %d should be", len(p.rest), n)
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) byte() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (p *parser) version(want byte) {
	if v := p.byte(); p.err == nil && v != want {
		p.fail("version %d, want %d", v, want)
	}
}

// bits reads a byte of which only known bits may be set.
func (p *parser) bits(known byte) byte {
	b := p.byte()
	if b&^known != 0 {
		p.fail("bits %#x, known are %#x", b, known)
		return 0
	}
	return b
}

// number reads an unsigned varint in its shortest form.
func (p *parser) number() uint64 {
	if p.err != nil {
		return 0
	}
	x, n := binary.Uvarint(p.rest)
	if n <= 0 || n > 1 && p.rest[n-1] == 0 {
		p.fail("a number that does not end, is too large or is not in its shortest form")
		return 0
	}
	p.rest = p.rest[n:]
	return x
}

func (p *parser) number32() uint32 {
	x := p.number()
	if x > math.MaxUint32 {
		p.fail("count %d, at most %d", x, uint32(math.MaxUint32))
		return 0
	}
	return uint32(x)
}

func (p *parser) duration() time.Duration {
	x := p.number()
	if x > math.MaxInt64 {
		p.fail("a duration of %d ns, at most %d", x, int64(math.MaxInt64))
		return 0
	}
	return time.Duration(x)
}

// count reads the length of a list. Each item takes a byte at least, so that a
// list cannot be longer than what is left.
func (p *parser) count(least int, what string, most int) int {
	x := p.number()
	if x < uint64(least) || x > uint64(most) || x > uint64(len(p.rest)) {
		p.fail("%d %s in %d bytes, want %d to %d", x, what, len(p.rest), least, most)
		return 0
	}
	return int(x)
}

func (p *parser) nonce() Nonce {
	x := Nonce{}
	if b := p.take(8); b != nil {
		x.Boot = Boot(binary.LittleEndian.Uint64(b))
	}
	x.Counter = p.number()
	p.need(!x.isNone(), "an empty nonce")
	return x
}

func (p *parser) text() string { return string(p.take(p.count(0, "bytes of a bound", MaxKey))) }

func (p *parser) span() Span { return Span{Start: p.text(), End: p.text()} }

func (p *parser) nodes() []NodeID {
	var ids []NodeID
	for range p.count(0, "nodes", MaxNodes) {
		ids = append(ids, NodeID(p.number()))
	}
	return ids
}

func (p *parser) roster() Roster {
	r := Roster{ID: RosterID{Term: Term(p.number()), Seq: Seq(p.number())}, Leader: NodeID(p.number())}
	flags := p.bits(allFlags)
	r.Retired, r.Tuner = flags&1 != 0, TunerMode(flags>>tunerShift)
	r.Voters = Voters{Incoming: p.nodes(), Outgoing: p.nodes()}
	for range p.count(0, "spans", MaxSpans) {
		a := Assignment{Span: p.span()}
		for range p.count(1, "responders", MaxNodes) {
			a.Responders = append(a.Responders, Responder{Node: NodeID(p.number()), Barrier: Index(p.number())})
		}
		r.Spans = append(r.Spans, a)
	}
	for range p.count(0, "wishes", MaxSpans) {
		w := Want{Span: p.span(), Tuned: p.bits(1) != 0}
		w.Nodes = p.nodes()
		r.Wanted = append(r.Wanted, w)
	}
	return r
}
