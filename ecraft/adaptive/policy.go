// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"cmp"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft/internal/ring"
)

const (
	poolLimit  = 1.75 // a connection slower than the interface by this factor is private
	queueShare = 0.5  // weight of the delay through the shared interface
	orderShare = 0.5  // weight of the delay through commit order
	hysteresis = 0.95 // another level must have a cost below this share of the last level's cost
	unevenGain = 0.9  // an uneven assignment must have a cost below this share of the best level's cost
	unlikeBy   = 1.25 // the least factor between followers for which an uneven assignment is computed

	goneAfter  = 0.250 // seconds: a follower whose oldest message is later than goneAfter
	goneFactor = 8     // and goneFactor predictions is gone
	silence    = 1.0   // seconds without any answer, for a follower that the host calls unhealthy

	cutFactor  = 2    // a follower whose answer would take longer than this number of predictions gets no units
	probeEvery = 0.25 // seconds after which such a follower gets units, because the link may be fast again
	horizon    = 2    // seconds for which an overload is thought to last

	maxBusy       = 0.97 // bound of the interface's load in the formula of the queue
	alphaJitter   = 1.0 / 32
	recentEntries = 128
	unitOverhead  = 4  // a unit's checksum
	entryOverhead = 64 // an entry and its envelope's header, about
)

// Options are the settings of the adaptive policy: what the policy cannot learn.
type Options struct {
	// Trials, unless nil, are shared by the policies of all groups of a process. They try together
	// whether coding pays. A trial of one group among many shows little: the others fill the links and the processors.
	Trials *Trials
}

// Policy picks, entry by entry, the assignment with the least estimated cost: the time to the last
// answer that the entry needs, and the delay of later entries through the leader's interface and
// through commit in order. Policy sees only the times at which messages are handed over and answers
// come; see link.go for the estimates.
//
// There is no mode for a slow, paused or dead follower. An oldest message that is overdue raises
// the follower's prediction at once, so new entries leave the follower out; a follower that owes
// answers and is silent for longer than ever recently is given no units, see silence.go. The next
// answer clears both. Every answer at any level teaches.
//
// A Policy is not safe for concurrent use.
type Policy struct {
	links     []*link // of the voters, sorted by id
	learners  []*link // sorted by id; for the pace of catching up alone
	nic       nic     // the leader's interface
	jitter    []float64
	complete  int     // number of entries that all present followers have answered
	shared    average // the covariance of followers' delays
	recent    ring.Ring[proposal]
	bytes     float64 // sum over recent
	lastLevel int
	relief    int    // the level that works off a backlog; 0: no backlog
	sentUpTo  uint64 // the last entry sent to any follower

	busy   float64 // share of time for which the leader's processors are busy
	trials *Trials
	lane   lane

	answers []answerSet // of the last answered entries
	choice  choice
}

// proposal is an appended entry.
type proposal struct{ at, bytes float64 }

// New returns the policy. Followers are announced by Joined; before, all followers get the fewest
// units that can commit.
func New(o Options) *Policy {
	a := &Policy{trials: cmp.Or(o.Trials, &Trials{alone: true})}
	a.trials.begins(&a.lane)
	return a
}

// wake makes room for what a leader learns: a node has many groups, most of which it does not lead.
func (a *Policy) wake() {
	if a.nic.cost == 0 {
		a.recent.Init(recentEntries)
		a.nic.reset(0)
	}
}

// Reset implements Observer. Estimates of links stay, because links do not change when
// leaders do.
func (a *Policy) Reset(now time.Duration) {
	a.wake()
	for _, l := range slices.Concat(a.links, a.learners) {
		l.forgetFlights(now.Seconds())
	}
	a.recent.Clear()
	a.nic.reset(now.Seconds())
	a.trials.begins(&a.lane)
	a.bytes, a.relief, a.sentUpTo = 0, 0, 0
	for i := range a.answers {
		a.answers[i].index, a.answers[i].n = 0, 0
	}
}

// find returns the position of a member's link in links sorted by id.
func find(links []*link, member uint64) (int, bool) {
	return slices.BinarySearchFunc(links, member, func(l *link, id uint64) int { return cmp.Compare(l.id, id) })
}

// link returns the link of a voter or learner, or nil.
func (a *Policy) link(member uint64) *link {
	if l := a.voter(member); l != nil {
		return l
	}
	if i, ok := find(a.learners, member); ok {
		return a.learners[i]
	}
	return nil
}

