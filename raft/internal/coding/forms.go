// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"
	"math"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
)

// A member is sent its own form of each entry of this node's log, made of the payload.
// An entry whose form cannot be made yet waits, and is completed.

// Form turns entries of a leader's log into a member's form. It stops when there is no
// room for more, and before the first entry whose form cannot be made yet, which is
// then completed. The host makes the result shorter by saved bytes.
func (c *Coder) Form(to uint64, ents []*pb.Entry, room int) (made []*pb.Entry, saved int) {
	if most, first := c.leads.mostFor(to), ents[0].GetIndex(); most-first < uint64(len(ents)) {
		ents = ents[:most-first+1]
	}
	made, saved = c.leads.form(to, ents, room)
	c.leads.saved = saved
	return made, saved
}

func (l *leading) form(to uint64, ents []*pb.Entry, room int) (made []*pb.Entry, saved int) {
	c := l.Coder
	l.lags(to, ents[0].GetIndex())
	if !slices.ContainsFunc(ents, c.isEnvelope) {
		delete(l.blocked, to)
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
				// The member might take an envelope for a payload. The answer to an
				// append without entries will tell.
				l.blocked[to] = true
				break
			}
			data, less, err := l.dataFor(to, e)
			if err != nil {
				l.blocked[to] = true
				c.wantAhead(ents[i:])
				break
			}
			if data != nil {
				e = withData(e, data)
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
		delete(l.blocked, to)
	}
	if n > 0 {
		c.emit(Event{Kind: Sent, Peer: to, Bytes: size, Count: n})
	}
	return made, saved
}

// Room returns how many bytes of entries, from index next on, a member may be sent now:
// as many as fit a message, or fewer if the member missed these entries, because they
// can wait, unlike the new entries on the same interface. 0: none.
func (c *Coder) Room(to, next uint64) int {
	l := c.leads
	if next > l.mostFor(to) {
		return 0
	}
	p, ok := l.observer().(ecraft.Pacer)
	if !ok || !l.missed(next) {
		return math.MaxInt
	}
	since, known := l.lagging[to]
	if !known || !l.replicates(to) {
		return missedBytes // entries on their way may be lost
	}
	return min(p.Room(to, next, l.now()-since), missedBytes)
}

// replicates reports whether a member takes entries as they come.
func (l *leading) replicates(to uint64) bool {
	pr, _ := l.raft.Progress(to)
	return pr.State == tracker.StateReplicate
}

// missed reports whether a member missed the entries from next on.
func (l *leading) missed(next uint64) bool { return next <= l.log.Committed() && !l.plain }

// lags notes since when a member catches up.
func (l *leading) lags(to, next uint64) {
	switch _, known := l.lagging[to]; {
	case !l.missed(next):
		delete(l.lagging, to)
	case !known || !l.replicates(to):
		l.lagging[to] = l.now()
	}
}

// missedBytes bounds a message to a member behind the others, so that the next message on
// the interface does not wait for long.
const missedBytes = 32 << 10

// dataFor makes a member's form of an entry in this node's form; nil if this node's
// form is to be sent, because both are the same, or because the host makes the
// member's, which is shorter by saved bytes. [ecraft.ErrIncomplete]: this node lacks
// units.
func (l *leading) dataFor(to uint64, e *pb.Entry) (data []byte, saved int, err error) {
	c := l.Coder
	if rec := c.ledger.find(e.GetIndex()); rec != nil && len(rec.hdr.Riders) == 0 {
		if saved, ok := l.asItIs(rec.hdr, to, e); ok {
			return nil, saved, nil
		}
		if rec.word != nil {
			return ecraft.Seal(nil, rec.hdr, to, c.cfg.ClearPrefix, rec.word, nil), 0, nil
		}
	}
	env, err := c.open(e)
	if err != nil {
		c.fail(err, "an entry to send")
		return nil, 0, err
	}
	if saved, ok := l.asItIs(&env.Header, to, e); ok {
		return nil, saved, nil
	}
	data, err = l.sealedFor(to, e, env)
	return data, 0, err
}

// asItIs reports whether a member is sent an entry in this node's form, and by how many
// bytes the host shortens the entry.
func (l *leading) asItIs(h *ecraft.Header, to uint64, e *pb.Entry) (saved int, ok bool) {
	switch {
	case len(h.Riders) == 0 && h.Whole(to) && h.Whole(l.id):
		return 0, true // the same bytes
	case l.cfg.LateSeal && h.LeavesLate(l.id, to):
		return len(e.GetData()) - ecraft.SealedLen(h, to, l.cfg.ClearPrefix, nil), true
	}
	return 0, false
}

