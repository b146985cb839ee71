// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package catchup bounds what is under way to members that catch up, over all groups of a node.
package catchup

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// Budget bounds bytes under way: those that a node sends, and, beside them, those that it takes. They are of snapshots,
// and, in the direction in which the node sends, of entries that followers have missed.
//
// What waits for room goes on in the order of its urgency: a voter without which one more failure stops its group,
// then other voters, then learners. Of the same urgency, what has the fewest bytes left is first, as far as
// these are known. Each fourth turn belongs to the place that has waited longest, so that each has its turn. A quarter
// of the bytes is spared for the first urgency.
//
// What is larger than there is for all goes when nothing else does. A nil Budget bounds nothing. The methods may be
// called from several goroutines.
type Budget struct {
	now func() time.Duration

	mu    sync.Mutex
	lanes [2]lane // by direction
}

// New returns a budget of so many bytes in each direction, 1 or more. now tells the time, which never goes back.
func New(bytes int64, now func() time.Duration) *Budget {
	return &Budget{now: now, lanes: [2]lane{newLane(bytes), newLane(bytes)}}
}

// Stats says what is under way in one direction, and what waits; rawnode.CatchUpStats has the same fields, and says
// what each means.
type Stats struct {
	LimitBytes, UsedBytes int64
	Waiting, Urgent       int
	Oldest                time.Duration
	Turns, Delayed        uint64
	Delays                time.Duration
}

