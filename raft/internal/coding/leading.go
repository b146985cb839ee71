// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// leading is the state of a leader that codes: slots, and entries on their way. The
// state begins and ends with the leadership.
type leading struct {
	*Coder
	// members are the followers by slot, voters first, then learners, in order
	// of id; round has them in the policy's form. Both are made anew when the
	// configuration changes, and not changed: headers share members.
	//
	// Invariant: each is a follower of now, and the policy sees as many.
	members []uint64
	round   ecraft.Round
	units   []int

	// blocked are members that wait for entries this leader must complete.
	blocked map[uint64]bool
	// lagging is since when members catch up.
	lagging map[uint64]time.Duration
	check   memberCheck
	// call is the answers of voters to come, while a change waits for them.
	call rollCall
	// anewFrom is the entry from which on acknowledgements count as reports.
	anewFrom uint64
	// askedHeaders is the tick of the last question for headers.
	askedHeaders int
	// hedgeNext is when to look for late entries, by the clock; 0: there is no
	// entry with a timer.
	hedgeNext time.Duration
	// credit is what hedges may still send, in bytes.
	credit int
	// stuck is how many ticks a member has been stuck.
	stuck map[uint64]int
	// first is the index of the first entry of this term, sentTo the highest index sent
	// to a member in this term.
	//
	// Invariant: neither falls, whatever becomes of the messages.
	first  uint64
	sentTo map[uint64]uint64
	// made are the entries that this leader has asked for, or sealed.
	//
	// Invariant: empty after each call, because effects are carried out.
	made []made
	// saved is by how much shorter the host makes the next append.
	saved int
}

// begin begins a leadership.
func (c *Coder) begin() {
	c.leads = &leading{Coder: c, blocked: map[uint64]bool{}, lagging: map[uint64]time.Duration{}, stuck: map[uint64]int{},
		first: c.log.Last().Index + 1, sentTo: map[uint64]uint64{}}
	if o := c.leads.observer(); o != nil {
		o.Reset(c.now())
	}
	c.leads.arrangeSlots()
}

// made is an entry of this leader that is not in the log yet. Where the entry will stand, only
// the log knows: another may be appended first.
type made struct {
	ent *pb.Entry
	// rec is the record of a coded entry, nil for others; stands, if set, hears where the
	// entry stands.
	rec    *record
	stands func(id ecraft.ID)
}

// append asks for an entry, and has stands hear where it stands.
func (l *leading) append(data []byte, stands func(id ecraft.ID)) {
	e := &pb.Entry{Term: new(l.raft.Term()), Type: pb.EntryNormal.Enum(), Data: data}
	l.made = append(l.made, made{ent: e, stands: stands})
	l.Ask(extend.Effect{Do: extend.Append, Ent: e})
}

// appended notes where this leader's own entries stand.
func (l *leading) appended(ents []*pb.Entry) {
	for _, e := range ents {
		i := slices.IndexFunc(l.made, func(m made) bool { return m.ent == e })
		if i < 0 {
			continue // plain
		}
		m, id := l.made[i], idOf(e)
		if i == 0 {
			l.made = l.made[1:]
		} else {
			l.made = slices.Delete(l.made, i, i+1)
		}
		if m.rec != nil {
			m.rec.id = id
			l.ledger.add(m.rec)
			l.ledger.keep(m.rec, m.rec.word)
			l.spans.add(id.Index)
		}
		if m.stands != nil {
			m.stands(id)
		}
	}
	l.ledger.trim(l.cfg.Memory)
}

// tick lets a tick pass.
func (l *leading) tick() {
	l.hedge()
	l.unblock()
	l.serveStuck()
	l.handOverIfStuck()
	l.readyTransferee()
	l.workOnChange()
}

// unblock sends live members the entries that can be made by now.
func (l *leading) unblock() {
	for _, id := range l.members {
		if l.healthy(id) {
			l.unblockOne(id)
		}
	}
}

func (l *leading) unblockOne(id uint64) {
	if l.blocked[id] {
		l.Ask(extend.Effect{Do: extend.Resend, To: id})
	}
}

// arrangeSlots gives each follower its slot, for entries from now on.
func (l *leading) arrangeSlots() {
	was := l.members
	l.members = nil
	var learners []uint64
	for _, id := range l.raft.Electorate().Everyone() {
		switch pr, follows := l.raft.Progress(id); {
		case !follows || id == l.id:
		case pr.IsLearner:
			learners = append(learners, id)
		default:
			l.members = append(l.members, id)
		}
	}
	voters := len(l.members)
	l.members = append(l.members, learners...)
	l.units = make([]int, len(l.members))
	// In a joint configuration each half must be able to decode: the smaller
	// one sets the level.
	smallest := l.raft.Electorate().Smallest()
	l.round = ecraft.Round{
		Voters:    smallest,
		Layout:    ecraft.NewLayout(smallest, len(l.members)),
		Followers: make([]ecraft.Member, len(l.members)),
	}
	for i, id := range l.members {
		l.round.Followers[i] = ecraft.Member{ID: id, Voter: i < voters}
	}
	if o := l.observer(); o != nil {
		now := l.now()
		for _, id := range was {
			if !slices.Contains(l.members, id) {
				o.Left(id)
				delete(l.lagging, id)
			}
		}
		for _, id := range l.members {
			if !slices.Contains(was, id) {
				o.Joined(id, now)
			}
		}
	}
}

// observer returns the policy if it learns and there is a clock to learn by.
func (l *leading) observer() ecraft.Observer {
	if l.cfg.Clock == nil {
		return nil
	}
	o, _ := l.cfg.Policy.(ecraft.Observer)
	return o
}
