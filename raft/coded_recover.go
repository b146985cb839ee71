// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/gossip"
)

// recoverer has won an election, and has entries behind its commit index whose
// payloads it lacks. It does not lead yet: it appends nothing, and its host sees
// a candidate. First it asks everybody, learners too, for their units, in its
// new term. Who answers has moved to that term durably, so it can acknowledge
// nothing to an older leader any more; and it says how far it knows the log to
// be committed.
//
// Then for each entry, in order: it is completed from the answers; or a majority
// has answered and it cannot be completed. Then no leader has committed it, or
// that majority could decode it, nor can one any more. The log is cut there,
// once, before anything is appended.
//
// With push gossip the winner has usually completed everything in time, and
// leads at once.
type recoverer struct {
	*raft
	// answers are the members that have answered, by index of the entry.
	answers map[uint64]map[uint64]bool
	// heard are the members that have answered at all.
	heard map[uint64]bool
	// asked is when those were asked, by tick, that have not answered since.
	asked map[uint64]int
	// sinceAsk counts ticks since the last question, ticks since the first.
	sinceAsk, ticks int
}

func (rc *recoverer) state() StateType { return StateCandidate }

// win begins the leadership of a term, or what must come before it.
func (r *raft) win() {
	c := r.coded
	if c == nil || !c.mustRecover() {
		r.becomeLeader()
		return
	}
	rc := &recoverer{raft: r, answers: map[uint64]map[uint64]bool{}, heard: map[uint64]bool{r.id: true}, asked: map[uint64]int{}}
	r.enter(rc, r.term, None)
	lacking := rc.lacking()
	for _, rec := range lacking {
		c.store.Forgive(coID(rec.id)) // all are asked anew, and old lies must not keep it from cutting
	}
	n := len(lacking)
	r.logger.Infof("raft: node %x has won term %d and lacks the payloads of %d entries behind its commit index %d", r.id, r.term, n, r.log.committed)
	c.record(CodingEvent{Kind: CodingRecovery, Index: r.log.committed + 1, Count: n})
	rc.ask()
	rc.proceed() // who is alone has heard from everybody
}

// mustRecover reports whether a payload behind the commit index is lacking, or
// more than one configuration is: then it is best to learn the commit index.
func (c *coded) mustRecover() bool {
	if len(c.r.electorate.coming) > 0 {
		return true
	}
	g := &c.ledger
	for _, rec := range g.recs[g.at(c.r.log.committed+1):] {
		if !c.secured(rec) {
			return true
		}
	}
	return false
}

// secured reports whether the payload of an entry is here, and keeps it here.
func (c *coded) secured(rec *record) bool {
	if rec.complete {
		if _, err := c.payload(rec); err == nil {
			c.pin(rec)
			return true
		}
	}
	return false
}

// lacking returns the entries behind the commit index that are not complete.
func (rc *recoverer) lacking() (out []*record) {
	g := &rc.coded.ledger
	for _, rec := range g.recs[g.at(rc.log.committed+1):] {
		if !rc.coded.secured(rec) {
			out = append(out, rec)
		}
	}
	return out
}

// maxRecovered bounds the entries in one question.
const maxRecovered = 256

// ask asks every member for what is lacking. One that was asked within two heartbeats
// may be about to answer, and only hears that it is waited for.
func (rc *recoverer) ask() {
	rc.sinceAsk = 0
	lacking := rc.lacking()
	for _, to := range rc.electorate.everyone() {
		if to == rc.id {
			continue
		}
		var ents []*pb.Entry
		if at, asked := rc.asked[to]; !asked || rc.ticks-at > 2*rc.cfg.HeartbeatTick {
			ents = rc.questions(to, lacking)
		}
		rc.askFor(to, ents)
	}
}

// questions returns what a member is to be asked: the entries that it has not
// answered for, and those of which answers were dropped since somebody lied.
func (rc *recoverer) questions(to uint64, lacking []*record) (ents []*pb.Entry) {
	c := rc.coded
	for _, rec := range lacking {
		id := coID(rec.id)
		if rc.answers[rec.id.index][to] && !c.store.Doubted(id) || !c.expectPinned(rec) {
			continue
		}
		// For all that a member holds, and not for as many units as are lacking:
		// those might be ones that are here already, and the log would be cut.
		_, own := c.store.Missing(id)
		ents = append(ents, unitsEntry(rec.id, gossip.AppendAsk(nil, gossip.Want{ID: id, Need: rec.hdr.D, OwnHeld: own})))
		if len(ents) == maxRecovered {
			break
		}
	}
	return ents
}

func (rc *recoverer) askFor(to uint64, ents []*pb.Entry) {
	e := rc.coded.unitsMessage(MsgUnitsAsk, to, forRecover).withIndex(rc.log.last().index)
	e.msg.Entries = ents
	if len(ents) > 0 {
		rc.asked[to] = rc.ticks
	}
	rc.send(e)
}

func (rc *recoverer) tick() {
	rc.ticks++
	if rc.quietTicks++; rc.quietTicks >= rc.patience {
		// Too few answer. Let somebody else try.
		rc.logger.Warningf("raft: node %x gives up term %d: too few members answered for it to complete its log", rc.id, rc.term)
		rc.becomeFollower(rc.term, None)
		return
	}
	if rc.sinceAsk++; rc.sinceAsk >= rc.cfg.HeartbeatTick {
		rc.ask()
	}
}

