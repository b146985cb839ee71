// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
)

// Flag bits of Chunk.
const (
	chunkLast = 1 << iota
	chunkHeader
	chunkFlagsEnd
)

// Flag bits of Proposal.
const (
	proposalConfChange = 1 << iota
	proposalForce
	proposalFlagsEnd
)

const idSize = 3 * 10

func (e *encoder) id(id CommandID) {
	e.uvarint(id.Origin)
	e.uvarint(id.Boot)
	e.uvarint(id.Sequence)
}

func (b Proposal) size() int { return idSize + 26 + len(b.Data) }

func (b Proposal) encode(e *encoder) {
	e.id(b.ID)
	e.uvarint(b.Number)
	e.uvarint(b.Term)
	flags := byte(0)
	if b.ConfChange {
		flags |= proposalConfChange
	}
	if b.Force {
		flags |= proposalForce
	}
	e.byte(flags)
	e.bytes(b.Data)
}

func (b Verdict) size() int { return idSize + 44 + len(b.Reason) }

func (b Verdict) encode(e *encoder) {
	e.id(b.ID)
	e.uvarint(b.Number)
	e.byte(byte(b.Outcome))
	e.uvarint(b.Index)
	e.uvarint(b.Term)
	e.uvarint(b.Leader)
	e.text(b.Reason)
}

func (Transfer) size() int { return 20 }

func (b Transfer) encode(e *encoder) {
	e.uvarint(b.Term)
	e.uvarint(b.Transferee)
}

func (b Chunk) size() int { return 36 + proto.Size(b.Header) + len(b.Data) + len(b.Broken) }

func (b Chunk) encode(e *encoder) {
	flags := byte(0)
	if b.Last {
		flags |= chunkLast
	}
	if b.Header != nil {
		flags |= chunkHeader
	}
	e.byte(flags)
	e.uvarint(b.Stream)
	e.uvarint(b.Number)
	e.text(b.Broken)
	if b.Header != nil {
		e.uvarint(uint64(proto.Size(b.Header)))
		Raft{Message: b.Header}.encode(e)
	}
	e.bytes(b.Data)
}

func (b ChunkStatus) size() int { return 12 + len(b.Reason) }

func (b ChunkStatus) encode(e *encoder) {
	e.uvarint(b.Stream)
	e.bool(b.OK)
	e.text(b.Reason)
}

func (b First) size() int { return 10 * (1 + len(b.Members)) }

func (b First) encode(e *encoder) { e.ids(b.Members) }

func (e *encoder) ids(ids []uint64) {
	e.uvarint(uint64(len(ids)))
	for _, id := range ids {
		e.uvarint(id)
	}
}

func (LogEnd) size() int { return 36 }

func (b LogEnd) encode(e *encoder) {
	e.uvarint(b.Boot)
	e.uvarint(b.Number)
	e.bool(b.Answer)
	e.uvarint(b.Index)
	e.uvarint(uint64(b.First))
}

func (b Note) size() int { return 6 + len(b.Data) }

func (b Note) encode(e *encoder) { e.bytes(b.Data) }

func (b Settings) size() int {
	n := 3
	for _, s := range b.All {
		n += 7 + len(s.Name) + len(s.Value)
	}
	return n
}

func (b Settings) encode(e *encoder) {
	e.bool(b.Ask)
	e.uvarint(uint64(len(b.All)))
	for _, s := range b.All {
		e.bool(s.Must)
		e.text(s.Name)
		e.text(s.Value)
	}
}

func decodeSettings(d *decoder) Settings {
	b := Settings{Ask: d.bool()}
	n := d.uvarint()
	if n > MaxSettings {
		d.fail("%d settings, want at most %d", n, MaxSettings)
	}
	for range n {
		s := Setting{Must: d.bool(), Name: d.text(), Value: d.text()}
		if len(s.Name) > MaxSettingBytes || len(s.Value) > MaxSettingBytes {
			d.fail("a setting of %d and %d bytes, want at most %d each", len(s.Name), len(s.Value), MaxSettingBytes)
		}
		if d.err != nil {
			return Settings{}
		}
		b.All = append(b.All, s)
	}
	return b
}

