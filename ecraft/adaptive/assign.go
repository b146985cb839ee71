// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft"
)

// peer is a follower at the instant of a choice.
type peer struct {
	*link
	gone  bool
	late  float64 // seconds by which its oldest message is overdue
	trip  float64 // seconds to the follower's answer, without the time of bytes
	alone float64 // the cost of a byte on its connection, if the connection is slow
}

// candidate is an assignment and its cost.
type candidate struct {
	level int     // 0: uneven
	need  int     // number of followers whose answers are needed
	size  float64 // bytes to each
	all   float64 // bytes to all together
	cut   float64 // a follower with a later answer gets no units
	time  float64 // to the last answer needed
	last  float64 // the same without jitter
	tx    float64 // time for which an entry holds the slowest part: the interface, or a link
	later float64 // delay of later entries through the slowest part
	late  float64 // seconds by which a needed follower is overdue

	queued float64 // mean time of the queues in front of the needed followers
	busy   float64 // share of the time for which the slowest part is held
}

// choice is memory for a choice.
type choice struct {
	peers         []peer
	levels        []candidate
	sorted, times []float64
	alive         int   // number of peers that are not gone
	missing       int   // number of peers that are gone, or get no units because they are late
	byCost        []int // peers that are not gone, the least cost first
	order         []int // peers by the units that they can be given, most first
	units         []int // of the uneven candidate, by peer

	entries, payload float64 // rates, a second
	wire, egress     float64 // seconds until the interface is free, and seconds a byte
}

func (c *choice) resize(n int) {
	c.peers, c.levels = make([]peer, 0, n), make([]candidate, 0, n+1)
	c.sorted, c.times = make([]float64, 0, n), make([]float64, 0, n)
	c.byCost, c.order = make([]int, 0, n), make([]int, 0, n)
	c.units = make([]int, n)
}

// Assign implements Policy.
func (a *Policy) Assign(r *ecraft.Round, units []int) ecraft.Plan {
	alive, known := a.look(r)
	if !known {
		return ecraft.Levelled{}.Assign(r, units)
	}
	highest := min(alive-r.Voters/2+1, ecraft.Levels(r.Voters))
	if highest < 1 || r.Layout.D == 0 {
		return ecraft.Fixed(1).Assign(r, units) // no entry can commit: any follower that comes back helps
	}
	c := &a.choice
	c.levels = c.levels[:0]
	for level := 1; level <= highest; level++ {
		c.levels = append(c.levels, a.level(r, level))
	}
	if a.trials.wantFull(&a.lane, a.busiest(r), r.Now) {
		return a.full(r, units)
	}
	fastest := slices.MinFunc(c.levels, func(x, y candidate) int { return cmp.Compare(x.time, y.time) }).time
	best, cost := a.cheapest(c.levels, fastest)
	if slow, ok := a.relieve(c.levels, best); ok {
		fastest = slow
		best, cost = a.cheapest(c.levels, fastest)
	}
	if c.unlike(c.levels[len(c.levels)-1].size) {
		if u, ok := a.uneven(r); ok && a.cost(u, min(fastest, u.time)) < unevenGain*cost {
			copy(units, c.units)
			a.trials.codes()
			return ecraft.Plan{Level: 0, Predicted: inSeconds(u.time), Silence: c.silence(units)}
		}
	}
	a.lastLevel = best.level
	if best.level > 1 {
		a.trials.codes()
	}
	c.assign(r, best, units)
	// A follower that is late already must not delay a hedge.
	time := max(best.time-best.late, 1e-6)
	return ecraft.Plan{Level: best.level, Predicted: inSeconds(time), Silence: c.silence(units)}
}

// full gives full copies to all followers that are not gone.
func (a *Policy) full(r *ecraft.Round, units []int) ecraft.Plan {
	c := &a.choice
	a.lastLevel, a.relief = 1, 0
	r.Share(1, units, func(i int) bool { return !c.peers[i].gone })
	time := max(c.levels[0].time-c.levels[0].late, 1e-6)
	return ecraft.Plan{Level: 1, Predicted: inSeconds(time), Silence: c.silence(units)}
}

// inSeconds converts seconds, bounded to an hour.
func inSeconds(s float64) time.Duration { return time.Duration(min(s, 3600) * float64(time.Second)) }

// look reads the estimates of the followers. alive counts the followers that are not gone; known is
// false for a follower that was never announced.
func (a *Policy) look(r *ecraft.Round) (alive int, known bool) {
	c, now := &a.choice, r.Now.Seconds()
	c.entries, c.payload = a.rates(now)
	a.nic.drain(now)
	c.wire, c.egress = a.nic.queue*a.nic.cost, a.nic.cost
	c.peers = c.peers[:0]
	if len(r.Followers) > len(a.links) {
		return 0, false
	}
	for _, f := range r.Followers {
		l := a.voter(f.ID)
		if l == nil {
			return 0, false
		}
		l.drain(now)
		p := peer{link: l, trip: l.trip() + a.heldBack(l), alone: l.alone()}
		if late := l.overdue(now); late > 0 {
			p.trip, p.late = p.trip+late, late
			p.gone = late > goneAfter+goneFactor*l.out.Front().pred
		}
		p.gone = p.gone || f.Lags || !f.Healthy && now-l.heard >= silence
		if !p.gone {
			alive++
		}
		c.peers = append(c.peers, p)
	}
	alive -= c.leaveLost(r, now)
	c.byCost, c.alive = c.byCost[:0], 0
	for i := range c.peers {
		if p := &c.peers[i]; !p.gone {
			c.alive++
			c.byCost = append(c.byCost, i)
		}
	}
	slices.SortFunc(c.byCost, func(i, j int) int { return cmp.Compare(c.peers[i].alone, c.peers[j].alone) })
	return alive, true
}

