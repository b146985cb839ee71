// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math"
	"slices"

	"github.com/weftraft/weft/ecraft/internal/ring"
)

// waiting is an entry that is not committed; order counts the entries of all groups.
type waiting struct {
	index, order uint64
	at, size     float64
}

// lane is the entries of a group, from its first large one on: groups whose entries are all small tell nothing of coding.
type lane struct {
	entries ring.Ring[waiting]
	large   bool    // the group has had a large entry
	in      bool    // the lane is one of those of processors
	last    uint64  // the last entry proposed
	size    float64 // and its size
	done    uint64  // the last entry committed; none waits if it is the last one proposed
	before  uint64  // the last entry from before the turn
	heard   float64 // time of the last news

	took  times
	apart uint64 // the first entry, in order, that travels apart from those of other groups; see takes
}

func (l *lane) waits() bool { return l.done < l.last }

// old reports whether an entry from before the turn waits.
func (l *lane) old() bool { return l.done < min(l.before, l.last) }

// proposed notes an entry.
func (p *processors) proposed(l *lane, index uint64, size, now float64) {
	if !l.large {
		l.last, l.size = index, size
		return
	}
	l.heard = now
	p.sweep(now)
	if p.open == 0 {
		p.rested = max(p.rested, now-p.now)
	}
	p.at(now)
	if !l.in {
		p.lanes = append(p.lanes, l)
		l.in, l.last, l.done = true, index-1, index-1
	}
	if !l.waits() {
		p.open++
	}
	p.order++
	if l.last = index; p.turns != nil {
		if l.entries.Full() && l.entries.Len() == 0 {
			l.entries.Init(trialFlights)
		}
		l.entries.Push(waiting{index, p.order, p.now, size}) // of very many entries some are enough
	}
}

// settle notes that no entry of a lane up to an index waits.
func (p *processors) settle(l *lane, index uint64) {
	open, old := l.waits(), l.old()
	l.done = max(l.done, index)
	if open && !l.waits() {
		p.open--
	}
	if old && !l.old() {
		p.old--
	}
}

// sweep forgets lanes without news: their groups do not lead any more, or no entry of theirs can commit.
func (p *processors) sweep(now float64) {
	if now-p.swept >= forgotten {
		p.swept = now
		p.leave(func(l *lane) bool { return now-l.heard >= forgotten })
	}
}

// leave forgets lanes.
func (p *processors) leave(gone func(l *lane) bool) {
	p.lanes = slices.DeleteFunc(p.lanes, func(l *lane) bool {
		if !gone(l) {
			return false
		}
		p.settle(l, l.last)
		l.entries.Clear()
		l.in, l.last, l.done, l.before = false, 0, 0, 0
		l.took.full = logMean{}
		return true
	})
	if p.turns != nil {
		p.clear()
	}
}

// times are to commit, by the form of entries: as full copies since these are in force.
type times struct{ byLinks, full logMean }

// grew is by how much full copies take longer, as a logarithm.
func (t *times) grew() float64 { return t.full.value - t.byLinks.value }

// logMean is a mean logarithm of recent times.
type logMean struct{ value, n float64 }

func (m *logMean) add(time float64) {
	m.n = min(m.n+1, turnEntries)
	m.value += (math.Log(max(time, leastTime)) - m.value) / m.n
}

// takes notes the time that an entry took. Where full copies are in force, the entries of most groups fare better so; but those of
// one may go over links of their own, which full copies fill. If its times grow by far more than those of the others, it goes by
// its links, until the form changes for all: then it tries again.
func (p *processors) takes(l *lane, w waiting) {
	if w.order < max(p.since, l.apart) {
		return // of another form
	}
	took, apart := p.now-w.at, p.goesApart(l)
	if apart || !p.full {
		if l.took.byLinks.add(took); !apart {
			p.took.byLinks.add(took)
		}
		return
	}
	l.took.full.add(took)
	p.took.full.add(took)
	if l.took.full.n >= 2*fewEntries && l.took.grew()-p.took.grew() > 2*math.Log(trialWait) && len(p.lanes) > 1 {
		l.apart = p.order + 1
	}
}

// goesApart reports whether a group goes by its links whatever the others do. It does at first, because full copies may leave it a
// queue behind which no entry would show how it fares by its links.
func (p *processors) goesApart(l *lane) bool {
	return l.apart > p.since || l.took.byLinks.n < 2*fewEntries && len(p.lanes) > 1
}
