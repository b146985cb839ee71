// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"cmp"
	"math"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// Processors. Coding takes bytes from the leader's interface, and gives every member more work: the
// leader encodes, followers send units to each other and put payloads together. Where entries wait
// for processors, the work is a loss, however few bytes leave the leader.
//
// The answers cannot show the loss. An answer that waited for a processor is late like an answer that
// waited for the interface, so the estimates of links take busy processors for slow links. And no
// clock near the core shows the cost of coding, because most of the cost is in the messages, the
// system's part included.
//
// So the policy tries. Members report for which share of time their processors are busy. As long as
// the share is small, only links count. Otherwise full copies and the choice by links have turns: one
// of them is in force, the other is tried, and takes over if entries fare better. If one of the two
// cannot carry what comes, the time in which any entry waits, for each entry, is the time of the
// slowest part, whatever the part is. A turn shows this time roughly, so it decides if there is much
// between the two. Otherwise the mean time to commit decides, which in a closed loop is the
// throughput as well.
//
// How the choice by links fares is measured from the first large entry on. So the first trial begins as soon
// as the share is large, and does not wait for a turn.
//
// A trial is short, and trials that fail become rare. Where full copies overload a link, the first
// entries of the trial show it: a trial ends as soon as an entry waits far longer than any before, or
// few entries take far longer than those before took, both for each entry and for each byte. And
// trials are frequent again when the load has changed since the last one. Entries that wait for another time show that only if
// it lasts: a trial may leave a queue.
//
// How busy processors are suggests a form. Of five nodes on two processors, under loads of 4 and 64 KB of 1 to 64 clients, they were
// busy for 80 to 91% of the time in the median where links had no bound, and for 44 to 77% where these carried 100 Mbit/s. The
// suggestion decides nothing, because processors may be busy with work of others: it brings a trial forward, or puts off that of
// another load, that of full copies for long; suggested full copies count as a trial before any; and where a trial prefers what is
// suggested and in force, the next one comes late.
//
// A machine stands still now and then: other programs run, or a disk takes its time. Such a pause is as long
// as a trial, and would decide the trial. So a time without a commit is left out that is far longer
// than any entry of the turn waited before; and a trial that ends because an entry is stuck goes by the entries that
// committed before.
//
// A single trial decides little, because the machines do other things, too, and two turns differ by
// more than the two forms do. So the policy keeps the mean of the last trials, and the other form takes
// over when the mean is beyond doubt; the doubt shrinks with the number of trials. A trial is repeated
// soon if it speaks against what is in force, or if few trials leave in doubt which is better. Coding needs
// the better proof: where processors bind, coding gains little at best, and where links bind, coding gains
// so much that few trials show it.
//
// Time stands still while no entry waits. Otherwise a pause of the load would count as the length of a
// trial, and the next trial, after many such lengths, would never come; and what processors do in pauses
// would count.
//
// A majority commits an entry. So the leader's processors count, and those of the followers that a
// majority needs, the least busy followers first: a single busy follower changes nothing.
//
// Groups of one process have the same processors and mostly the same links. A trial by one of many groups shows
// nothing: its entries wait behind those of the others, in either form. Each group would find full copies as good, and
// with full copies in all of them the links would be full. So such groups share Trials: they try together, and judge by
// the entries of all. A group whose links are others may go apart: see takes.

const (
	busyFrom   = 0.3  // the share of time from which processors count,
	busyTo     = 0.15 // until the share is below this one,
	busyMemory = 1    // averaged over so many seconds
	busySpent  = 0.8  // from which on entries most likely wait for processors, of which full copies take less,
	busySpare  = 0.7  // and below which they wait for links

	// A turn tells enough with so many entries, whose mean size is off by so much at most by chance,
	// and after so many seconds and mean times to commit; longestTurn seconds and a single mean time are enough.
	turnEntries = 32
	turnChance  = 0.1
	turnTime    = 0.1
	turnWaits   = 8
	longestTurn = 1

	// A trial ends if an entry waits for trialWait times the longest wait before, or if fewEntries or
	// more, in turnTime and a mean time to commit or more, take trialWait times as long. The time between two trials, in lengths
	// of a trial and of the queue that it leaves, doubles with each trial that fails.
	trialWait  = 2
	fewEntries = 4
	repeatGap  = 2 // after one that spoke against what is in force, or that leaves doubts
	firstGap   = 16
	longestGap = 128

	otherLoad   = 3 // so many times longer or shorter, larger or smaller than at the last trial: of another load
	queuedTurns = 8 // in a row, in which entries wait for another time: that is no queue that a trial has left

	farApart   = 0.8  // below this part of another, a time in which entries wait is clearly shorter
	codingGain = 0.95 // coding pays below this part of the time of full copies

	// The doubts about the mean of n trials, as logarithms, are these divided by the root of n: for
	// full copies to take over, and for coding.
	doubtFull   = 0.1
	doubtCoding = 0.2
	doubtFew    = 0.25 // and not to try again soon after few trials
	mostTold    = 1.1  // by one trial
	firstRatio  = 0.15 // the ratio before any trial, which counts as one
	trialMemory = 8    // trials that count
	fewTrials   = 2    // and of another load; the ratio before any counts as so many where processors suggest full copies
	doubtTrials = 3    // so few leave doubts

	leastTime = 1e-9 // seconds, the least sum of times

	trialFlights = 256 // entries of a group that are remembered until they commit

	forgotten = 1 // seconds after which a group without news is taken for one that does not lead any more
)

