// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"slices"
	"time"

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

// next returns the id of this leader's next entry.
func (l *leading) next() ecraft.ID {
	return ecraft.ID{Term: l.raft.Term(), Index: l.log.Last().Index + 1 + l.Ahead()}
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
	for id, pr := range l.raft.Members().Progress {
		if id != l.id && !pr.IsLearner {
			l.members = append(l.members, id)
		}
	}
	slices.Sort(l.members)
	voters := len(l.members)
	for id, pr := range l.raft.Members().Progress {
		if id != l.id && pr.IsLearner {
			l.members = append(l.members, id)
		}
	}
	slices.Sort(l.members[voters:])
	l.units = make([]int, len(l.members))
	// In a joint configuration each half must be able to decode: the smaller
	// one sets the level.
	smallest := len(l.raft.Members().Voters[0])
	if n := len(l.raft.Members().Voters[1]); n > 0 {
		smallest = min(smallest, n)
	}
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