// free is the time until no byte is in front of a message to p.
func (c *choice) free(p *peer) float64 { return max(c.wire, p.queue*p.alone) }

// answers is the time until p will have answered a message of some bytes, if the entry has a total
// of all bytes for all receivers.
func (c *choice) answers(p *peer, bytes, all float64) float64 {
	return p.trip + max(c.wire+all*c.egress, (p.queue+bytes)*p.alone)
}

// unlike reports whether the followers' times to answer a message differ so much that an uneven
// assignment may pay.
func (c *choice) unlike(size float64) bool {
	least, most := math.Inf(1), 0.0
	for _, i := range c.byCost {
		t := c.answers(&c.peers[i], size, size*float64(c.alive))
		least, most = min(least, t), max(most, t)
	}
	return most > unlikeBy*least
}

// assign gives the units of a level to the followers that are not gone and would not be too late. A
// slow link is given its units at intervals nevertheless, although no entry waits for them, because
// the link may have become fast.
func (c *choice) assign(r *ecraft.Round, l candidate, units []int) {
	now := r.Now.Seconds()
	for i := range c.peers {
		p := &c.peers[i]
		if late := c.answers(p, l.size, l.all) > l.cut; late && !p.gone {
			probe := p.private && now-p.probed > probeEvery
			if probe {
				p.probed = now
			}
			p.gone = !probe
		}
	}
	r.Share(l.level, units, func(i int) bool { return !c.peers[i].gone })
}

// unitBytes is the bytes of a unit in a message.
func unitBytes(r *ecraft.Round) float64 {
	return float64((r.Size+r.Layout.D-1)/r.Layout.D + unitOverhead)
}

// levelBytes is the bytes to each follower at a level.
func levelBytes(r *ecraft.Round, level int) float64 {
	if level > 1 {
		return float64(r.Layout.UnitsAt(level))*unitBytes(r) + entryOverhead
	}
	return float64(r.Size + entryOverhead)
}

// level computes the candidate of a level: the same units for all followers that are not gone, and
// none for followers that would answer long after the last answer needed, because their units would
// only hold up other units.
func (a *Policy) level(r *ecraft.Round, level int) candidate {
	c := &a.choice
	l := candidate{level: level, need: level + r.Voters/2 - 1, size: levelBytes(r, level)}
	jitter := a.jitter[l.need-1]
	getting, last := c.alive, 0.0
	for range 2 { // late followers get nothing, and so the other followers are faster
		l.all = float64(getting) * l.size
		last, getting = c.last(&l, jitter)
		jitter = a.wait(l.need, len(a.jitter)-c.missing)
	}
	l.time, l.last = max(last+jitter, 1e-6), last
	l.tx = float64(getting) * l.size * c.egress

	var queued float64
	for _, i := range c.byCost {
		if p := &c.peers[i]; c.times[i] <= last {
			queued += c.free(p)
			l.late = max(l.late, p.late)
		}
	}
	// An idle follower may answer first, but in the long run a level needs as many
	// links as answers.
	if p := &c.peers[c.byCost[l.need-1]]; p.private {
		l.tx = max(l.tx, p.alone*l.size)
	}
	l.queued = queued / float64(l.need)
	a.later(r, &l)
	return l
}

// last returns the time of the last answer that a level needs, as far as bytes and delays go, sets
// the time from which answers are too late, and counts the answers in time. last leaves the time of
// each answer in times. A slow link without units is not missing, because its answer is never among
// the first.
func (c *choice) last(l *candidate, jitter float64) (last float64, intime int) {
	c.times, c.sorted = c.times[:0], c.sorted[:0]
	for i := range c.peers {
		c.times = append(c.times, c.answers(&c.peers[i], l.size, l.all))
	}
	for _, i := range c.byCost {
		c.sorted = append(c.sorted, c.times[i])
	}
	slices.Sort(c.sorted)
	last = c.sorted[l.need-1]
	l.cut = cutFactor * max(last+jitter, last)
	c.missing = 0
	for i := range c.peers {
		p, late := &c.peers[i], c.times[i] > l.cut
		if !p.gone && !late {
			intime++
		}
		if p.gone || late && p.late > 0 && !p.private {
			c.missing++
		}
	}
	return last, intime
}

// later finds the delay of later entries through the slowest part: tx is the time for which an
// entry holds the part, queued the present length of the queue. The formula for a queue with random
// arrivals ends where more bytes come than leave; beyond, every entry waits for the excess, for as
// long as the overload lasts.
func (a *Policy) later(r *ecraft.Round, l *candidate) {
	l.busy = a.choice.payload * l.tx / float64(max(r.Size, 1))
	l.later = queueShare*l.tx*a.choice.entries*(l.queued+l.tx)/(1-min(maxBusy, l.busy)) + horizon*max(0, l.busy-maxBusy)
}

// cheapest returns the level of least cost, and the cost.
func (a *Policy) cheapest(levels []candidate, fastest float64) (best candidate, cost float64) {
	cost = math.Inf(1)
	for _, l := range levels {
		x := a.cost(l, fastest)
		if l.level == a.lastLevel {
			x *= hysteresis
		}
		if x < cost {
			best, cost = l, x
		}
	}
	return best, cost
}

// cost adds the cost for other entries: an entry that is later than necessary holds up the entries
// behind, which commit in order.
func (a *Policy) cost(l candidate, fastest float64) float64 {
	over := max(0, l.time-fastest)
	return l.time + l.later + orderShare*a.choice.entries*over*over
}