// processors is what is known of processors, and the turns of full copies.
type processors struct {
	share  average // the busiest that a commit needs
	last   float64 // what was heard of it last
	count  bool    // processors count
	full   bool    // entries travel as full copies
	trying bool    // and this is a trial
	won    bool    // full copies were in force when processors counted last

	now    float64 // without the time in which no entry waited
	rested float64 // that time
	commit float64 // time of the last commit
	lanes  []*lane // of groups that have proposed, and were heard of lately
	open   int     // lanes with an entry that waits
	old    int     // and with one from before the turn
	order  uint64  // entries proposed
	swept  float64 // when lanes were looked at

	since uint64 // the first entry, in order, of the present form
	took  times  // of groups that do not go apart

	*turns      // nil before the first large entry
	coded  bool // an entry of the turn was coded
	differ bool // known is of what is in force, and the other form is another

	ratio  float64 // of the last trials: the mean logarithm of the part of the time of full copies that coding took
	trials float64 // how many, trialMemory at most

	gap, wait float64 // between two trials, in lengths of a trial: after one that fails, after the last one
	began     float64 // of the trial
	next      float64 // time of the next trial; 0: entries of the last one still waited
	soon      float64 // and of the next one where entries have waited for another time in queuedTurns turns
	queued    int     // turns in a row in which they have
	tried     load    // at the last trial
}

// turns are those that are compared.
type turns struct {
	turn  turn
	known turn // the last whole turn of what is in force
}

// turn is the entries that committed since no entry from before waited any more.
type turn struct {
	from  uint64  // the first entry proposed since, in order; 0: entries from before still wait
	begun float64 // or, while these wait, when the form changed

	n              float64
	busy           float64 // time in which an entry waited
	bytes, squares float64 // sums of the sizes, and of their squares

	alone    float64 // how many were proposed since, so that they waited for none from before
	sum, max float64 // of their times to commit

	pause pause
}

// Busy implements ecraft.ProcessorObserver.
func (a *Policy) Busy(member uint64, share float64) {
	share = min(max(share, 0), 1)
	if member == 0 {
		a.busy = share
	} else if l := a.link(member); l != nil {
		l.busy = share
	}
}

// at tells the time.
func (p *processors) at(now float64) { p.now = max(p.now, now-p.rested) }

// reset forgets who was better.
func (p *processors) reset() {
	*p = processors{share: p.share, ratio: firstRatio, trials: 1, gap: firstGap}
}

// committed notes the times of entries; the time is the time of the last answer.
func (p *processors) committed(l *lane, index uint64) {
	if !l.in {
		return
	}
	if p.settle(l, index); p.turns == nil {
		return
	}
	t := &p.turn
	if t.from > 0 && l.entries.Len() > 0 && l.entries.Front().index <= index {
		t.paused(max(l.entries.Front().at, p.commit), p.now)
	}
	for l.entries.Len() > 0 && l.entries.Front().index <= index {
		w := l.entries.PopFront()
		if p.takes(l, w); t.from > 0 {
			t.add(w, p.commit, p.now)
			p.commit = p.now
		}
	}
	p.commit = p.now
	p.clear()
}

// clear lets the turn begin once no entry from before waits. Entries of a group without a majority may wait without end: the
// others wait for them no longer than entries do.
func (p *processors) clear() {
	if p.turn.from == 0 && (p.old == 0 || p.now-p.turn.begun > trialWait*max(cmp.Or(p.known.max, longestTurn), turnTime)) {
		p.turn.from, p.turn.begun = p.order+1, p.now
	}
}

