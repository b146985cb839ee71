// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// Notes of entries that come into the log, are replaced, and are applied; and the
// checks before.

// accepted are entries and their envelopes: nil for a plain entry, and no envelopes at
// all if every entry is plain.
type accepted struct {
	ents []*pb.Entry
	envs []*ecraft.Envelope
}

// intake is the way of entries into the log.
type intake struct {
	*payloads
	accounts *accounts
	// fresh are the entries that were accepted last, and are about to be appended.
	fresh accepted
}

// accept checks entries from a leader before the log takes the entries, and refuses
// entries without use to this node, now or later.
func (in *intake) accept(ents []*pb.Entry) error {
	envs, err := in.openAll(ents)
	for i := 0; i < len(envs) && err == nil; i++ {
		if envs[i] != nil {
			err = in.plausible(idOf(ents[i]), envs[i], ents[:i], envs[:i])
		}
	}
	if err != nil {
		in.emit(Event{Kind: Rejected, Peer: in.raft.Lead()})
		return err
	}
	in.fresh = accepted{ents: ents, envs: envs}
	return nil
}

// plausible checks an envelope from the network against the log: the units must be
// intact, and the riders must be for coded entries before the envelope.
func (in *intake) plausible(id ecraft.ID, env *ecraft.Envelope, before []*pb.Entry, envs []*ecraft.Envelope) error {
	if err := env.Own.Verify(); err != nil {
		return fault(id, err)
	}
	for i, rider := range env.Riders {
		if err := env.RiderUnits[i].Verify(); err != nil {
			return fault(id, fmt.Errorf("rider for %d/%d: %w", rider.Term, rider.Index, err))
		}
		if rider.Index >= id.Index || rider.Term > id.Term {
			return fault(id, fmt.Errorf("rider for %d/%d, which does not stand before it", rider.Term, rider.Index))
		}
		slots, known := in.slotsOf(ecraft.ID{Term: rider.Term, Index: rider.Index}, before, envs)
		if known && len(rider.Totals) != slots {
			return fault(id, fmt.Errorf("rider for %d/%d has %d totals, the entry has %d slots", rider.Term, rider.Index, len(rider.Totals), slots))
		}
	}
	return nil
}

// slotsOf returns the number of slots of an entry that is not applied, in the log or
// before the present one in the same message; 0 if the entry is not coded. Nothing is
// known of applied entries, nor of entries behind a snapshot that the host has yet to
// apply.
func (in *intake) slotsOf(id ecraft.ID, before []*pb.Entry, envs []*ecraft.Envelope) (slots int, known bool) {
	if len(before) > 0 && id.Index >= before[0].GetIndex() {
		i := id.Index - before[0].GetIndex()
		if env := envs[i]; env != nil && before[i].GetTerm() == id.Term {
			return env.Slots, true
		}
		return 0, true
	}
	if id.Index <= in.log.Applied() || id.Index < in.log.First() {
		return 0, false
	}
	if rec := in.ledger.find(id.Index); rec != nil && rec.id == id {
		return rec.hdr.Slots, true
	}
	return 0, true
}

// took notes entries with this node's units. envs are the entries' envelopes.
func (in *intake) took(ents []*pb.Entry, envs []*ecraft.Envelope) {
	for i, env := range envs {
		if env != nil {
			in.note(idOf(ents[i]), env)
		}
	}
	in.forgetting()
}

// note adds an envelope of the log to the ledger.
func (in *intake) note(id ecraft.ID, env *ecraft.Envelope) {
	in.ledger.spans.add(id.Index)
	if env.Kind == ecraft.Coded {
		hdr := env.Header // a copy: the envelope would keep the units in memory
		rec := &record{id: id, hdr: &hdr, bornTick: in.ticks, born: in.now(), whole: env.Payload != nil}
		in.accounts.reads(env.Encoder)
		for _, id := range env.Members {
			in.accounts.reads(id)
		}
		rec.complete = rec.whole || in.store.Expect(id, rec.hdr, env.Own)
		in.ledger.add(rec)
	}
	for i, rider := range env.Riders {
		in.ledger.ride(id.Index, rider)
		if u := env.RiderUnits[i]; u.Count > 0 {
			// Bad units count as absent: other members have more.
			_ = in.arrived(ecraft.ID{Term: rider.Term, Index: rider.Index}, in.id, u)
		}
	}
}
