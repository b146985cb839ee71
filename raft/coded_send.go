// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"
	"fmt"
	"math"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
)

// What a member is sent of the entries in this node's log: its own form of each,
// made of the payload. What cannot be made yet waits, and is completed.

// forMember turns entries of this node's log into what a member is sent. It
// stops before the first one that cannot be made yet, and sees to it that it
// will be, and when there is no room for more. What is left to the host to make
// will be so many bytes shorter.
func (l *leader) forMember(to uint64, ents []*pb.Entry, room int) (made []*pb.Entry, saved int) {
	c := l.coded
	if !slices.ContainsFunc(ents, c.isEnvelope) {
		delete(l.enc.blocked, to)
		for i, e := range ents {
			if room -= len(e.GetData()); room < 0 && i > 0 {
				return ents[:i], 0
			}
		}
		return ents, 0
	}
	made = make([]*pb.Entry, 0, len(ents))
	size, n, all := 0, 0, uint64(0)
	capable := c.account(to).capable
	for i, e := range ents {
		coded, late := c.isEnvelope(e), 0
		if coded {
			if !capable {
				// It might take an envelope for a payload. The answer to an
				// append without entries will tell.
				l.enc.blocked[to] = true
				break
			}
			data, less, err := l.dataFor(to, e)
			if err != nil {
				l.enc.blocked[to] = true
				c.wantAhead(ents[i:])
				break
			}
			if data != nil {
				e = copyWithData(e, data)
			}
			// Carriers are longer there than in this node's log.
			if all += uint64(len(e.GetData())); all > l.cfg.MaxSizePerMsg && i > 0 {
				break
			}
			late = less
		}
		bytes := len(e.GetData()) - late
		if room -= bytes; room < 0 && i > 0 {
			break
		}
		if coded {
			size += bytes
			n++
		}
		saved += late
		made = append(made, e)
	}
	if len(made) == len(ents) {
		delete(l.enc.blocked, to)
	}
	if n > 0 {
		c.record(CodingEvent{Kind: CodingSent, Peer: to, Bytes: size, Count: n})
	}
	return made, saved
}

// room returns how many bytes of entries, from index next on, a member may be sent
// now: as many as fit a message, or less of what it missed. That can wait, unlike
// what others are sent by the same interface.
func (l *leader) room(to, next uint64) int {
	p, ok := l.observer().(ecraft.Pacer)
	if !ok || next > l.log.committed || l.coded.plain {
		delete(l.enc.lagging, to)
		return math.MaxInt
	}
	now := l.coded.now()
	if l.members.Progress[to].State != tracker.StateReplicate {
		l.enc.lagging[to] = now
		return missedBytes // what was on its way may be lost
	}
	since, ok := l.enc.lagging[to]
	if !ok {
		since, l.enc.lagging[to] = now, now
	}
	return min(p.Room(to, next, now-since), missedBytes)
}

// missedBytes is how much of what a member missed goes into one message, so that
// what comes next does not wait for long.
const missedBytes = 32 << 10

// dataFor makes a member's form of an entry in this node's form; nil if it is to
// be sent in that, as it is the same or the host makes the other of it, which
// saves so many bytes. [ecraft.ErrIncomplete]: this node lacks units for it.
func (l *leader) dataFor(to uint64, e *pb.Entry) (data []byte, saved int, err error) {
	c := l.coded
	if rec := c.ledger.find(e.GetIndex()); rec != nil && len(rec.hdr.Riders) == 0 {
		if saved, ok := l.asItIs(rec.hdr, to, e); ok {
			return nil, saved, nil
		}
		if rec.word != nil {
			return ecraft.Seal(nil, rec.hdr, to, c.opt.ClearPrefix, rec.word, nil), 0, nil
		}
	}
	env, err := c.open(e)
	if err != nil {
		l.log.fail(err, "an entry to send")
		return nil, 0, err
	}
	if saved, ok := l.asItIs(&env.Header, to, e); ok {
		return nil, saved, nil
	}
	data, err = l.sealedFor(to, e, env)
	return data, 0, err
}

// asItIs reports whether a member is sent an entry in this node's form, and how
// many bytes are saved when the host makes the member's of it.
func (l *leader) asItIs(h *ecraft.Header, to uint64, e *pb.Entry) (saved int, ok bool) {
	switch {
	case len(h.Riders) == 0 && h.Whole(to) && h.Whole(l.id):
		return 0, true // the same bytes
	case l.coded.opt.LateSeal && h.LeavesLate(l.id, to):
		return len(e.GetData()) - ecraft.SealedLen(h, to, l.coded.opt.ClearPrefix, nil), true
	}
	return 0, false
}

