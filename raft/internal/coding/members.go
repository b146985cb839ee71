// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft/internal/extend"
)

// changes is a leader's work for a change of members that waits.
type changes struct {
	*node
	check  *memberCheck
	call   *rollCall
	raiser *raiser
	slots  *slots
	// reports asks this node's host for a snapshot.
	reports *reports
}

// may returns why a change of members must not be appended now, or nil. No change is
// pending: (1) until then the voters to which this change leads are not known, (2) every
// unapplied configuration must agree to commits, so each further one makes commits harder,
// and (3) a new voter may need a snapshot that lists it as a member, and none exists before.
func (ch *changes) may(change *extend.Change) error {
	switch {
	case !ch.call.votersRead(change.New):
		return ch.call.unread(change.New)
	case change.To != nil && !ch.check.verdict(change.To).ok():
		return errUncovered
	}
	return nil
}

// work works for a change of members that waits: failing entries are raised,
// and headers of compacted entries asked for.
func (ch *changes) work() {
	change := ch.raft.Held()
	ch.call.ask(change)
	if change == nil || change.To == nil {
		return
	}
	voters, check := change.To, ch.check
	if !sameVoters(check.voters, voters) {
		check.checked = checked{voters: voters, raised: map[uint64][]raise{}, headers: map[uint64]*record{}}
	}
	v := check.verdict(voters)
	check.okTo = v.okTo
	if !v.ok() {
		check.ledger.seek(ch.node, 0) // entries that were not looked at may be plain
		ch.askReports()
	}
	// Perhaps no member can restore these any more: they are not tried again.
	maps.DeleteFunc(check.headers, func(i uint64, _ *record) bool { return i <= v.okTo })
	maps.DeleteFunc(check.raised, func(i uint64, _ []raise) bool { return i <= v.okTo })
	switch {
	case errors.Is(v.err, errLater):
	case v.err != nil:
		ch.fail(v.err, "a committed entry")
	case len(v.failing) > 0:
		check.failedAt, check.raisedTo = ch.ticks, noLimit
		ch.emit(Event{Kind: Checked, Index: v.failing[0].id.Index, Count: len(v.failing)})
		ch.raiseCommitted(v.failing)
	case v.askFrom > 0:
		check.askHeaders(ch.slots.members, v.askFrom, v.askTo)
	}
}

// raiseCommitted appends a carrier with the units of committed entries that the voters
// to come need, unless a carrier is on its way.
func (ch *changes) raiseCommitted(recs []*record) {
	check, wants := ch.check, ch.raiser.wants
	alive := func(id uint64) bool {
		_, voter := check.voters[id]
		return voter && check.healthy(id)
	}
	// A majority misses at most so many voters; the others must suffice.
	n := len(check.voters)
	level := countIf(check.voters, alive) - (n - (n/2 + 1))
	if level < 1 || len(ch.raiser.unplaced.made) > 0 {
		return
	}
	var late []rising
	beyond := false
	for _, rec := range recs {
		if n := len(rec.raised); n > 0 && rec.raised[n-1].at > ch.log.Committed() || check.passes(rec, check.voters, alive) {
			continue // not acknowledged by all yet: another carrier would be of no use
		}
		if !slices.ContainsFunc(rec.hdr.Members, alive) {
			continue // the members that are alive hold the payload
		}
		word, err := ch.raiser.words.riderWord(rec.id)
		if err != nil {
			beyond = beyond || wants.puller.IsStuck(rec.id)
			if e, err := ch.entry(rec.id); err == nil {
				wants.wantAhead([]*pb.Entry{e})
			} else {
				wants.wantLost(rec)
			}
			continue
		}
		late = append(late, rising{rec: rec, word: word})
	}
	if beyond && ch.ticks-check.snapshotAt >= ch.cfg.ElectionTick {
		check.snapshotAt = ch.ticks
		ch.askRelease(recs[len(recs)-1].id.Index)
	}
	if len(late) == 0 {
		return
	}
	voters := check.voters
	ch.raiser.appendCarriers(late, level, alive, func(rec *record, at uint64) {
		if !sameVoters(voters, check.voters) {
			return // another change waits since
		}
		totals := make([]uint8, rec.hdr.Slots)
		for s, member := range rec.hdr.Members {
			if alive(member) {
				totals[s] = max(rec.hdr.Units[s], uint8(rec.hdr.UnitsAt(level)))
			}
		}
		check.raisedTo = at
		check.raised[rec.id.Index] = append(check.raised[rec.id.Index], raise{at: at, totals: totals})
	})
	ch.Ask(extend.Effect{Do: extend.Spread})
}

// askReports has the voters to come that are without a report acknowledge again, once in an
// election timeout: their reports may be lost, and an idle member sends no other.
func (ch *changes) askReports() {
	check := ch.check
	if ch.ticks-check.reportsAt < ch.cfg.ElectionTick {
		return
	}
	check.reportsAt = ch.ticks
	for _, id := range check.voters.Slice() {
		if a := check.of[id]; a != nil && a.known && !a.capable {
			ch.Ask(extend.Effect{Do: extend.Probe, To: id})
		}
	}
}

// askRelease has the voters to come that have not released entries up to index make
// snapshots, because no idle host makes any by itself. The members that released the
// entries left too few units, so a check of members fails until enough of the others
// have released them.
func (ch *changes) askRelease(index uint64) {
	for _, id := range ch.check.voters.Slice() {
		switch a := ch.check.of[id]; {
		case id == ch.id:
			ch.reports.askForSnapshot(index)
		case a != nil && a.capable && a.released < index:
			m := ch.unitsMessage(MsgUnitsAsk, id, forRelease)
			m.Index = &index
			ch.send(m)
		}
	}
}