func (a *Policy) voter(member uint64) *link {
	if i, ok := find(a.links, member); ok {
		return a.links[i]
	}
	return nil
}

// Joined implements Observer.
func (a *Policy) Joined(member uint64, voter bool, now time.Duration) {
	if a.link(member) != nil {
		return
	}
	a.wake()
	l := new(link)
	if l.init(member, len(a.links)+1, now.Seconds()); !voter {
		l.learner = true
		i, _ := find(a.learners, member)
		a.learners = slices.Insert(a.learners, i, l)
		return
	}
	i, _ := find(a.links, member)
	a.links = slices.Insert(a.links, i, l)
	for _, l := range a.links {
		if l.fresh() {
			l.init(l.id, len(a.links), now.Seconds())
		}
	}
	a.resized()
}

// Left implements Observer.
func (a *Policy) Left(member uint64) {
	if i, ok := find(a.learners, member); ok {
		a.learners = slices.Delete(a.learners, i, i+1)
	}
	if i, ok := find(a.links, member); ok {
		a.links = slices.Delete(a.links, i, i+1)
		a.resized()
	}
}

func (a *Policy) resized() {
	a.jitter, a.complete, a.shared = make([]float64, len(a.links)), 0, average{}
	a.answers = make([]answerSet, answered)
	for i := range a.answers {
		a.answers[i].took = make([]float64, len(a.links))
	}
	a.choice.resize(len(a.links))
	a.pool()
}

// Proposed implements Observer.
func (a *Policy) Proposed(index uint64, size int, now time.Duration) {
	a.wake()
	a.trials.proposed(&a.lane, index, float64(size), now)
	if a.recent.Len() == recentEntries {
		a.bytes -= a.recent.PopFront().bytes
	}
	p := proposal{now.Seconds(), float64(size)}
	a.recent.Push(p)
	a.bytes += p.bytes
}

// rates returns entries and payload bytes a second of the last proposals.
func (a *Policy) rates(now float64) (entries, bytes float64) {
	if a.recent.Len() < 2 {
		return 0, 0
	}
	span := max(now-a.recent.Front().at, 1e-6)
	return float64(a.recent.Len()) / span, a.bytes / span
}

// Sent implements Observer.
func (a *Policy) Sent(to, last uint64, bytes int, now time.Duration) {
	if l := a.link(to); l != nil {
		if !l.learner {
			a.sentUpTo = max(a.sentUpTo, last)
		}
		a.nic.send(float64(bytes), now.Seconds())
		l.send(last, float64(bytes), now.Seconds(), &a.nic)
	}
}

// Acked implements Observer.
func (a *Policy) Acked(from, index uint64, held, now time.Duration) {
	l := a.link(from)
	if l == nil {
		return
	}
	a.trials.answered(&a.lane, now)
	m, ok := l.acked(index, max(0, held.Seconds()), now.Seconds(), float64(len(a.links)), &a.nic)
	if i, voter := find(a.links, from); ok && voter {
		a.pool()
		a.answer(i, m, now.Seconds())
	}
}

// Committed implements Observer.
func (a *Policy) Committed(index uint64) { a.trials.committed(&a.lane, index) }

// HeartbeatSent implements Observer.
func (a *Policy) HeartbeatSent(to uint64, now time.Duration) {
	if l := a.link(to); l != nil {
		l.heartbeatSent(now.Seconds(), &a.nic)
	}
}

// HeartbeatAnswered implements Observer.
func (a *Policy) HeartbeatAnswered(from uint64, now time.Duration) {
	if l := a.link(from); l != nil {
		l.heartbeatAnswered(now.Seconds())
	}
}

// QueueHint implements Observer.
func (a *Policy) QueueHint(to uint64, bytes int, rate float64, now time.Duration) {
	l := a.link(to)
	if l == nil || bytes < 0 {
		return
	}
	l.drain(now.Seconds())
	a.nic.drain(now.Seconds())
	is := min(float64(bytes), l.flying)
	if !l.private {
		a.nic.queue = max(is, a.nic.queue+is-l.queue)
	}
	l.queue = is
	if rate >= 1 && l.fresh() && !l.learner {
		l.own = 1 / rate // better than the initial cost
		l.sumXY = l.sumXX * l.own
		a.pool()
	}
}
