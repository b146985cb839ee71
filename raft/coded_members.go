// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// Configuration changes. What is committed later satisfies the commit rule of
// the configuration in force, which covers one that is one step away. What was
// committed earlier may not: entries coded for five, of which three decode, are
// not safe with a majority of three. So before a simple change is appended, and
// before a joint configuration is left, every committed coded entry must be
// decodable by any majority of the voters to come, or released by enough of
// them. Entering a joint configuration needs no check: its old half protects.
//
// Where an entry fails the check, the leader raises it by riders; where it
// cannot, it waits for members to release it.

// memberCheck is how far the check for a change has come.
type memberCheck struct {
	// voters are those to come; nil if nothing is being checked.
	voters quorum.MajorityConfig
	// okTo is the index up to which all entries pass. What passes once passes
	// for good: logs grow, and nothing released comes back.
	okTo uint64
	// failedAt is the tick at which it last failed, snapshotAt that at which the
	// host was last asked for a snapshot.
	failedAt, snapshotAt int
	// raised are riders in carriers that were appended for this check.
	raised map[uint64][]raise
	// headers are those of entries that are compacted here, as others told,
	// known up to headersTo.
	headers   map[uint64]*record
	headersTo uint64
}

// checkPage bounds how much of the log a check reads at a time.
const checkPage = 8 << 20

// mayBecome reports whether the voters to come can restore all that is
// committed.
func (l *leader) mayBecome(voters quorum.MajorityConfig) bool {
	check := &l.enc.check
	if !sameVoters(check.voters, voters) {
		*check = memberCheck{voters: voters, raised: map[uint64][]raise{}, headers: map[uint64]*record{}}
	}
	if to := l.releasedByEnough(voters); to > check.okTo {
		check.okTo = to
		// Nobody may be able to restore these any more: do not go on trying.
		maps.DeleteFunc(check.headers, func(i uint64, _ *record) bool { return i <= to })
		maps.DeleteFunc(check.raised, func(i uint64, _ []raise) bool { return i <= to })
	}
	if check.okTo >= l.coded.spans.last() {
		return true // all behind it is plain
	}
	first := l.log.firstIndex()
	if check.okTo+1 < first && !l.compactedPass(first-1) {
		return false
	}
	var failing []*record
	for lo := max(check.okTo+1, first); lo <= l.log.committed && len(failing) < ridersPerCarrier; {
		ents, err := l.log.slice(lo, l.log.committed+1, checkPage)
		if err != nil || len(ents) == 0 {
			return false
		}
		failing = l.checkEntries(ents, failing)
		lo += uint64(len(ents))
	}
	if len(failing) == 0 {
		return true
	}
	l.failed(failing)
	return false
}

// failed does what can be done about entries that do not pass: it raises them.
func (l *leader) failed(recs []*record) {
	l.enc.check.failedAt = l.coded.ticks
	l.coded.record(CodingEvent{Kind: CodingChecked, Index: recs[0].id.index, Count: len(recs)})
	l.raiseCommitted(recs)
}

func sameVoters(a, b quorum.MajorityConfig) bool {
	if len(a) != len(b) {
		return false
	}
	for id := range a {
		if _, ok := b[id]; !ok {
			return false
		}
	}
	return true
}

// releasedByEnough returns the index up to which so many voters have released
// the log that each majority has one of them.
func (l *leader) releasedByEnough(voters quorum.MajorityConfig) uint64 {
	n := len(voters)
	if n == 0 {
		return 0
	}
	released := make([]uint64, 0, n)
	for id := range voters {
		released = append(released, l.releasedBy(id))
	}
	slices.Sort(released)
	// A majority is n/2+1 of n, so n - n/2 of them meet every one.
	return released[n-(n-n/2)]
}

// releasedBy returns the index up to which a member has released the log.
func (l *leader) releasedBy(id uint64) uint64 {
	if id == l.id {
		if l.coded.dense() {
			return l.log.committed
		}
		return l.coded.released()
	}
	a, pr := l.coded.accounts[id], l.members.Progress[id]
	switch {
	case a == nil:
		return 0
	case a.known && !a.was && pr != nil:
		// It has no coded entry, and is sent none.
		return pr.Match
	}
	return a.released
}