// add counts an entry that committed at now, and the entry before at before. Between them, some entry waited.
func (t *turn) add(w waiting, before, now float64) {
	t.n++
	t.busy += now - before
	t.bytes += w.size
	t.squares += w.size * w.size
	if t.pause.from < now && now == t.pause.to {
		t.pause.n++
		t.pause.bytes += w.size
	}
	if w.order >= t.from {
		t.alone++
		t.sum += now - w.at
		t.pause.sum += max(0, t.pause.to-max(w.at, t.pause.from))
		t.max = max(t.max, now-w.at)
	}
}

// slower reports whether the entries so far took far longer than those of another turn. Answers may
// come in bursts, so the entries must have had the mean time in which those of the other turn committed.
func (t *turn) slower(than *turn, now float64) bool {
	if t.n < fewEntries || now-t.begun < max(turnTime, than.mean()) {
		return false
	}
	busy, n, bytes := t.steady()
	known, knownN, knownBytes := than.steady()
	far := trialWait * known
	return busy*knownN > far*n && busy*knownBytes > far*bytes
}

// begin begins a turn.
func (p *processors) begin() {
	p.turn, p.coded, p.differ, p.old = turn{begun: p.now}, false, false, 0
	p.since, p.took.full = p.order+1, logMean{}
	for _, l := range p.lanes {
		l.took.full = logMean{}
		if l.before = l.last; l.old() {
			p.old++
		}
	}
	p.clear()
}

// whole reports whether a turn tells enough: it has enough entries, and their mean size is not by
// chance far from that of other turns.
func (t *turn) whole(now float64) bool {
	chance := t.n*t.squares/(t.bytes*t.bytes) - 1 // variance of a size, relative
	return t.alone >= turnEntries && chance <= turnChance*turnChance*t.n &&
		now-t.begun >= min(max(turnTime, turnWaits*t.mean()), max(longestTurn, t.mean()))
}

// part returns which part of the time of another turn's entries the entries took.
func (t *turn) part(of *turn) float64 {
	if busy := t.pace() / of.pace(); far(busy, farApart) {
		return busy
	}
	return t.mean() / of.mean()
}

// far reports whether a ratio is beyond a factor, or its inverse.
func far(ratio, factor float64) bool {
	return math.Abs(math.Log(ratio)) > math.Abs(math.Log(factor))
}

// pace returns the time for an entry.
func (t *turn) pace() float64 {
	busy, n, _ := t.steady()
	return max(busy, leastTime) / n
}

// mean returns the mean time to commit.
func (t *turn) mean() float64 { return max(t.sum-t.pause.sum, leastTime) / t.alone }

// steady returns the sums of a turn without its pause.
func (t *turn) steady() (busy, n, bytes float64) {
	return t.busy - (t.pause.to - t.pause.from), t.n - t.pause.n, t.bytes - t.pause.bytes
}

// pause is a time in which entries waited and none committed, far longer than any entry of the turn had waited.
type pause struct {
	from, to float64
	n, bytes float64 // entries that committed at its end, and their bytes
	sum      float64 // by how much entries committed later for it
}

// paused takes a time in which entries waited and none committed. The time is a pause only if entries of the
// turn committed much faster before: in a closed loop whose entries commit in bursts, each entry waits as long as
// the time between two bursts.
func (t *turn) paused(from, to float64) {
	if t.alone >= fewEntries && to-from > trialWait*t.max {
		t.pause = pause{from: from, to: to}
	}
}

// busiest returns the share of time for which the processors are busy that a commit needs.
func (a *Policy) busiest(r *ecraft.Round) float64 {
	c := &a.choice
	c.sorted = c.sorted[:0]
	for _, i := range c.byCost {
		c.sorted = append(c.sorted, c.peers[i].busy)
	}
	slices.Sort(c.sorted)
	return max(a.busy, c.sorted[r.Voters/2-1])
}

// wantFull reports whether an entry is to travel as full copies for the sake of processors.
func (p *processors) wantFull(l *lane, busy, now float64) bool {
	if !l.large {
		l.large = true
		p.proposed(l, l.last, l.size, now)
	}
	p.at(now)
	p.last = busy
	p.share.add(busy, p.now, busyMemory)
	if p.turns == nil {
		p.turns = new(turns)
		p.begin()
	}
	switch busy = p.share.value; {
	case !p.count && busy > busyFrom:
		if p.count, p.full = true, p.won; p.full {
			p.begin()
		} else if seen := p.load(&p.known); p.known.n > 0 && seen.hint == units && seen.other(p.tried) {
			p.meets(seen, p.turn.begun-p.known.begun)
			p.soon = p.now // once processors do not rest any more
		}
	case p.count && busy < busyTo:
		p.won = p.full != p.trying // what was in force
		p.count, p.full, p.trying = false, false, false
		p.begin()
	case p.trying:
		p.judge(l)
	default:
		p.look()
	}
	return p.full && !p.goesApart(l)
}

