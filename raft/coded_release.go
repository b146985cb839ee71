// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// The host applies payloads and nothing else. Entries are handed to it up to
// the first one that this node cannot complete yet.

// completeTo returns the highest index up to which every entry is complete.
func (c *coded) completeTo() uint64 {
	if rec := c.incomplete(); rec != nil {
		return rec.id.index - 1
	}
	return c.r.log.last().index
}

// holdBack limits what may be handed out to what is complete.
func (c *coded) holdBack(index uint64) uint64 {
	if c == nil {
		return index
	}
	to := min(index, c.completeTo())
	if to < index && c.held != to {
		c.held = to
		c.record(CodingEvent{Kind: CodingHeldBack, Index: to + 1, Count: int(index - to)})
	}
	return to
}

// unwrap returns committed entries as the host is to see them: with payloads,
// and carriers as empty entries. It stops before an entry whose payload is not
// there after all, and at limit bytes.
func (c *coded) unwrap(ents []*pb.Entry, limit entryEncodingSize) []*pb.Entry {
	if c == nil {
		return ents
	}
	for i, e := range ents {
		if c.isEnvelope(e) {
			return limitSize(c.unwrapFrom(ents, i), limit)
		}
	}
	return ents
}

// unwrapFrom makes the copy in which entries from position i on are unwrapped.
func (c *coded) unwrapFrom(ents []*pb.Entry, i int) []*pb.Entry {
	out := append(make([]*pb.Entry, 0, len(ents)), ents[:i]...)
	for _, e := range ents[i:] {
		if payload := c.sealedHere(e); payload != nil {
			out = append(out, copyWithData(e, payload))
			continue
		}
		env, err := c.open(e)
		if err != nil {
			c.r.log.fail(err, "a committed entry")
			return out
		}
		if env != nil {
			payload, ok := c.payloadOf(idOf(e), env)
			if !ok {
				return out
			}
			e = copyWithData(e, payload)
		}
		out = append(out, e)
	}
	return out
}

// sealedHere returns the payload of an entry that this node sealed and whose
// bytes still are those, in the same place: what the host gave, which needs no
// look at its checksum. nil for any other entry.
func (c *coded) sealedHere(e *pb.Entry) []byte {
	rec := c.ledger.find(e.GetIndex())
	if rec == nil || rec.word == nil || rec.id != idOf(e) {
		return nil
	}
	data, payload := e.GetData(), rec.word.Payload()
	n := len(payload)
	if n == 0 || n > len(data) || &payload[0] != &data[len(data)-n] {
		return nil
	}
	return payload[:n:n]
}

// payloadOf returns what the host is to see of an entry, and whether it is all
// here. A payload is never given out unless its checksum is right: open has
// checked that of a whole one, the store that of one put together.
func (c *coded) payloadOf(id entryID, env *ecraft.Envelope) ([]byte, bool) {
	if env.Kind == ecraft.Carrier {
		return nil, true
	}
	if env.Payload != nil {
		return env.Payload, true
	}
	if p := c.store.Payload(coID(id)); p != nil {
		return p, true
	}
	if rec := c.ledger.find(id.index); rec != nil {
		c.ledger.lose(rec) // given up for lack of room, or its units were bad
	}
	return nil, false
}
