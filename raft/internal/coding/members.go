// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Configuration changes. Entries committed from now on satisfy the commit rule of the
// configuration in force, which covers a configuration one step away. Entries committed
// earlier may not: entries coded for five members, of which three decode, are not safe
// with a majority of three. So before a simple change is appended, and before a joint
// configuration is left, every committed coded entry must be decodable by any majority
// of the voters to come, or released by enough of them. Entering a joint configuration
// needs no check: its old half protects.
//
// If an entry fails the check, the leader raises the entry by riders; if the leader
// cannot, the change waits for members to release the entry.

// memberCheck is the progress of the check for a change.
type memberCheck struct {
	// voters are the voters to come; nil without a check.
	voters quorum.MajorityConfig
	// okTo is the index up to which all entries pass. An entry that passes once passes
	// for good, because logs grow and nothing released comes back.
	okTo uint64
	// failedAt is the tick of the last failure, snapshotAt the tick of the last
	// question for a snapshot.
	failedAt, snapshotAt int
	// raised are riders in carriers appended for this check.
	raised map[uint64][]raise
	// headers are the headers of entries that are compacted here, from other members,
	// known up to headersTo.
	headers   map[uint64]*record
	headersTo uint64
}

// checkPage bounds how much of the log a check reads at a time.
const checkPage = 8 << 20

// MayChange returns why a change of members must not be appended now, or nil. No change is
// pending: (1) until then the voters to which this change leads are not known, (2) every
// unapplied configuration must agree to commits, so each further one makes commits harder,
// and (3) a new voter may need a snapshot that lists it as a member, and none exists before.
func (c *Coder) MayChange(change *extend.Change) error {
	switch l := c.leads; {
	case !l.votersRead(change.New):
		return l.unread(change.New)
	case change.To != nil && !l.verdict(change.To).ok():
		return errUncovered
	}
	return nil
}

// errUncovered refuses a change under which a majority could not decode a committed entry.
var errUncovered = errors.New("coded entries that are committed are not safe under it yet")

// verdict is the result of a check of members.
type verdict struct {
	// okTo is the index up to which all entries pass, failing are the first entries
	// that do not.
	okTo    uint64
	failing []*record
	// askFrom is the first of the entries up to askTo that are compacted here and
	// whose headers others must tell; 0: none.
	askFrom, askTo uint64
	// err says that the log cannot be read.
	err error
}

func (v verdict) ok() bool { return len(v.failing) == 0 && v.askFrom == 0 && v.err == nil }

// verdict checks whether voters to come can restore all committed entries. Entries that
// passed an earlier check for the same voters are not read again.
func (l *leading) verdict(voters quorum.MajorityConfig) (v verdict) {
	check := &memberCheck{}
	if sameVoters(l.check.voters, voters) {
		check = &l.check
	}
	v.okTo = max(check.okTo, l.releasedByEnough(voters))
	if v.okTo >= l.spans.last() {
		return v // all entries behind are plain
	}
	first := l.log.First()
	l.verdictOfHeaders(&v, check, voters, first-1)
	for lo := max(v.okTo+1, first); v.ok() && lo <= l.log.Committed(); {
		ents, err := l.log.Slice(lo, l.log.Committed()+1, checkPage)
		if v.err = err; err != nil || len(ents) == 0 {
			v.err = errNone
			return v
		}
		for _, e := range ents {
			l.verdictOfEntry(&v, check, voters, e)
		}
		lo += uint64(len(ents))
	}
	return v
}

// verdictOfHeaders looks at entries up to an index that this node has compacted, by the
// headers from other members. If no member has headers or units, the change waits until
// enough members have released the entries.
func (l *leading) verdictOfHeaders(v *verdict, check *memberCheck, voters quorum.MajorityConfig, to uint64) {
	for i := v.okTo + 1; i <= min(to, check.headersTo); i++ {
		if rec := check.headers[i]; rec != nil {
			l.verdictOf(v, voters, &record{id: rec.id, hdr: rec.hdr, raised: check.raised[i]})
		} else if len(v.failing) == 0 {
			v.okTo = i
		}
	}
	if v.ok() && v.okTo < to {
		v.askFrom, v.askTo = max(v.okTo, check.headersTo)+1, to
	}
}

