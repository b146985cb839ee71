// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
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
//
// Another leader may commit the change, and does not check again. So the check is of all
// that any leader may know to be committed, which this leader does when entries of earlier
// terms are. And what passes must be so for good: riders count when their carrier is
// committed, as the next leader may put other entries into its place.

// memberCheck is the progress of the check for a change.
type memberCheck struct {
	*accounts
	// askedAt is the tick of the last question for headers.
	askedAt int
	checked
}

// checked is what a check of members has found.
type checked struct {
	// voters are the voters to come; nil without a check.
	voters quorum.MajorityConfig
	// okTo is the index up to which all entries pass. An entry that passes once passes
	// as long as the members are the same, because nothing committed, and stored by a
	// member, leaves its log before it is released, and nothing released comes back.
	okTo uint64
	// failedAt is the tick of the last failure, snapshotAt the tick of the last
	// question for a snapshot, reportsAt that of the last question for reports.
	failedAt, snapshotAt, reportsAt int
	// raisedTo is the last carrier for the entries that failed then, noLimit if none was
	// appended.
	raisedTo uint64
	// raised are riders in carriers appended for this check.
	raised map[uint64][]raise
	// headers are the headers of entries that are compacted here, from other members,
	// known up to headersTo.
	headers   map[uint64]*record
	headersTo uint64
}

// checkPage bounds how much of the log a check reads at a time.
const checkPage = 8 << 20

// errLater: the log was read in this tick, and no carrier has been committed since; or the
// host has compacted entries while they were read; or entries of earlier terms are not
// committed as far as this leader knows.
var errLater = errors.New("the log is to be looked at later")

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
	// err says that the log cannot be read, or is to be read later (errLater).
	err error
}

func (v verdict) ok() bool { return len(v.failing) == 0 && v.askFrom == 0 && v.err == nil }

// forget forgets what was found: the members are others now. One that left may come back, for the same voters, with
// another disk.
func (check *memberCheck) forget() { check.checked = checked{} }

// verdict checks whether voters to come can restore all committed entries. Entries that
// passed an earlier check for the same voters are not read again.
func (check *memberCheck) verdict(voters quorum.MajorityConfig) (v verdict) {
	known := &checked{}
	if sameVoters(check.voters, voters) {
		known = &check.checked
	}
	v.okTo = max(known.okTo, check.releasedByEnough(voters))
	if v.okTo >= check.ledger.spans.last() {
		return v // all entries behind are plain
	}
	if check.inherits() || known.failedAt == check.ticks && check.log.Committed() < known.raisedTo {
		v.err = errLater // nor is the log read for each proposal
		return v
	}
	first := check.log.First()
	check.verdictOfHeaders(&v, known, voters, first-1)
	for lo := max(v.okTo+1, first); v.ok() && lo <= check.log.Committed(); {
		ents, err := check.log.Slice(lo, check.log.Committed()+1, checkPage)
		if err != nil || len(ents) == 0 {
			v.err = errLater // other errors of the storage end this node by themselves
			return v
		}
		for _, e := range ents {
			if len(v.failing) == ridersPerCarrier {
				return v
			}
			check.verdictOfEntry(&v, known, voters, e)
		}
		lo += uint64(len(ents))
	}
	return v
}

// verdictOfHeaders looks at entries up to an index that this node has compacted, by the
// headers from other members. If no member has headers or units, the change waits until
// enough members have released the entries.
func (check *memberCheck) verdictOfHeaders(v *verdict, known *checked, voters quorum.MajorityConfig, to uint64) {
	for i := v.okTo + 1; i <= min(to, known.headersTo) && len(v.failing) < ridersPerCarrier; i++ {
		if rec := known.headers[i]; rec != nil {
			check.verdictOf(v, voters, &record{id: rec.id, hdr: rec.hdr, raised: known.raised[i]})
		} else if len(v.failing) == 0 {
			v.okTo = i
		}
	}
	if v.ok() && v.okTo < to {
		v.askFrom, v.askTo = max(v.okTo, known.headersTo)+1, to
	}
}

func (check *memberCheck) verdictOfEntry(v *verdict, known *checked, voters quorum.MajorityConfig, e *pb.Entry) {
	hdr, err := check.header(e)
	switch {
	case err != nil:
		v.err = err
	case hdr != nil && hdr.Kind == ecraft.Coded:
		check.verdictOf(v, voters, &record{id: idOf(e), hdr: hdr, raised: known.raised[e.GetIndex()]})
	case v.ok():
		v.okTo = e.GetIndex()
	}
}

