// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft/internal/extend"
)

// recovery is the work of the winner of an election that lacks payloads behind its
// commit index. The winner does not lead yet: it appends nothing, and its host sees a
// candidate. First the winner asks every member, learners too, for their units, in the
// new term. A member that answers has moved to that term durably, so the member can
// acknowledge nothing to an older leader any more; and the answer says how far the
// member knows the log to be committed.
//
// Then for each entry, in order: the entry is completed from the answers; or a
// majority has answered and the entry cannot be completed. In the second case the entry
// is not committed, because any majority can decode a committed entry; and the entry
// never will be, because this majority now refuses older terms. The log is cut there,
// once, before anything is appended.
//
// Usually pushes have brought all payloads in time, and the winner leads at once.
type recovery struct {
	*payloads
	// answers are the members that have answered, by index of the entry.
	answers map[uint64]map[uint64]bool
	// said are the members that have answered at all, or do not code: they have no units, and
	// tell no commit index.
	//
	// Invariant: this node is among them, and each member in answers.
	said map[uint64]bool
	// asked is the tick of the last question to each member that has not answered
	// since.
	asked map[uint64]int
	// sinceAsk counts ticks since the last question, taken since the first.
	sinceAsk, taken int
}

// recover begins a recovery.
func (p *payloads) recover(all *accounts) *recovery {
	rc := &recovery{payloads: p, answers: map[uint64]map[uint64]bool{}, said: map[uint64]bool{p.id: true}, asked: map[uint64]int{}}
	for id, a := range all.of {
		if a.votedPlain {
			rc.said[id] = true
		}
	}
	p.pinTail()
	p.emit(Event{Kind: Recovery, Index: p.log.Committed() + 1, Count: len(p.lackingTail())})
	rc.ask()
	return rc
}

// recovered reports whether the winner of an election may lead, and the index from
// which on its log is to be cut before; 0: nowhere.
func (rc *recovery) recovered() (cut uint64, done bool) {
	e := rc.raft.Electorate()
	if e.Torn() && !agree(e, rc.said) {
		return 0, false
	}
	if lacking := rc.lackingTail(); len(lacking) > 0 {
		first := lacking[0].id
		if !agree(e, rc.answers[first.Index]) {
			return 0, false
		}
		cut = first.Index
	}
	return cut, true
}

// agree reports whether a majority of each set of voters is among some members.
func agree(e extend.Electorate, members map[uint64]bool) bool {
	for _, v := range e.Sets() {
		if len(v) > 0 && countIf(v, func(id uint64) bool { return members[id] }) <= len(v)/2 {
			return false
		}
	}
	return true
}

// maxRecovered bounds the entries in one question.
const maxRecovered = 256

// ask asks every member for the lacking units. A member asked within the last two
// heartbeats may be about to answer, and gets a question without entries, which keeps
// the member from campaigning.
func (rc *recovery) ask() {
	rc.sinceAsk = 0
	lacking := rc.lackingTail()
	if len(lacking) > 0 && rc.expectPinned(lacking[0]) {
		rc.answersFor(lacking[0]) // where this node alone is a majority, nobody else need answer
	}
	for _, to := range rc.raft.Electorate().Everyone() {
		if to == rc.id {
			continue
		}
		var ents []*pb.Entry
		if at, asked := rc.asked[to]; !asked || rc.taken-at > 2*rc.cfg.HeartbeatTick {
			ents = rc.questions(to, lacking)
		}
		rc.askFor(to, ents)
	}
}

// questions returns the entries that a member has not answered for.
func (rc *recovery) questions(to uint64, lacking []*record) (ents []*pb.Entry) {
	for _, rec := range lacking {
		if rc.answers[rec.id.Index][to] || !rc.expectPinned(rec) {
			continue
		}
		// The question is for all of a member's units beside the units of this node's
		// log, and not for as many units as are lacking. Otherwise the answer might
		// repeat units that are here or will be dropped, and the log would be cut.
		own := 0
		if !rec.damaged {
			own = rec.hdr.BaseOf(rc.id)
		}
		ents = append(ents, named(rec.id, gossip.AppendAsk(nil, gossip.Want{ID: rec.id, Need: rec.hdr.D, OwnHeld: own})))
		if len(ents) == maxRecovered {
			break
		}
	}
	return ents
}

// answersFor returns the members that have answered for an entry, this node included
// unless its log has lost units.
func (rc *recovery) answersFor(rec *record) map[uint64]bool {
	answers := rc.answers[rec.id.Index]
	if answers == nil {
		answers = map[uint64]bool{rc.id: !rec.damaged}
		rc.answers[rec.id.Index] = answers
	}
	return answers
}

func (rc *recovery) askFor(to uint64, ents []*pb.Entry) {
	m := rc.unitsMessage(MsgUnitsAsk, to, forRecover)
	m.Index, m.Entries = new(rc.log.Last().Index), ents
	if len(ents) > 0 {
		rc.asked[to] = rc.taken
	}
	rc.send(m)
}

func (rc *recovery) tick() {
	rc.taken++
	if rc.sinceAsk++; rc.sinceAsk >= rc.cfg.HeartbeatTick {
		rc.ask()
	}
}

// answered takes an answer of a member.
func (rc *recovery) answered(m *pb.Message) error {
	if m.GetLogTerm() != rc.raft.Term() {
		return nil // the answer to a question of an earlier term
	}
	from, last := m.GetFrom(), rc.log.Last().Index
	if m.GetCommit() > last {
		rc.emit(Event{Kind: Rejected, Index: m.GetCommit(), Peer: from})
		return fmt.Errorf("%x knows index %d to be committed, but the log of %x, which won term %d, ends at %d",
			from, m.GetCommit(), rc.id, rc.raft.Term(), last)
	}
	rc.learn(m.GetCommit())
	rc.said[from] = true
	news := false
	var refused error
	for _, e := range m.GetEntries() {
		rec := rc.ledger.find(e.GetIndex())
		if rec == nil || rec.id != idOf(e) {
			continue // committed and applied meanwhile
		}
		delete(rc.asked, from)
		if err := rc.take(from, e); err != nil {
			refused = err // and no answer: the damaged units may be needed
			continue
		}
		answers := rc.answersFor(rec)
		news = news || !answers[from]
		answers[from] = true
	}
	if _, done := rc.recovered(); news && !done {
		rc.Ask(extend.Effect{Do: extend.Bear})
		if ents := rc.questions(from, rc.lackingTail()); len(ents) > 0 {
			rc.askFor(from, ents)
		}
	}
	return refused
}

// take takes the units of one entry. If they show that units of answers were wrong, the
// answers count no more, because their units are dropped.
func (rc *recovery) take(from uint64, e *pb.Entry) error {
	err := rc.payloads.take(from, e)
	if errors.Is(err, gossip.ErrWrongPayload) {
		delete(rc.answers, e.GetIndex())
	}
	return err
}

// learn has the log be committed up to an index that another node knows to be
// committed.
func (rc *recovery) learn(index uint64) {
	if index <= rc.log.Committed() {
		return
	}
	if term, err := rc.log.Term(index); err == nil {
		rc.Ask(extend.Effect{Do: extend.Commit, ID: ecraft.ID{Term: term, Index: index}})
	}
}