func (l *leading) verdictOfEntry(v *verdict, check *memberCheck, voters quorum.MajorityConfig, e *pb.Entry) {
	env, err := l.open(e)
	switch {
	case err != nil:
		v.err = err
	case env != nil && env.Kind == ecraft.Coded:
		l.verdictOf(v, voters, &record{id: idOf(e), hdr: &env.Header, raised: check.raised[e.GetIndex()]})
	case v.ok():
		v.okTo = e.GetIndex()
	}
}

// verdictOf looks at one coded entry.
func (l *leading) verdictOf(v *verdict, voters quorum.MajorityConfig, rec *record) {
	switch {
	case len(v.failing) == ridersPerCarrier:
	case !l.passes(rec, voters, nobody):
		v.failing = append(v.failing, rec)
	case len(v.failing) == 0:
		v.okTo = rec.id.Index
	}
}

// workOnChange works for a change of members that waits: failing entries are raised,
// and headers of compacted entries asked for.
func (l *leading) workOnChange() {
	change := l.raft.Held()
	l.callVoters(change)
	if change == nil || change.To == nil {
		return
	}
	voters, check := change.To, &l.check
	if !sameVoters(check.voters, voters) {
		*check = memberCheck{voters: voters, raised: map[uint64][]raise{}, headers: map[uint64]*record{}}
	}
	v := l.verdict(voters)
	check.okTo = v.okTo
	// Perhaps no member can restore these any more: they are not tried again.
	maps.DeleteFunc(check.headers, func(i uint64, _ *record) bool { return i <= v.okTo })
	maps.DeleteFunc(check.raised, func(i uint64, _ []raise) bool { return i <= v.okTo })
	switch {
	case v.err != nil:
		l.fail(v.err, "a committed entry")
	case len(v.failing) > 0:
		check.failedAt = l.ticks
		l.emit(Event{Kind: Checked, Index: v.failing[0].id.Index, Count: len(v.failing)})
		l.raiseCommitted(v.failing)
	case v.askFrom > 0:
		l.askHeaders(v.askFrom, v.askTo)
	}
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

// releasedByEnough returns the highest index such that each majority has a voter whose
// log is released up to there.
func (l *leading) releasedByEnough(voters quorum.MajorityConfig) uint64 {
	n := len(voters)
	if n == 0 {
		return 0
	}
	released := make([]uint64, 0, n)
	for id := range voters {
		released = append(released, l.releasedBy(id))
	}
	slices.Sort(released)
	// A majority is n/2+1 of n, so any n - n/2 voters meet every majority.
	return released[n-(n-n/2)]
}

// releasedBy returns the index up to which a member has released the log.
func (l *leading) releasedBy(id uint64) uint64 {
	if id == l.id {
		if l.dense() {
			return l.log.Committed()
		}
		return l.released()
	}
	a := l.accounts[id]
	pr, follows := l.raft.Progress(id)
	switch {
	case a == nil:
		return 0
	case a.known && !a.wasCapable && follows:
		// The member has no coded entry, and is sent none.
		return pr.Match
	}
	return a.released
}

// passes reports whether any majority of voters can decode a committed entry from units
// that are durable there, or that will be at the members in coming when these have
// acknowledged the whole log.
func (l *leading) passes(rec *record, voters quorum.MajorityConfig, coming func(id uint64) bool) bool {
	var buf [16]int
	held := buf[:0]
	for id := range voters {
		held = append(held, l.heldFor(rec, id, coming(id)))
	}
	return ecraft.Covered(rec.hdr.D, len(voters)/2+1, held)
}

// heldFor returns how many units of a committed entry a member is known to hold: all if
// the member has released the entry; otherwise the units that the header assigns, and
// riders in carriers of this leader that were sent to the member with the units; or,
// with coming, the units that the member will hold.
func (l *leading) heldFor(rec *record, id uint64, coming bool) int {
	if l.releasedBy(id) >= rec.id.Index {
		return rec.hdr.D
	}
	match := l.match(id)
	if coming && l.follows(id) {
		match = noLimit
	}
	sent := *rec
	sent.raised = slices.DeleteFunc(slices.Clone(rec.raised), func(ra raise) bool {
		return slices.Contains(ra.without, id)
	})
	return sent.holds(id, match, noLimit)
}

// wentWithout notes that a member is sent a carrier without the units of an entry.
func (check *memberCheck) wentWithout(carrier, index, member uint64) {
	for i := range check.raised[index] {
		if ra := &check.raised[index][i]; ra.at == carrier && !slices.Contains(ra.without, member) {
			ra.without = append(ra.without, member)
		}
	}
}

// raiseCommitted appends a carrier with the units of committed entries that the voters
// to come need, unless a carrier is on its way.
func (l *leading) raiseCommitted(recs []*record) {
	check := &l.check
	alive := func(id uint64) bool {
		_, voter := check.voters[id]
		return voter && (id == l.id || l.healthy(id))
	}
	// A majority misses at most so many voters; the others must suffice.
	n := len(check.voters)
	level := countIf(check.voters, alive) - (n - (n/2 + 1))
	if level < 1 || len(l.made) > 0 {
		return
	}
	var late []rising
	beyond := false
	for _, rec := range recs {
		if n := len(rec.raised); n > 0 && rec.raised[n-1].at > l.log.Committed() || l.passes(rec, check.voters, alive) {
			continue // not acknowledged by all yet: another carrier would be of no use
		}
		if !slices.ContainsFunc(rec.hdr.Members, alive) {
			continue // the members that are alive hold the payload
		}
		word, err := l.riderWord(rec.id)
		if err != nil {
			beyond = beyond || l.puller.IsStuck(rec.id)
			if e, err := l.entry(rec.id); err == nil {
				l.wantAhead([]*pb.Entry{e})
			} else {
				l.wantLost(rec)
			}
			continue
		}
		late = append(late, rising{rec: rec, word: word})
	}
	if beyond && l.ticks-check.snapshotAt >= l.cfg.ElectionTick {
		check.snapshotAt = l.ticks
		l.askRelease(recs[len(recs)-1].id.Index)
	}
	if len(late) == 0 {
		return
	}
	voters := check.voters
	l.appendCarriers(late, level, alive, func(rec *record, at uint64) {
		if !sameVoters(voters, l.check.voters) {
			return // another change waits since
		}
		totals := make([]uint8, rec.hdr.Slots)
		for s, member := range rec.hdr.Members {
			if alive(member) {
				totals[s] = max(rec.hdr.Units[s], uint8(rec.hdr.UnitsAt(level)))
			}
		}
		check.raised[rec.id.Index] = append(check.raised[rec.id.Index], raise{at: at, totals: totals})
	})
	l.Ask(extend.Effect{Do: extend.Spread})
}

// Switched hears that another configuration is in force; before are the members until
// now.
func (c *Coder) Switched(before tracker.ProgressMap) {
	// A joining node may be another than the former owner of its id, whatever the log
	// says of the id.
	maps.DeleteFunc(c.accounts, func(id uint64, _ *account) bool {
		return before[id] == nil || !c.follows(id)
	})
	c.puller.SetMembers(c.raft.Electorate().Everyone())
	c.VotersChanged()
}

// VotersChanged hears that other voters count: entries must be covered anew, and a
// leader has other followers.
func (c *Coder) VotersChanged() {
	c.uncover()
	if c.leads != nil {
		c.leads.arrangeSlots()
	}
}

// uncover forgets which entries satisfy the commit rule.
func (c *Coder) uncover() {
	for _, rec := range c.ledger.recs {
		rec.covered = false
	}
}

// MayCampaign reports whether this node may campaign although it has not applied a
// committed configuration, because a payload before the configuration is lacking here.
// With the longest log the node may be the only possible winner, and a leader can ask
// for the payload.
func (c *Coder) MayCampaign() bool {
	rec := c.incomplete()
	return rec != nil && rec.id.Index < c.raft.Electorate().FirstPending()
}
