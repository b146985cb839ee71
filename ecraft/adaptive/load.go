// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

// load is what tells one load from another.
type load struct {
	pace, mean, size float64 // the time for an entry, the mean time to commit, the mean size
	hint             form    // what processors suggest, or unknown
}

// form is how entries travel.
type form int8

const (
	unknown form = iota
	copies
	units
)

func (p *processors) load(t *turn) load {
	return load{t.pace(), t.mean(), t.bytes / t.n, p.suggested()}
}

// suggested returns the form that is better, most likely: processors that are always busy are what entries wait for, and those that
// rest while entries wait are not.
func (p *processors) suggested() form {
	switch {
	case max(p.share.value, p.last) >= busySpent:
		return copies
	case p.share.value < busySpare:
		return units
	}
	return unknown
}

// inForce returns the form that is in force.
func (p *processors) inForce() form {
	if p.full {
		return copies
	}
	return units
}

// other reports whether a load is another than that of the last trial, or there was none.
func (l load) other(than load) bool {
	return than.size == 0 || far(l.pace/than.pace, otherLoad) || far(l.size/than.size, otherLoad)
}

// waits reports whether entries wait for another time than at the last trial: there may be more or fewer of them, or the trial
// has left a queue.
func (l load) waits(than load) bool { return than.size > 0 && far(l.mean/than.mean, otherLoad) }

// meets plans the first trial of another load, whose last turn had a length: at once, or if processors suggest what is in force,
// after firstGap such lengths. Processors that rest are not busy with work of others: full copies wait for longestGap.
func (p *processors) meets(l load, length float64) {
	p.gap, p.trials, p.tried = firstGap, min(p.trials, fewTrials), l
	at := p.now
	switch {
	case l.hint != p.inForce():
	case p.full:
		at += firstGap * length
	default:
		at += longestGap * length
	}
	if p.next <= p.now || at < p.next {
		p.next = at
	}
}
