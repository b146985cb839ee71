// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"math"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
)

// A member is sent its own form of each entry of this node's log, made of the payload.
// An entry whose form cannot be made yet waits, and is completed.

// forms makes what members are sent.
type forms struct {
	*words
	wants *wants
	// blocked are members that wait for entries this leader must complete.
	blocked map[uint64]bool
	// lagging is since when members catch up.
	lagging map[uint64]time.Duration
	// saved is by how much shorter the host makes the next append.
	saved int
}

func (f *forms) form(to uint64, ents []*pb.Entry, room int) (made []*pb.Entry, saved int) {
	f.lags(to, ents[0].GetIndex())
	if !slices.ContainsFunc(ents, f.isEnvelope) {
		delete(f.blocked, to)
		for i, e := range ents {
			if room -= len(e.GetData()); room < 0 && i > 0 {
				return ents[:i], 0
			}
		}
		return ents, 0
	}
	made = make([]*pb.Entry, 0, len(ents))
	size, n, all := 0, 0, uint64(0)
	capable := f.accounts.account(to).capable
	for i, e := range ents {
		coded, late := f.isEnvelope(e), 0
		if coded {
			if !capable {
				// The member might take an envelope for a payload. The answer to an
				// append without entries will tell.
				f.blocked[to] = true
				break
			}
			data, less, err := f.dataFor(to, e)
			if err != nil {
				f.blocked[to] = true
				f.wants.wantAhead(ents[i:])
				break
			}
			if data != nil {
				e = withData(e, data)
			}
			// Carriers are longer there than in this node's log.
			if all += uint64(len(e.GetData())); all > f.cfg.MaxSizePerMsg && i > 0 {
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
		delete(f.blocked, to)
	}
	if n > 0 {
		f.emit(Event{Kind: Sent, Peer: to, Bytes: size, Count: n})
	}
	return made, saved
}

// dataFor makes a member's form of an entry in this node's form; nil if this node's
// form is to be sent, because both are the same, or because the host makes the
// member's, which is shorter by saved bytes. [ecraft.ErrIncomplete]: this node lacks
// units.
func (f *forms) dataFor(to uint64, e *pb.Entry) (data []byte, saved int, err error) {
	if rec := f.ledger.find(e.GetIndex()); rec != nil && len(rec.hdr.Riders) == 0 {
		if saved, ok := f.asItIs(rec.hdr, to, e); ok {
			return nil, saved, nil
		}
		if rec.word != nil {
			return ecraft.Seal(nil, rec.hdr, to, f.cfg.ClearPrefix, rec.word, nil), 0, nil
		}
	}
	env, err := f.open(e)
	if err != nil {
		f.fail(err, "an entry to send")
		return nil, 0, err
	}
	if saved, ok := f.asItIs(&env.Header, to, e); ok {
		return nil, saved, nil
	}
	data, err = f.sealedFor(to, e, env)
	return data, 0, err
}

// asItIs reports whether a member is sent an entry in this node's form, and by how many
// bytes the host shortens the entry.
func (f *forms) asItIs(h *ecraft.Header, to uint64, e *pb.Entry) (saved int, ok bool) {
	switch {
	case len(h.Riders) == 0 && h.Whole(to) && h.Whole(f.id):
		return 0, true // the same bytes
	case f.cfg.LateSeal && h.LeavesLate(f.id, to):
		return len(e.GetData()) - ecraft.SealedLen(h, to, f.cfg.ClearPrefix, nil), true
	}
	return 0, false
}

// sealedFor makes a member's form of an entry, riders included.
func (f *forms) sealedFor(to uint64, e *pb.Entry, env *ecraft.Envelope) (data []byte, err error) {
	var word *ecraft.Codeword
	if env.Kind != ecraft.Carrier {
		if word, err = f.codeword(idOf(e), env); err != nil {
			return nil, err
		}
		defer word.Free()
	}
	riders, err := f.riderWords(to, e.GetIndex(), env)
	if err != nil {
		return nil, err
	}
	return ecraft.Seal(nil, &env.Header, to, f.cfg.ClearPrefix, word, riders), nil
}

// room returns how many bytes of entries, from index next on, a member may be sent now:
// as many as fit a message, or fewer if the member missed these entries, because they
// can wait, unlike the new entries on the same interface.
func (f *forms) room(to, next uint64) int {
	p, ok := f.observer().(ecraft.Pacer)
	if !ok || !f.missed(next) {
		return math.MaxInt
	}
	since, known := f.lagging[to]
	if !known || !f.replicates(to) {
		return missedBytes // entries on their way may be lost
	}
	return min(p.Room(to, next, f.now()-since), missedBytes)
}

// replicates reports whether a member takes entries as they come.
func (f *forms) replicates(to uint64) bool {
	pr, _ := f.raft.Progress(to)
	return pr.State == tracker.StateReplicate
}

// missed reports whether a member missed the entries from next on.
func (f *forms) missed(next uint64) bool { return next <= f.log.Committed() && !f.plain }

// lags notes since when a member catches up.
func (f *forms) lags(to, next uint64) {
	switch _, known := f.lagging[to]; {
	case !f.missed(next):
		delete(f.lagging, to)
	case !known || !f.replicates(to):
		f.lagging[to] = f.now()
	}
}

// missedBytes bounds a message to a member behind the others, so that the next message on
// the interface does not wait for long.
const missedBytes = 32 << 10

// words makes codewords, of which members are sent their units.
type words struct {
	*payloads
	accounts *accounts
	check    *memberCheck
}

// riderWords returns the codewords of the entries that ride in a carrier, nil for
// entries whose units are left out: these entries are committed, applied and gone here
// or at the receiver, so that neither the commit rule nor the receiver needs the units.
func (w *words) riderWords(to, carrier uint64, env *ecraft.Envelope) ([]*ecraft.Codeword, error) {
	if len(env.Riders) == 0 {
		return nil, nil
	}
	words := make([]*ecraft.Codeword, len(env.Riders))
	for i, rider := range env.Riders {
		word, err := w.riderWord(ecraft.ID{Term: rider.Term, Index: rider.Index})
		switch {
		case err == nil:
			words[i] = word
		case errors.Is(err, errReleased), w.accounts.account(to).released >= rider.Index:
			w.check.wentWithout(carrier, rider.Index, to)
			w.emit(Event{Kind: LeftOut, Index: rider.Index, Peer: to})
		default:
			return nil, err
		}
	}
	return words, nil
}

var errReleased = errors.New("the entry is released here")

// riderWord returns the codeword of an entry that rides in another.
func (w *words) riderWord(id ecraft.ID) (*ecraft.Codeword, error) {
	if rec := w.ledger.find(id.Index); rec != nil {
		return w.word(rec)
	}
	if rec := w.check.headers[id.Index]; rec != nil && rec.id == id {
		// Compacted here, and completed once more. The header came from another member.
		if data := w.store.Payload(id); data != nil && rec.hdr.IsOf(data) {
			return ecraft.NewCodeword(rec.hdr, data), nil
		}
	}
	released := w.released()
	env, err := w.envelopeOf(id)
	if err == nil {
		var word *ecraft.Codeword
		if word, err = w.codeword(id, env); err == nil {
			return word, nil
		}
	}
	if id.Index <= released {
		err = errReleased
	}
	return nil, err
}

// word returns the codeword of a record, and keeps the codeword.
func (w *words) word(rec *record) (*ecraft.Codeword, error) {
	if rec.word != nil {
		return rec.word, nil
	}
	payload, err := w.payload(rec)
	if err != nil {
		w.ledger.complete(rec, false)
		return nil, err
	}
	w.ledger.keep(rec, ecraft.NewCodeword(rec.hdr, payload))
	return rec.word, nil
}