// look notes the times of what is in force, and begins a trial of the other if processors count. Where
// the choice by links is full copies, there is nothing to try.
func (p *processors) look() {
	if p.turn.whole(p.now) {
		if p.next == 0 {
			length := p.turn.begun - p.began
			p.next, p.soon = p.turn.begun+p.wait*length, p.turn.begun+firstGap*length
		}
		length := p.now - p.turn.begun
		p.known, p.differ = p.turn, p.full || p.coded
		p.turn, p.coded = turn{from: p.order + 1, begun: p.now}, false
		seen := p.load(&p.known)
		if p.queued++; !seen.waits(p.tried) {
			p.queued = 0
		}
		switch {
		case !p.count || !p.differ:
		case seen.other(p.tried):
			p.meets(seen, length)
		case p.queued >= queuedTurns && seen.hint != units:
			p.next = min(p.next, p.soon)
		}
	}
	// Processors that rest speak against full copies, and those that do not against coding.
	if hint := p.suggested(); (hint == units) == p.full && hint != p.tried.hint {
		p.next = min(p.next, p.soon)
	}
	if p.count && p.differ && p.now >= p.next {
		if p.tried = p.load(&p.known); p.tried.hint == copies {
			p.trials = max(p.trials, fewTrials)
		}
		p.full, p.trying, p.began = !p.full, true, p.now
		p.begin()
	}
}

// judge ends a trial when its entries tell enough, or wait for too long.
func (p *processors) judge(l *lane) {
	slow, stuck := p.turn.slower(&p.known, p.now), p.stuck(l, p.now)
	if !slow && !stuck && !p.turn.whole(p.now) {
		return
	}
	ratio := p.tell(slow, stuck)
	p.trials = min(p.trials+1, trialMemory)
	p.ratio += (ratio - p.ratio) / p.trials
	switch {
	case p.proven():
		p.wait, p.gap, p.tried = firstGap, firstGap, p.load(&p.turn)
	case prefersFull(ratio) == p.full, p.trials <= doubtTrials && p.lead(!p.full) < doubtFew:
		p.full, p.wait = !p.full, repeatGap
	default:
		p.full = !p.full
		p.wait, p.gap = p.gap, min(2*p.gap, longestGap)
	}
	if prefersFull(ratio) == p.full && p.suggested() == p.inForce() {
		p.wait = longestGap
	}
	p.trying, p.next = false, 0
	p.begin()
}

// tell returns the logarithm of the part of the time of full copies that coding takes, by a trial. Where an
// entry is stuck, the entries that committed before tell.
func (p *processors) tell(slow, stuck bool) float64 {
	part := float64(trialWait)
	switch _, n, _ := p.turn.steady(); {
	case stuck && !slow && n >= fewEntries:
		part = p.turn.pace() / p.known.pace()
	case !stuck && !slow:
		part = p.turn.part(&p.known)
	}
	ratio := min(max(math.Log(part), -mostTold), mostTold)
	if p.full {
		return -ratio
	}
	return ratio
}

// prefersFull reports whether full copies are better by a ratio.
func prefersFull(ratio float64) bool { return ratio >= math.Log(codingGain) }

// proven reports whether what is tried is better beyond doubt.
func (p *processors) proven() bool {
	if p.full {
		return p.lead(p.full) > doubtFull
	}
	return p.lead(p.full) > doubtCoding
}

// lead returns by how much a form is better, in doubts of a single trial.
func (p *processors) lead(full bool) float64 {
	lead := (p.ratio - math.Log(codingGain)) * math.Sqrt(p.trials)
	if !full {
		return -lead
	}
	return lead
}

// stuck reports whether an entry of a trial, of the lane that proposes, waits far longer than any before.
func (p *processors) stuck(l *lane, now float64) bool {
	t := &p.turn
	if l.entries.Len() == 0 || t.from == 0 {
		return false
	}
	w := l.entries.Front()
	return w.order >= t.from && now-w.at > trialWait*max(p.known.max, t.begun-p.began)
}
