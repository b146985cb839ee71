// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// CatchUp bounds the bytes of snapshots under way, over all groups of a node that share it ([Config].CatchUp): those
// that the node sends, and, beside them, those that it takes. A node that restarts with many groups would otherwise
// take as many snapshots at once, and the calls of other groups would wait behind all of them.
//
// What waits for room goes on in the order of its urgency: a voter without which one more failure stops its group,
// then other voters, then learners. Of the same urgency, the snapshot with the fewest bytes left is first, as far as
// these are known. Each fourth turn belongs to the one that has waited longest, so that each has its turn. A quarter
// of the bytes is spared for the first urgency.
//
// What is sent has a turn for each window of 16 chunks ([Config].ChunkBytes) that its receiver asks for, so that an urgent
// snapshot passes one that is under way. What is taken has a place for a window until it is restored. A window that
// is larger than what there is for all goes when no other does. A nil CatchUp bounds nothing.
//
// The methods may be called from several goroutines.
type CatchUp struct {
	start time.Time

	mu    sync.Mutex
	lanes [2]lane // by direction
}

// NewCatchUp returns a budget of so many bytes in each direction, 1 or more.
func NewCatchUp(bytes int64) (*CatchUp, error) {
	if bytes < 1 {
		return nil, fmt.Errorf("%w: the bytes of NewCatchUp are %d, want 1 or more", ErrInvalid, bytes)
	}
	return &CatchUp{start: time.Now(), lanes: [2]lane{newLane(bytes), newLane(bytes)}}, nil
}

// CatchUpStats says what is under way in one direction, and what waits.
type CatchUpStats struct {
	// LimitBytes is the bound, and UsedBytes the bytes under way; they exceed the bound only by a window that is larger
	// than three quarters of it.
	LimitBytes, UsedBytes int64
	// Waiting counts the snapshots that wait for room, and Urgent those of them without which one more failure stops a
	// group. Oldest is for how long the oldest has waited.
	Waiting, Urgent int
	Oldest          time.Duration
	// Turns counts the windows that were let go on, and Delayed those of them that had to wait: Delays is
	// the sum of their waits.
	Turns, Delayed uint64
	Delays         time.Duration
}

// Sending returns what the node sends.
func (c *CatchUp) Sending() CatchUpStats { return c.statistics(sending) }

// Taking returns what the node takes.
func (c *CatchUp) Taking() CatchUpStats { return c.statistics(taking) }

func (c *CatchUp) statistics(d direction) CatchUpStats {
	if c == nil {
		return CatchUpStats{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lanes[d].statistics(time.Since(c.start))
}

// direction is that of snapshots.
type direction int

const (
	sending direction = iota
	taking
)

// place is a snapshot's place in a direction, of one user. The fields below ready are CatchUp's.
type place struct {
	direction direction
	ready     func() // says that what was asked for is there; must not wait, and may call no method of CatchUp

	urgency wire.Urgency
	left    int64         // bytes of the snapshot, or 0 if these are unknown
	want    int64         // bytes that the place waits for; 0: it does not wait
	held    int64         // bytes that it has
	spare   int64         // of these, from the spare part
	since   time.Duration // when it began to wait
}

// ask asks that a place have so many bytes, or tells of another urgency of one that waits. The answer says
// whether the place has them; otherwise ready is called when it has.
func (c *CatchUp) ask(p *place, u wire.Urgency, left, bytes int64) bool {
	if c == nil {
		return true
	}
	there := false
	c.change(p.direction, func(l *lane, now time.Duration) []*place {
		p.urgency, p.left = u, left
		if p.want == 0 && p.held < bytes {
			l.wait(p, now, bytes-p.held)
		}
		turns := l.turns(now)
		there = p.want == 0
		return slices.DeleteFunc(turns, func(other *place) bool { return other == p })
	})
	return there
}

// give gives bytes of a place back.
func (c *CatchUp) give(p *place, bytes int64) {
	if c == nil || bytes == 0 {
		return
	}
	c.change(p.direction, func(l *lane, now time.Duration) []*place {
		l.give(p, bytes)
		return l.turns(now)
	})
}

// leave gives all bytes of a place back. The place waits no more.
func (c *CatchUp) leave(p *place) {
	if c == nil || p == nil {
		return
	}
	c.change(p.direction, func(l *lane, now time.Duration) []*place {
		l.leave(p)
		return l.turns(now)
	})
}

// hasRoom reports whether so many bytes would not have to wait.
func (c *CatchUp) hasRoom(d direction, u wire.Urgency, bytes int64) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lanes[d].hasRoom(u, bytes)
}

// change changes a lane, and tells the places whose turn has come.
func (c *CatchUp) change(d direction, f func(*lane, time.Duration) []*place) {
	c.mu.Lock()
	turns := f(&c.lanes[d], time.Since(c.start))
	c.mu.Unlock()
	for _, p := range turns {
		p.ready()
	}
}

// lane decides whose turn it is in one direction. It is pure: time comes as an argument.
type lane struct {
	waits []*place // in the order in which they came
	// common is for all, and spare for the first urgency alone.
	common, spare pool
	passed        int // turns of others since the oldest had its turn
	stats         CatchUpStats
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
func (l *lane) wait(p *place, now time.Duration, bytes int64) {
	p.want, p.since = bytes, now
	l.waits = append(l.waits, p)
}

// give takes bytes back, those of the spare part first.
func (l *lane) give(p *place, bytes int64) {
	spare := min(bytes, p.spare)
	p.held, p.spare = p.held-bytes, p.spare-spare
	l.spare.used -= spare
	l.common.used -= bytes - spare
}

func (l *lane) leave(p *place) {
	l.give(p, p.held)
	l.forget(p)
}

func (l *lane) forget(p *place) {
	p.want = 0
	l.waits = slices.DeleteFunc(l.waits, func(other *place) bool { return other == p })
}

// turns gives the bytes that there are to the places that wait, and returns these places.
func (l *lane) turns(now time.Duration) (turns []*place) {
	for p := l.turn(now); p != nil; p = l.turn(now) {
		turns = append(turns, p)
	}
	return turns
}

// turn gives a place what it waits for, if that is there.
func (l *lane) turn(now time.Duration) *place {
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
func (l *lane) next() (*place, *pool) {
	if len(l.waits) == 0 {
		return nil, nil
	}
	p := slices.MinFunc(l.waits, func(a, b *place) int {
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
func (p *place) rank() wire.Urgency { return cmp.Or(p.urgency, wire.UrgencyVoter) }

func (l *lane) statistics(now time.Duration) CatchUpStats {
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