// checkEntries adds the entries that fail to failing, and advances the check as
// far as none has.
func (l *leader) checkEntries(ents []*pb.Entry, failing []*record) []*record {
	check := &l.enc.check
	for _, e := range ents {
		env, err := l.coded.open(e)
		if err != nil {
			l.log.fail(err, "a committed entry")
			return failing
		}
		if env != nil && env.Kind == ecraft.Coded {
			hdr := env.Header
			rec := &record{id: idOf(e), hdr: &hdr, raised: check.raised[e.GetIndex()]}
			if !l.passes(rec, nobody) {
				if failing = append(failing, rec); len(failing) == ridersPerCarrier {
					return failing
				}
			}
		}
		if len(failing) == 0 {
			check.okTo = e.GetIndex()
			delete(check.raised, e.GetIndex())
		}
	}
	return failing
}

// passes reports whether any majority of the voters to come can decode a
// committed entry from what is durable there, and what will be at those in coming
// when they have acknowledged the whole log.
func (l *leader) passes(rec *record, coming func(id uint64) bool) bool {
	voters := l.enc.check.voters
	var buf [16]int
	held := buf[:0]
	for id := range voters {
		held = append(held, l.heldFor(rec, id, coming(id)))
	}
	return ecraft.Covered(rec.hdr.D, len(voters)/2+1, held)
}

// heldFor returns how much of a committed entry a member is known to hold: all
// if it has released it; else what the header assigns it, and riders in carriers
// of this leader that it was sent with the units; or, if all is to come, how much it
// will hold.
func (l *leader) heldFor(rec *record, id uint64, coming bool) int {
	if l.releasedBy(id) >= rec.id.index {
		return rec.hdr.D
	}
	pr := l.members.Progress[id]
	if pr == nil {
		return 0
	}
	match := pr.Match
	if coming {
		match = noLimit
	}
	sent := *rec
	sent.raised = slices.DeleteFunc(slices.Clone(rec.raised), func(ra raise) bool {
		return slices.Contains(ra.without, id)
	})
	return sent.holds(id, match, noLimit)
}

// wentWithout notes that a member is sent a carrier without its units of an entry.
func (check *memberCheck) wentWithout(carrier, index, member uint64) {
	for i := range check.raised[index] {
		if ra := &check.raised[index][i]; ra.at == carrier && !slices.Contains(ra.without, member) {
			ra.without = append(ra.without, member)
		}
	}
}

// raiseCommitted appends a carrier that brings committed entries to what the
// voters to come need, unless one is on its way.
func (l *leader) raiseCommitted(recs []*record) {
	check := &l.enc.check
	alive := func(id uint64) bool {
		_, voter := check.voters[id]
		return voter && (id == l.id || l.coded.healthy(id))
	}
	// A majority misses at most so many voters; the rest must do.
	n := len(check.voters)
	level := countIf(check.voters, alive) - (n - (n/2 + 1))
	if level < 1 {
		return
	}
	var late []rising
	beyond := false
	for _, rec := range recs {
		if n := len(rec.raised); n > 0 && rec.raised[n-1].at > l.log.committed || l.passes(rec, alive) {
			continue // not acknowledged by all yet: more of it would be of no use
		}
		if !slices.ContainsFunc(rec.hdr.Members, alive) {
			continue // those that are there hold it whole
		}
		word, err := l.riderWord(rec.id)
		if err != nil {
			beyond = beyond || l.coded.puller.IsStuck(coID(rec.id))
			if e, err := l.coded.entry(rec.id); err == nil {
				l.coded.wantAhead([]*pb.Entry{e})
			} else {
				l.coded.wantLost(rec)
			}
			continue
		}
		late = append(late, rising{rec: rec, word: word})
	}
	if beyond && l.coded.ticks-check.snapshotAt >= l.cfg.ElectionTick {
		check.snapshotAt = l.coded.ticks
		l.askRelease(recs[len(recs)-1].id.index)
	}
	if len(late) == 0 {
		return
	}
	l.appendCarriers(late, level, alive)
	for _, up := range late {
		rec := up.rec
		totals := make([]uint8, rec.hdr.Slots)
		for s, member := range rec.hdr.Members {
			if alive(member) {
				totals[s] = max(rec.hdr.Units[s], uint8(rec.hdr.UnitsAt(level)))
			}
		}
		check.raised[rec.id.index] = append(check.raised[rec.id.index], raise{at: up.at, totals: totals})
	}
	l.broadcastAppend()
}