func (b Health) size() int { return 4*8 + 3*10 + 3*10 + 2 + len(b.Links)*(10+8) }

func (b Health) encode(e *encoder) {
	for _, d := range [...]time.Duration{b.Sync, b.Turn, b.Wait, b.Send} {
		e.delay(d)
	}
	e.bool(b.Stalled)
	e.uvarint(b.Weight)
	e.uvarint(b.GroupWeight)
	if b.Stamp == 0 {
		return
	}
	e.uvarint(uint64(max(b.Stamp, 0) / time.Microsecond))
	e.uvarint(uint64(max(b.Answers, 0) / time.Microsecond))
	e.delay(b.Held)
	links := b.Links[:min(len(b.Links), maxHealthLinks)]
	e.uvarint(uint64(len(links)))
	for _, l := range links {
		e.uvarint(l.Node)
		e.delay(l.Round)
	}
}

// maxDelay bounds the delays of a Health: a longer one says no more.
const maxDelay = 24 * time.Hour

func (e *encoder) delay(d time.Duration) {
	e.uvarint(uint64(min(max(d, 0), maxDelay) / time.Microsecond))
}

func (d *decoder) delay() time.Duration { return d.micros(maxDelay) }

// micros reads a whole number of microseconds.
func (d *decoder) micros(most time.Duration) time.Duration {
	us := d.uvarint()
	if us > uint64(most/time.Microsecond) {
		d.fail("%d µs, want at most %v", us, most)
		return 0
	}
	return time.Duration(us) * time.Microsecond
}

func decodeHealth(d *decoder) (b Health) {
	for _, delay := range [...]*time.Duration{&b.Sync, &b.Turn, &b.Wait, &b.Send} {
		*delay = d.delay()
	}
	b.Stalled, b.Weight, b.GroupWeight = d.bool(), d.uvarint(), d.uvarint()
	if len(d.b) > 0 {
		b.Stamp, b.Answers, b.Held, b.Links = d.micros(math.MaxInt64), d.micros(math.MaxInt64), d.delay(), d.healthLinks()
	}
	d.rest()
	return b
}

// healthLinks reads links.
func (d *decoder) healthLinks() (links []HealthLink) {
	n := d.uvarint()
	if n > maxHealthLinks {
		d.fail("%d links, want at most %d", n, maxHealthLinks)
	}
	for d.err == nil && uint64(len(links)) < n {
		links = append(links, HealthLink{Node: d.uvarint(), Round: d.delay()})
	}
	return links
}

func decodeLogEnd(d *decoder) LogEnd {
	b := LogEnd{Boot: d.uvarint(), Number: d.uvarint(), Answer: d.bool(), Index: d.uvarint()}
	first := d.uvarint()
	if first > math.MaxUint32 {
		d.fail("a digest of %d", first)
	}
	b.First = uint32(first)
	return b
}

func decodeFirst(d *decoder) First {
	ids := d.ids()
	if len(ids) == 0 {
		d.fail("no first members, want 1 to %d", maxFirst)
	}
	return First{Members: ids}
}

// ids reads ascending ids.
func (d *decoder) ids() (ids []uint64) {
	n := d.uvarint()
	if n > maxFirst {
		d.fail("%d members, want at most %d", n, maxFirst)
	}
	last := uint64(0)
	for d.err == nil && uint64(len(ids)) < n {
		id := d.uvarint()
		if id <= last {
			d.fail("member %d behind %d", id, last)
			return nil
		}
		ids, last = append(ids, id), id
	}
	return ids
}

func (b Offer) size() int { return 10 * (4 + len(b.Sources)) }

func (b Offer) encode(e *encoder) {
	e.uvarint(b.Stream)
	e.uvarint(b.Term)
	e.uvarint(b.Index)
	e.ids(b.Sources)
}

func (Fetch) size() int { return 1 + 5*10 }

func (b Fetch) encode(e *encoder) {
	e.byte(byte(b.Step))
	e.uvarint(b.Stream)
	e.uvarint(b.Term)
	e.uvarint(b.Index)
	e.uvarint(b.Number)
	if b.Step == FetchAsk {
		e.uvarint(uint64(b.Urgency))
	} else {
		e.uvarint(b.Until)
	}
}

