// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// The host applies payloads and nothing else. Entries are handed out up to the first
// entry that this node cannot complete yet.

// completeTo returns the highest index up to which every entry is complete.
func (c *Coder) completeTo() uint64 {
	if rec := c.incomplete(); rec != nil {
		return rec.id.Index - 1
	}
	return c.log.Last().Index
}

// Releasable bounds the entries handed out by the first incomplete entry.
func (c *Coder) Releasable(k uint64) uint64 { return min(k, c.completeTo()) }

// noteHeldBack records where committed entries wait for a payload.
func (c *Coder) noteHeldBack() {
	k := c.log.Committed()
	if to := c.completeTo(); to < k && c.heldBack != to {
		c.heldBack = to
		c.emit(Event{Kind: HeldBack, Index: to + 1, Count: int(k - to)})
	}
}

// Offered hears that the host was given entries up to an index, or none where
// Releasable let some pass: then a payload is not there after all.
func (c *Coder) Offered(index uint64) {
	if rec := c.ledger.find(index + 1); rec != nil && rec.complete && !c.here(rec) {
		c.ledger.complete(rec, false)
	}
}

// Unwrap returns committed entries as the host is to see them: with payloads,
// and carriers as empty entries. It stops before an entry whose payload is not
// there after all.
func (c *Coder) Unwrap(ents []*pb.Entry, most uint64) ([]*pb.Entry, error) {
	for i, e := range ents {
		if c.isEnvelope(e) {
			out, err := c.unwrapFrom(ents, i)
			return extend.Limit(out, most), err
		}
	}
	return ents, nil
}

// unwrapFrom makes the copy in which entries from position i on are unwrapped.
func (c *Coder) unwrapFrom(ents []*pb.Entry, i int) ([]*pb.Entry, error) {
	out := append(make([]*pb.Entry, 0, len(ents)), ents[:i]...)
	for _, e := range ents[i:] {
		if payload := c.sealedHere(e); payload != nil {
			out = append(out, withData(e, payload))
			continue
		}
		env, err := c.open(e)
		if err != nil {
			return nil, err
		}
		if env != nil {
			payload, ok := c.payloadOf(idOf(e), env)
			if !ok {
				break
			}
			e = withData(e, payload)
		}
		out = append(out, e)
	}
	return out, nil
}

// sealedHere returns the payload of an entry sealed by this node whose bytes are still
// the same, in the same place: the host's own bytes, whose checksum needs no look. nil
// for any other entry.
func (c *Coder) sealedHere(e *pb.Entry) []byte {
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

// payloadOf returns an entry's payload for the host, and whether the payload is here. A
// payload is given out only with the right checksum: open has checked a whole payload,
// the store a payload put together.
func (c *Coder) payloadOf(id ecraft.ID, env *ecraft.Envelope) ([]byte, bool) {
	if env.Kind == ecraft.Carrier {
		return nil, true
	}
	if env.Payload != nil {
		return env.Payload, true
	}
	p := c.store.Payload(id)
	return p, p != nil
}