// compactedPass checks entries that this node has compacted, up to index to, by
// the headers that others have, and raises those that fail as any other. Where
// nobody has headers or units it waits until enough have released the entries.
func (l *leader) compactedPass(to uint64) bool {
	check := &l.enc.check
	var failing []*record
	for i := check.okTo + 1; i <= min(to, check.headersTo) && len(failing) < ridersPerCarrier; i++ {
		if rec := check.headers[i]; rec != nil {
			if rec.raised = check.raised[i]; !l.passes(rec, nobody) {
				failing = append(failing, rec)
				continue
			}
		}
		if len(failing) == 0 {
			delete(check.headers, i)
			delete(check.raised, i)
			check.okTo = i
		}
	}
	if len(failing) > 0 {
		l.failed(failing)
		return false
	}
	if check.okTo >= to {
		return true
	}
	l.askHeaders(max(check.okTo, check.headersTo)+1, to)
	return false
}

// mayLeaveJoint reports whether the joint configuration in force may be left.
func (l *leader) mayLeaveJoint() bool {
	return l.coded == nil || l.mayBecome(l.members.Voters[0])
}

// mayAppend reports whether a configuration change may be appended now, as far
// as coded entries are concerned.
func (l *leader) mayAppend(cc *pb.ConfChangeV2) bool {
	if l.coded == nil {
		return true
	}
	if len(l.coded.pending.changes) > 0 {
		// Whom the one before it leads to is known when that is in force. And the
		// members of all that are not count, and one that joins may need a snapshot
		// that has it as a member: there is none before.
		return false
	}
	if !l.votersRead(cc) {
		return false
	}
	if _, joint := cc.EnterJoint(); joint {
		return true
	}
	if cc.LeaveJoint() {
		return l.mayLeaveJoint()
	}
	t := l.members
	t.Config, t.Progress = l.members.Clone(), cloneProgress(l.members.Progress)
	cfg, _, err := changed(t, cc)
	if err != nil || sameVoters(cfg.Voters[0], l.members.Voters[0]) {
		return true // it will be refused; or it is about learners
	}
	return l.mayBecome(cfg.Voters[0])
}

// postpones reports whether a proposal is a configuration change that must wait,
// for coverage or for the one before it; it is kept, and appended when it may be.
func (l *leader) postpones(ents []*pb.Entry) (bool, error) {
	if l.enc == nil {
		if refuseEnvelopes(ents) != nil {
			return false, fmt.Errorf("%w: %w", ErrProposalDropped, errReserved)
		}
		return false, nil
	}
	for i, e := range ents {
		if !isConfChange(e) {
			if l.coded.isReserved(e.GetType(), e.GetData()) && !l.everyoneReads() {
				return false, fmt.Errorf("%w: %w", ErrProposalDropped, errReserved)
			}
			continue
		}
		cc, err := decodeConfChange(e)
		waits := l.enc.waiting != nil || l.cfg.DisableConfChangeValidation && slices.ContainsFunc(ents[:i], isConfChange)
		if err != nil || l.objection(cc) != "" || !waits && l.mayAppend(cc) {
			continue
		}
		if len(ents) > 1 {
			return false, fmt.Errorf("%w: a configuration change must wait until the one before is in force and coded entries are safe under it; propose it by itself", ErrProposalDropped)
		}
		if l.enc.waiting != nil {
			return false, fmt.Errorf("%w: another configuration change waits until the one before is in force and coded entries are safe under it", ErrProposalDropped)
		}
		l.enc.waiting = copyEntry(e, entryID{})
		l.logger.Infof("raft: node %x has configuration change %s wait until the one before is in force and coded entries are safe under it", l.id, DescribeConfChange(cc))
		l.retryChange() // which asks those it is to wait for
		return true, nil
	}
	return false, nil
}

// retryChange appends the configuration change that waits, if it may be appended by
// now.
func (l *leader) retryChange() {
	if l.enc.waiting == nil {
		l.leaveJointIfDue()
		return
	}
	e := l.enc.waiting
	cc, err := decodeConfChange(e)
	if err != nil {
		return
	}
	instead := e
	if !l.mayAppend(cc) {
		if !l.givesUp(cc) {
			return
		}
		instead = &pb.Entry{Type: pb.EntryNormal.Enum()}
	}
	l.enc.waiting = nil
	if l.propose([]*pb.Entry{instead}) != nil {
		// A transfer is under way, say. It stays the next one: the host may have
		// found that others fit behind it.
		l.enc.waiting = e
		return
	}
	l.enc.call = rollCall{}
}