func decodeFetch(d *decoder) Fetch {
	b := Fetch{Step: FetchStep(d.byte()), Stream: d.uvarint(), Term: d.uvarint(), Index: d.uvarint(), Number: d.uvarint(), Until: d.uvarint()}
	if b.Step == 0 || b.Step >= endOfFetchSteps {
		d.fail("step %d of fetching", b.Step)
	}
	if b.Step == FetchAsk {
		b.Urgency, b.Until = Urgency(min(b.Until, uint64(endOfUrgencies)-1)), 0
	}
	return b
}

// decodeBody reads a body of a known kind.
func decodeBody(k Kind, d *decoder) (Body, error) {
	var body Body
	switch k {
	case KindRaft:
		r := d.proto(d.rest())
		if r.Message == nil {
			return nil, d.err
		}
		body = r
	case KindProposal:
		p := Proposal{ID: d.id(), Number: d.uvarint(), Term: d.uvarint()}
		flags := d.byte()
		if flags >= proposalFlagsEnd {
			d.fail("proposal flags %#x", flags)
		}
		p.ConfChange, p.Force = flags&proposalConfChange != 0, flags&proposalForce != 0
		p.Data = d.bytes()
		body = p
	case KindVerdict:
		v := Verdict{ID: d.id(), Number: d.uvarint(), Outcome: Outcome(d.byte()), Index: d.uvarint(), Term: d.uvarint(), Leader: d.uvarint(), Reason: d.text()}
		if v.Outcome == 0 || v.Outcome >= endOfOutcomes {
			d.fail("outcome %d", v.Outcome)
		}
		body = v
	case kindTransfer:
		body = Transfer{Term: d.uvarint(), Transferee: d.uvarint()}
	case kindChunk:
		body = decodeChunk(d)
	case kindChunkStatus:
		body = ChunkStatus{Stream: d.uvarint(), OK: d.bool(), Reason: d.text()}
	case KindFirst:
		body = decodeFirst(d)
	case KindLogEnd:
		body = decodeLogEnd(d)
	case kindNote:
		body = Note{Data: d.bytes()}
	case KindSettings:
		body = decodeSettings(d)
	case KindOffer:
		body = Offer{Stream: d.uvarint(), Term: d.uvarint(), Index: d.uvarint(), Sources: d.ids()}
	case KindFetch:
		body = decodeFetch(d)
	case kindHealth:
		body = decodeHealth(d)
	case KindAttach:
		body = Attach{Life: d.uvarint(), Number: d.uvarint(), Stream: d.streamID(), Received: d.uvarint(), Leaves: d.bool()}
	case kindReport:
		body = decodeReport(d)
	case kindQuery:
		body = decodeQuery(d)
	case kindReply:
		body = decodeReply(d)
	case KindNamed:
		body = decodeNamed(d)
	case KindRun:
		body = decodeRun(d)
	case kindLack:
		body = Lack{Term: d.uvarint(), Number: d.uvarint()}
	case kindFill:
		body = decodeFill(d)
	case KindWant:
		body = decodeWant(d)
	}
	if d.err == nil && len(d.b) > 0 {
		d.fail("%d bytes behind a %v", len(d.b), k)
	}
	return body, d.err
}

func decodeChunk(d *decoder) Chunk {
	flags := d.byte()
	if flags >= chunkFlagsEnd {
		d.fail("chunk flags %#x", flags)
	}
	c := Chunk{Last: flags&chunkLast != 0, Stream: d.uvarint(), Number: d.uvarint(), Broken: d.text()}
	if flags&chunkHeader != 0 {
		c.Header = d.proto(d.view()).Message
	}
	c.Data = d.bytes()
	if d.err == nil && (c.Header != nil) != (c.Number == 0) {
		d.fail("chunk %d has a header: %t", c.Number, c.Header != nil)
	}
	return c
}

// proto reads a Raft message, and the digests with it.
func (d *decoder) proto(b []byte) Raft {
	if d.err != nil {
		return Raft{}
	}
	r, err := d.raft(b)
	if err != nil {
		d.err = fmt.Errorf("%w: Raft message of %d bytes: %w", ErrFrame, len(b), err)
	}
	return r
}