func (rc *recoverer) step(m *pb.Message) error {
	if m.GetType() == pb.MsgProp {
		return ErrProposalDropped
	}
	return nil
}

// stepRecoveryAsk answers the winner of an election.
func (c *coded) stepRecoveryAsk(m *pb.Message) error {
	r := c.r
	term := m.GetLogTerm()
	switch {
	case term > maxTerm:
		return fmt.Errorf("%w: question from %x has term %d; at most %d can be", ErrMalformedMessage, m.GetFrom(), term, uint64(maxTerm))
	case term < r.term:
		r.vouch(r.appendResp(m.GetFrom())) // shows it the later term
		return nil
	case term > r.term:
		r.becomeFollower(term, m.GetFrom())
	default:
		if f, ok := r.role.(*follower); ok {
			f.hearFrom(m)
		} else if _, ok := r.role.(*candidate); ok {
			r.becomeFollower(term, m.GetFrom())
		} else {
			return fmt.Errorf("%w: %x claims to have won term %d, which this node leads", ErrMalformedMessage, m.GetFrom(), term)
		}
	}
	c.heard(m.GetFrom())
	e := c.unitsMessage(MsgUnits, m.GetFrom(), forRecover).withIndex(r.log.last().index)
	if err := c.answer(e, m); err != nil {
		return err
	}
	if r.log.err == nil { // else it may have less than it should
		r.vouch(e)
	}
	return nil
}

// answered takes an answer of a member.
func (rc *recoverer) answered(m *pb.Message) error {
	c := rc.coded
	if m.GetLogTerm() != rc.term {
		return nil // to a question of an earlier term
	}
	if last := rc.log.last().index; m.GetCommit() > last {
		c.record(CodingEvent{Kind: CodingRejected, Index: m.GetCommit(), Peer: m.GetFrom()})
		err := fmt.Errorf("%w: %x knows index %d to be committed, but the log of %x, which won term %d, ends at %d",
			ErrMalformedMessage, m.GetFrom(), m.GetCommit(), rc.id, rc.term, last)
		rc.logger.Error(err)
		return err
	}
	rc.log.commitTo(m.GetCommit())
	from, news := m.GetFrom(), false
	rc.heard[from] = true
	var refused error
	for _, e := range m.GetEntries() {
		rec := c.ledger.find(e.GetIndex())
		if rec == nil || rec.id != idOf(e) {
			continue // committed and applied meanwhile
		}
		delete(rc.asked, from)
		if _, err := c.stepUnitsOf(from, e); err != nil {
			refused = err // and it counts as no answer: others may have what it corrupts
			continue
		}
		if rc.answers[e.GetIndex()] == nil {
			rc.answers[e.GetIndex()] = map[uint64]bool{rc.id: !rec.damaged}
		}
		news = news || !rc.answers[e.GetIndex()][from]
		rc.answers[e.GetIndex()][from] = true
	}
	rc.proceed()
	if news && rc.role == role(rc) {
		rc.quietTicks = 0 // it gets on
		if ents := rc.questions(from, rc.lacking()); len(ents) > 0 {
			rc.askFor(from, ents)
		}
	}
	return refused
}

// proceed leads as soon as everything behind the commit index is complete, or
// cut.
func (rc *recoverer) proceed() {
	if rc.role != role(rc) {
		return
	}
	if len(rc.electorate.coming) > 0 && !rc.electorate.answered(rc.heard) {
		return
	}
	if lacking := rc.lacking(); len(lacking) > 0 {
		first := lacking[0].id.index
		if !rc.electorate.answered(rc.answers[first]) || rc.coded.store.Doubted(coID(lacking[0].id)) {
			return // or what is not to be restored may be the truth of those who lied
		}
		rc.cut(first)
	}
	if !rc.promotable() {
		// It learnt meanwhile that it is no voter any more.
		rc.becomeFollower(rc.term, None)
		return
	}
	rc.coded.record(CodingEvent{Kind: CodingRecovered, Count: rc.ticks})
	rc.becomeLeader()
}

// cut drops the log from index on.
func (rc *recoverer) cut(index uint64) {
	last := rc.log.last().index
	term, err := rc.log.term(index - 1)
	if err != nil {
		rc.log.fail(err, "the entry before %d, where the log is cut", index)
		return
	}
	rc.logger.Warningf("raft: node %x cuts its log behind %d at term %d: entries up to %d were not committed, and are not to be restored", rc.id, index-1, rc.term, last)
	rc.coded.record(CodingEvent{Kind: CodingCut, Index: index, Count: int(last - index + 1)})
	rc.coded.dropFrom(index)
	rc.log.tail.append(entryID{term: term, index: index - 1}, nil)
}

// takeOver appends the first entries of a leader's term: an empty one, or
// carriers that bring the entries of earlier terms behind the commit index to
// what the members that are alive need to commit them.
func (l *leader) takeOver() {
	c := l.coded
	former := c.former
	alive := func(id uint64) bool {
		return id == l.id || id != former || c.healthy(id)
	}
	if n := l.raise(alive); n > 0 {
		c.record(CodingEvent{Kind: CodingFallback, Index: l.log.committed + 1, Count: n})
		return
	}
	l.append(copyEntry(&pb.Entry{}, entryID{term: l.term, index: l.log.last().index + 1}))
}