// Statistics returns what is under way in a direction.
func (b *Budget) Statistics(d Direction) Stats {
	if b == nil {
		return Stats{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lanes[d].statistics(b.now())
}

// Direction is that of what is under way.
type Direction int

// The directions.
const (
	Sending Direction = iota
	Taking
)

// Place is a place in a direction, of one user.
type Place struct {
	Direction Direction
	Ready     func() // says that what was asked for is there; must not wait, and may call no method of Budget

	urgency wire.Urgency
	left    int64         // bytes to come, or 0 if these are unknown
	want    int64         // bytes that the place waits for; 0: it does not wait
	held    int64         // bytes that it has
	spare   int64         // of these, from the spare part
	since   time.Duration // when it began to wait
}

// Ask asks that a place have so many bytes, or tells of another urgency of one that waits. The answer says
// whether the place has them; otherwise ready is called when it has.
func (b *Budget) Ask(p *Place, u wire.Urgency, left, bytes int64) bool {
	if b == nil {
		return true
	}
	there := false
	b.change(p.Direction, func(l *lane, now time.Duration) []*Place {
		p.urgency, p.left = u, left
		if p.want == 0 && p.held < bytes {
			l.wait(p, now, bytes-p.held)
		}
		turns := l.turns(now)
		there = p.want == 0
		return slices.DeleteFunc(turns, func(other *Place) bool { return other == p })
	})
	return there
}

// Give gives bytes of a place back.
func (b *Budget) Give(p *Place, bytes int64) {
	if b == nil || bytes == 0 {
		return
	}
	b.change(p.Direction, func(l *lane, now time.Duration) []*Place {
		l.give(p, bytes)
		return l.turns(now)
	})
}

// Leave gives all bytes of a place back. The place waits no more.
func (b *Budget) Leave(p *Place) {
	if b == nil || p == nil {
		return
	}
	b.change(p.Direction, func(l *lane, now time.Duration) []*Place {
		l.leave(p)
		return l.turns(now)
	})
}

// HasRoom reports whether so many bytes would not have to wait.
func (b *Budget) HasRoom(d Direction, u wire.Urgency, bytes int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lanes[d].hasRoom(u, bytes)
}

// change changes a lane, and tells the places whose turn has come.
func (b *Budget) change(d Direction, f func(*lane, time.Duration) []*Place) {
	b.mu.Lock()
	turns := f(&b.lanes[d], b.now())
	b.mu.Unlock()
	for _, p := range turns {
		p.Ready()
	}
}

// lane decides whose turn it is in one direction. It is pure: time comes as an argument.
type lane struct {
	waits []*Place // in the order in which they came
	// common is for all, and spare for the first urgency alone.
	common, spare pool
	passed        int // turns of others since the oldest had its turn
	stats         Stats
}

// pool is a part of the bytes.
type pool struct{ size, used int64 }

func (p *pool) fits(bytes int64) bool { return bytes <= p.size-p.used }

// patience is the number of turns of which one belongs to the place that has waited longest.
const patience = 4

func newLane(bytes int64) lane {
	return lane{common: pool{size: bytes - bytes/4}, spare: pool{size: bytes / 4}}
}

// wait has a place wait for bytes.
func (l *lane) wait(p *Place, now time.Duration, bytes int64) {
	p.want, p.since = bytes, now
	l.waits = append(l.waits, p)
}

// give takes bytes back, those of the spare part first.
func (l *lane) give(p *Place, bytes int64) {
	spare := min(bytes, p.spare)
	p.held, p.spare = p.held-bytes, p.spare-spare
	l.spare.used -= spare
	l.common.used -= bytes - spare
}

func (l *lane) leave(p *Place) {
	l.give(p, p.held)
	l.forget(p)
}

func (l *lane) forget(p *Place) {
	p.want = 0
	l.waits = slices.DeleteFunc(l.waits, func(other *Place) bool { return other == p })
}

// turns gives the bytes that there are to the places that wait, and returns these places.
func (l *lane) turns(now time.Duration) (turns []*Place) {
	for p := l.turn(now); p != nil; p = l.turn(now) {
		turns = append(turns, p)
	}
	return turns
}

// turn gives a place what it waits for, if that is there.
func (l *lane) turn(now time.Duration) *Place {
	p, from := l.next()
	if p == nil {
		return nil
	}
	if p == l.waits[0] {
		l.passed = 0
	} else if from == &l.common {
		l.passed++
	}
	l.stats.Turns++
	if waited := now - p.since; waited > 0 {
		l.stats.Delayed++
		l.stats.Delays += waited
	}
	from.used += p.want
	p.held += p.want
	if from == &l.spare {
		p.spare += p.want
	}
	l.forget(p)
	return p
}

// next returns the place whose turn it is, and where its bytes come from, or nil if these are not there: a smaller
// one does not pass a larger one, which would have no turn otherwise.
func (l *lane) next() (*Place, *pool) {
	if len(l.waits) == 0 {
		return nil, nil
	}
	p := slices.MinFunc(l.waits, func(a, b *Place) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(uint64(a.left)-1, uint64(b.left)-1)) // 0 is the most
	})
	if p.rank() == wire.UrgencyEdge && l.spare.fits(p.want) {
		return p, &l.spare
	}
	if l.passed >= patience-1 {
		p = l.waits[0]
	}
	if l.common.fits(p.want) || l.common.used == 0 {
		return p, &l.common
	}
	return nil, nil
}

// hasRoom reports whether so many bytes would not have to wait.
func (l *lane) hasRoom(u wire.Urgency, bytes int64) bool {
	return len(l.waits) == 0 && (u == wire.UrgencyEdge && l.spare.fits(bytes) || l.common.fits(bytes) || l.common.used == 0)
}

// rank returns the urgency, that of a voter if a member of an earlier version has said none.
func (p *Place) rank() wire.Urgency { return cmp.Or(p.urgency, wire.UrgencyVoter) }

func (l *lane) statistics(now time.Duration) Stats {
	s := l.stats
	s.LimitBytes, s.UsedBytes, s.Waiting = l.common.size+l.spare.size, l.common.used+l.spare.used, len(l.waits)
	for _, p := range l.waits {
		if p.rank() == wire.UrgencyEdge {
			s.Urgent++
		}
		s.Oldest = max(s.Oldest, now-p.since)
	}
	return s
}