// sealedFor makes a member's form of an entry, riders included.
func (l *leading) sealedFor(to uint64, e *pb.Entry, env *ecraft.Envelope) (data []byte, err error) {
	c := l.Coder
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
	return ecraft.Seal(nil, &env.Header, to, c.cfg.ClearPrefix, word, riders), nil
}

// codeword returns the whole payload of an entry of the log as a codeword. The
// caller frees it.
func (c *Coder) codeword(id ecraft.ID, env *ecraft.Envelope) (*ecraft.Codeword, error) {
	payload := env.Payload
	if payload == nil {
		payload = c.store.Payload(id)
	}
	if payload == nil {
		return nil, ecraft.ErrIncomplete
	}
	return ecraft.NewCodeword(&env.Header, payload), nil
}

// riderWords returns the codewords of the entries that ride in a carrier, nil for
// entries whose units are left out: these entries are committed, applied and gone here
// or at the receiver, so that neither the commit rule nor the receiver needs the units.
func (l *leading) riderWords(to, carrier uint64, env *ecraft.Envelope) ([]*ecraft.Codeword, error) {
	if len(env.Riders) == 0 {
		return nil, nil
	}
	words := make([]*ecraft.Codeword, len(env.Riders))
	for i, rider := range env.Riders {
		word, err := l.riderWord(ecraft.ID{Term: rider.Term, Index: rider.Index})
		switch {
		case err == nil:
			words[i] = word
		case errors.Is(err, errReleased), l.account(to).released >= rider.Index:
			l.check.wentWithout(carrier, rider.Index, to)
			l.emit(Event{Kind: LeftOut, Index: rider.Index, Peer: to})
		default:
			return nil, err
		}
	}
	return words, nil
}

var errReleased = errors.New("the entry is released here")

// riderWord returns the codeword of an entry that rides in another.
func (l *leading) riderWord(id ecraft.ID) (*ecraft.Codeword, error) {
	c := l.Coder
	if rec := c.ledger.find(id.Index); rec != nil {
		return l.word(rec)
	}
	if rec := l.check.headers[id.Index]; rec != nil && rec.id == id {
		// Compacted here, and completed once more. The header came from another member.
		if p := c.store.Payload(id); p != nil && rec.hdr.IsOf(p) {
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
	if id.Index <= released {
		err = errReleased
	}
	return nil, err
}

// word returns the codeword of a record, and keeps the codeword.
func (l *leading) word(rec *record) (*ecraft.Codeword, error) {
	if rec.word != nil {
		return rec.word, nil
	}
	payload, err := l.payload(rec)
	if err != nil {
		l.ledger.complete(rec, false)
		return nil, err
	}
	l.ledger.keep(rec, ecraft.NewCodeword(rec.hdr, payload))
	return rec.word, nil
}

// payload returns the payload of an entry that is complete.
func (c *Coder) payload(rec *record) ([]byte, error) {
	if !rec.complete {
		return nil, ecraft.ErrIncomplete
	}
	if p := c.store.Payload(rec.id); p != nil {
		return p, nil
	}
	env, err := c.envelopeOf(rec.id)
	if err != nil {
		return nil, err
	}
	if env.Payload == nil {
		return nil, ecraft.ErrIncomplete // its units were given up for lack of room
	}
	return env.Payload, nil
}

// entry reads the entry of the log with an id.
func (c *Coder) entry(id ecraft.ID) (*pb.Entry, error) {
	if !c.stands(id) {
		return nil, ecraft.ErrIncomplete
	}
	ents, err := c.log.Slice(id.Index, id.Index+1, noLimit)
	if err != nil || len(ents) == 0 {
		return nil, errors.Join(errNone, err)
	}
	return ents[0], nil
}

// stands reports whether the log has an entry.
func (c *Coder) stands(id ecraft.ID) bool {
	term, err := c.log.Term(id.Index)
	return err == nil && term == id.Term && id.Index >= c.log.First() && id.Index <= c.log.Last().Index
}

var errPlain = fmt.Errorf("%w: the entry is plain", ecraft.ErrIncomplete)

// envelopeOf reads a coded entry of the log.
// [ecraft.ErrIncomplete]: there is no such entry.
func (c *Coder) envelopeOf(id ecraft.ID) (*ecraft.Envelope, error) {
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