// verdictOf looks at one coded entry.
func (check *memberCheck) verdictOf(v *verdict, voters quorum.MajorityConfig, rec *record) {
	switch {
	case !check.passes(rec, voters, nobody):
		v.failing = append(v.failing, rec)
	case len(v.failing) == 0:
		v.okTo = rec.id.Index
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
func (check *memberCheck) releasedByEnough(voters quorum.MajorityConfig) uint64 {
	n := len(voters)
	if n == 0 {
		return 0
	}
	released := make([]uint64, 0, n)
	for id := range voters {
		released = append(released, check.releasedBy(id))
	}
	slices.Sort(released)
	// A majority is n/2+1 of n, so any n - n/2 voters meet every majority.
	return released[n-(n-n/2)]
}

// passes reports whether any majority of voters can decode a committed entry from units
// that are durable there, or that will be at the members in coming when these have
// acknowledged the whole log.
func (check *memberCheck) passes(rec *record, voters quorum.MajorityConfig, coming func(id uint64) bool) bool {
	var buf [16]int
	held := buf[:0]
	for id := range voters {
		held = append(held, check.heldFor(rec, id, coming(id)))
	}
	return ecraft.Covered(rec.hdr.D, len(voters)/2+1, held)
}

// inherits reports whether this leader has entries of earlier terms that are not committed as
// far as it knows.
func (check *memberCheck) inherits() bool {
	next := check.log.Committed() + 1
	term, err := check.log.Term(next)
	return next <= check.log.Last().Index && (err != nil || term < check.raft.Term())
}

// heldFor returns how many units of a committed entry a member is known to hold: all if
// the member has released the entry; otherwise the units that the header assigns, and
// riders in committed carriers of this leader that were sent to the member with the units;
// or, with coming, the units that the member will hold.
func (check *memberCheck) heldFor(rec *record, id uint64, coming bool) int {
	if check.releasedBy(id) >= rec.id.Index {
		return rec.hdr.D
	}
	match, upTo := check.match(id), check.log.Committed()
	if coming && check.follows(id) {
		match, upTo = noLimit, noLimit
	}
	sent := *rec
	sent.raised = slices.DeleteFunc(slices.Clone(rec.raised), func(ra raise) bool {
		return slices.Contains(ra.without, id)
	})
	return sent.holds(id, match, upTo)
}

// wentWithout notes that a member is sent a carrier without the units of an entry.
func (check *memberCheck) wentWithout(carrier, index, member uint64) {
	for i := range check.raised[index] {
		if ra := &check.raised[index][i]; ra.at == carrier && !slices.Contains(ra.without, member) {
			ra.without = append(ra.without, member)
		}
	}
}

// A check of a change may concern entries compacted by this node. Other members
// have the headers.

// maxHeaders bounds the headers in an answer.
const maxHeaders = 512

// askHeaders asks one of the members with entries [from, to] of the log for the headers of the
// coded entries.
func (check *memberCheck) askHeaders(members []uint64, from, to uint64) {
	if check.askedAt == check.ticks {
		return
	}
	best, released := uint64(0), to
	for _, id := range members {
		if check.healthy(id) && check.of[id].capable && check.match(id) >= from && check.releasedBy(id) < from && check.releasedBy(id) < released {
			best, released = id, check.releasedBy(id)
		}
	}
	if best == 0 {
		return
	}
	check.askedAt = check.ticks
	m := check.unitsMessage(MsgUnitsAsk, best, forHeaderAsk)
	m.Index, m.Commit = &from, &to
	check.send(m)
}

// answerHeaders tells a leader the headers of the coded entries between the message's
// index and its commit index. The answer covers entries up to its commit index.
func (n *node) answerHeaders(m *pb.Message) {
	lo, hi := m.GetIndex(), min(m.GetCommit(), n.log.Committed())
	if lo < n.log.First() || lo > hi || m.GetLogTerm() != n.raft.Term() {
		return
	}
	ents, err := n.log.Slice(lo, hi+1, checkPage)
	if err != nil || len(ents) == 0 {
		return
	}
	e := n.unitsMessage(MsgUnits, m.GetFrom(), forHeaderAnswer)
	to := lo - 1
	for _, ent := range ents {
		if len(e.Entries) == maxHeaders {
			break
		}
		hdr, err := n.header(ent)
		if err != nil {
			n.fail(err, "a committed entry")
			return
		}
		if hdr != nil && hdr.Kind == ecraft.Coded {
			e.Entries = append(e.Entries, named(idOf(ent), ecraft.AppendHeader(nil, hdr)))
		}
		to = ent.GetIndex()
	}
	e.Index, e.Commit = &lo, &to
	n.send(e)
}

// headersArrived takes the answer.
func (check *memberCheck) headersArrived(m *pb.Message) error {
	from, to := max(check.okTo, check.headersTo)+1, check.log.First()-1 // what is asked for
	if check.voters == nil || m.GetLogTerm() != check.raft.Term() || m.GetIndex() != from || m.GetCommit() < from || m.GetCommit() > to {
		return nil // late
	}
	if n := len(m.GetEntries()); n > maxHeaders {
		return fmt.Errorf("%d headers from %x; at most %d can be", n, m.GetFrom(), maxHeaders)
	}
	for _, e := range m.GetEntries() {
		hdr, _, err := ecraft.ParseHeader(e.GetData(), 0)
		if err == nil && (hdr.Kind != ecraft.Coded || e.GetIndex() < m.GetIndex() || e.GetIndex() > m.GetCommit()) {
			err = fmt.Errorf("it is of kind %s, in an answer for [%d, %d]", hdr.Kind, m.GetIndex(), m.GetCommit())
		}
		if err != nil {
			return fmt.Errorf("header of %d/%d from %x: %w", e.GetTerm(), e.GetIndex(), m.GetFrom(), err)
		}
		check.headers[e.GetIndex()] = &record{id: idOf(e), hdr: hdr}
	}
	check.headersTo = m.GetCommit()
	return nil
}
