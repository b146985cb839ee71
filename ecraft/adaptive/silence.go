// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft"
)

// Silence. An entry is late for many reasons, mostly jitter, and hedges against jitter make more
// jitter. A lost follower shows in another way: the follower owes answers and sends none at all.
// Answers come in order, so with many messages under way an answer comes nearly all the time, and
// the longest recent silence is hardly longer than the largest recent delay.

const (
	silenceFactor = 2.5 // a silence longer than any recent silence by this factor is a loss
	silenceMemory = 5.0 // seconds in which a silence is forgotten
	silenceGrowth = 2   // factor for a silence that was wrongly taken for a loss

	silenceFloor   = 0.005 // seconds: a shorter silence is not worth a timer
	silenceSamples = 64    // answers within the memory from which silences are known
)

// spoke notes an answer; oldest is the time of the oldest message answered.
func (l *link) spoke(oldest, now float64) {
	waited := now - max(oldest, l.spokeAt)
	if l.quiet > 0 {
		waited = min(waited, silenceGrowth*1.5*l.quiet)
	}
	kept := math.Exp(-(now - l.spokeAt) / silenceMemory)
	l.quiet = max(waited, l.quiet*kept)
	l.spoken = l.spoken*kept + 1
	l.spokeAt = now
}

// patience is the silence up to which a follower is not lost; 0: not known.
func (l *link) patience() float64 {
	if l.spoken < silenceSamples {
		return 0
	}
	return max(silenceFloor, (1+silenceFactor/math.Log(l.spoken))*l.quiet)
}

// lost returns the time for which a follower has owed an answer and been silent, if the time is too
// long; otherwise 0.
func (l *link) lost(now float64) float64 {
	patience := l.patience()
	if l.out.Len() == 0 || patience == 0 {
		return 0
	}
	m := l.out.Front()
	if silent := now - max(m.sentAt, l.spokeAt); silent > max(patience, m.pred) {
		return silent
	}
	return 0
}

// leaveLost treats lost followers as gone until their next answer, because entries that count on
// them would all have to be raised, and returns the number of followers treated so. A follower is kept
// while the other followers would take longer than its silence has lasted, because a slow link
// would be worse.
func (c *choice) leaveLost(r *ecraft.Round, now float64) (lost int) {
	c.sorted = c.sorted[:0]
	half, size := r.Voters/2, float64(r.Size+entryOverhead)
	for i := range c.peers {
		if p := &c.peers[i]; !p.gone && p.lost(now) == 0 {
			c.sorted = append(c.sorted, c.answers(p, size, size*float64(half)))
		}
	}
	slices.Sort(c.sorted)
	if len(c.sorted) < half || len(c.sorted) == len(c.peers) {
		return 0
	}
	for i := range c.peers {
		p := &c.peers[i]
		if silent := p.lost(now); !p.gone && silent > 0 && silent >= c.sorted[half-1] {
			p.gone = true
			lost++
		}
	}
	return lost
}

// silence returns the silence after which a follower with units is lost, which is longer than the
// prediction for the entry. 0: not known.
func (c *choice) silence(units []int, expected float64) time.Duration {
	after := expected
	for i, p := range c.peers {
		if units[i] > 0 {
			if p.patience() == 0 {
				return 0
			}
			after = max(after, p.patience())
		}
	}
	return inSeconds(after)
}
