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
//
// A link that is busy with a long message is silent, too. So a silence begins when an answer is due
// by the prediction for its message, and is short where predictions are good: a follower that stops
// in the middle of a large entry is lost soon after the entry's usual time.

const (
	silenceFactor = 2.5 // a silence longer than any recent silence by this factor is a loss
	silenceMemory = 5.0 // seconds in which a silence is forgotten
	silenceGrowth = 2   // factor for a silence that was wrongly taken for a loss

	silenceFloor   = 0.004 // seconds: a shorter silence is not worth a timer
	silenceSamples = 64    // answers within the memory from which silences are known
	silenceOwn     = 8     // of these, answers of the follower itself
)

// due is when a message's answer is expected.
func (m *flight) due() float64 { return m.sentAt + m.pred }

// spoke notes an answer, for which the oldest message was due.
func (l *link) spoke(due, now float64) {
	waited := max(0, now-max(due, l.spokeAt))
	if l.spoken > 0 {
		waited = min(waited, silenceGrowth*1.5*max(l.quiet, silenceFloor))
	}
	kept := math.Exp(-(now - l.spokeAt) / silenceMemory)
	l.quiet = max(waited, l.quiet*kept)
	l.spoken = l.spoken*kept + 1
	l.spokeAt = now
}

// patience is the silence up to which a follower is not lost; 0: not known. A follower that gives few
// answers, because entries are large, is judged by the answers of all followers together.
func (c *choice) patience(l *link) float64 {
	spoken, quiet := l.spoken, l.quiet
	if spoken < silenceSamples && spoken >= silenceOwn {
		spoken, quiet = 0, 0
		for _, p := range c.peers {
			spoken += p.spoken
			quiet = max(quiet, p.quiet)
		}
	}
	if spoken < silenceSamples {
		return 0
	}
	return max(silenceFloor, (1+silenceFactor/math.Log(spoken))*quiet)
}

// lost returns the time for which a follower has owed an answer and been silent, if the follower is
// silent for too long; otherwise 0.
func (c *choice) lost(l *link, now float64) float64 {
	patience := c.patience(l)
	if l.out.Len() == 0 || patience == 0 {
		return 0
	}
	if m := l.out.Front(); now-max(m.due(), l.spokeAt) > patience {
		return now - max(m.sentAt, l.spokeAt)
	}
	return 0
}

// leaveLost treats lost followers as gone until their next answer, because entries that count on
// them would all have to be raised, and returns the number of followers treated so. A follower is kept
// while the other followers would take longer than its silence has lasted, because a slow link
// would be worse.
func (c *choice) leaveLost(r *ecraft.Round, now float64) (lost int) {
	c.order = c.order[:0] // the followers that are neither gone nor lost
	for i := range c.peers {
		if p := &c.peers[i]; !p.gone && c.lost(p.link, now) == 0 {
			c.order = append(c.order, i)
		}
	}
	if len(c.order) < r.Voters/2 || len(c.order) == len(c.peers) {
		return 0
	}
	others := c.without(r)
	for i := range c.peers {
		p := &c.peers[i]
		if silent := c.lost(p.link, now); !p.gone && silent > 0 && silent >= others {
			p.gone = true
			lost++
		}
	}
	return lost
}

// without is the time that the followers in order need alone, at their best level.
func (c *choice) without(r *ecraft.Round) float64 {
	least, half := math.Inf(1), r.Voters/2
	for need := half; need <= min(len(c.order), half+ecraft.Levels(r.Voters)-1); need++ {
		size := levelBytes(r, need-half+1)
		c.sorted = c.sorted[:0]
		for _, i := range c.order {
			c.sorted = append(c.sorted, c.answers(&c.peers[i], size, size*float64(need)))
		}
		slices.Sort(c.sorted)
		least = min(least, c.sorted[need-1])
	}
	return least
}

// silence returns the silence, beyond the prediction for an entry, after which a follower with units
// is lost. 0: not known.
func (c *choice) silence(units []int) time.Duration {
	after := 0.0
	for i, p := range c.peers {
		if units[i] > 0 {
			patience := c.patience(p.link)
			if patience == 0 {
				return 0
			}
			after = max(after, patience)
		}
	}
	return inSeconds(after)
}