// sealedFor makes a member's form of an entry, riders included.
func (l *leader) sealedFor(to uint64, e *pb.Entry, env *ecraft.Envelope) (data []byte, err error) {
	c := l.coded
	var word *ecraft.Codeword
	if env.Kind != ecraft.Carrier {
		if word, err = c.codeword(idOf(e), env); err != nil {
			return nil, err
		}
		defer word.Free()
	}
	riders, err := l.riderWords(to, e.GetIndex(), env)
	if err != nil {
		return nil, err
	}
	return ecraft.Seal(nil, &env.Header, to, c.opt.ClearPrefix, word, riders), nil
}

// codeword returns the whole payload of an entry of the log as a codeword. The
// caller frees it.
func (c *coded) codeword(id entryID, env *ecraft.Envelope) (*ecraft.Codeword, error) {
	payload := env.Payload
	if payload == nil {
		payload = c.store.Payload(coID(id))
	}
	if payload == nil {
		return nil, ecraft.ErrIncomplete
	}
	return ecraft.NewCodeword(&env.Header, payload), nil
}

// riderWords returns the codewords of the entries that ride in one, nil for
// those whose units are left out: they are committed, applied and gone here or
// there, so that neither the commit rule nor the receiver needs them any more.
func (l *leader) riderWords(to, carrier uint64, env *ecraft.Envelope) ([]*ecraft.Codeword, error) {
	if len(env.Riders) == 0 {
		return nil, nil
	}
	words := make([]*ecraft.Codeword, len(env.Riders))
	for i, rider := range env.Riders {
		word, err := l.riderWord(entryID{term: rider.Term, index: rider.Index})
		switch {
		case err == nil:
			words[i] = word
		case errors.Is(err, errReleased), l.coded.account(to).released >= rider.Index:
			l.enc.check.wentWithout(carrier, rider.Index, to)
			l.coded.record(CodingEvent{Kind: CodingLeftOut, Index: rider.Index, Peer: to})
		default:
			return nil, err
		}
	}
	return words, nil
}

var errReleased = errors.New("the entry is released here")

// riderWord returns the codeword of an entry that rides in another.
func (l *leader) riderWord(id entryID) (*ecraft.Codeword, error) {
	c := l.coded
	if rec := c.ledger.find(id.index); rec != nil {
		return l.word(rec)
	}
	if rec := l.enc.check.headers[id.index]; rec != nil && rec.id == id {
		// Compacted here, and completed once more. The header is another's word.
		if p := c.store.Payload(coID(id)); p != nil && rec.hdr.IsOf(p) {
			return ecraft.NewCodeword(rec.hdr, p), nil
		}
	}
	released := c.released()
	env, err := c.envelopeOf(id)
	if err == nil {
		var word *ecraft.Codeword
		if word, err = c.codeword(id, env); err == nil {
			return word, nil
		}
	}
	if id.index <= released {
		err = errReleased
	}
	return nil, err
}

// word returns the codeword of a record, and keeps it.
func (l *leader) word(rec *record) (*ecraft.Codeword, error) {
	if rec.word != nil {
		return rec.word, nil
	}
	if !rec.complete {
		return nil, ecraft.ErrIncomplete
	}
	payload, err := l.coded.payload(rec)
	if err != nil {
		return nil, err
	}
	l.coded.ledger.keep(rec, ecraft.NewCodeword(rec.hdr, payload))
	return rec.word, nil
}

// payload returns the payload of a complete record.
func (c *coded) payload(rec *record) ([]byte, error) {
	if p := c.store.Payload(coID(rec.id)); p != nil {
		return p, nil
	}
	env, err := c.envelopeOf(rec.id)
	if err != nil {
		return nil, err
	}
	if env.Payload == nil {
		c.ledger.lose(rec) // its units were given up for lack of room
		return nil, ecraft.ErrIncomplete
	}
	return env.Payload, nil
}

// entry reads one entry of the log, if that is the one meant.
func (c *coded) entry(id entryID) (*pb.Entry, error) {
	if !c.stands(id) {
		return nil, ecraft.ErrIncomplete
	}
	return c.r.log.entry(id.index)
}

// stands reports whether the log has an entry.
func (c *coded) stands(id entryID) bool {
	l := c.r.log
	return id.index <= l.last().index && id.index >= l.firstIndex() && l.holds(id)
}

var errPlain = fmt.Errorf("%w: the entry is plain", ecraft.ErrIncomplete)

// envelopeOf reads one entry of the log that is not plain.
// [ecraft.ErrIncomplete]: there is no such entry.
func (c *coded) envelopeOf(id entryID) (*ecraft.Envelope, error) {
	e, err := c.entry(id)
	if err != nil {
		return nil, err
	}
	env, err := c.open(e)
	if err == nil && env == nil {
		err = errPlain
	}
	return env, err
}

// copyWithData returns an entry that differs from e in its Data, which it
// shares with the caller.
func copyWithData(e *pb.Entry, data []byte) *pb.Entry {
	c := copyShell(&pb.Entry{Type: e.Type}, idOf(e))
	c.Data = data
	return c
}
