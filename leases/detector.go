// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import "time"

// fit says whether a leader may name a node as a responder.
type fit struct {
	named   bool
	since   Instant       // since when the node keeps up; 0 if the node lags
	at      Instant       // when named became true
	backoff time.Duration // how long the node must keep up before a roster names the node again; 0: it is as good as new
	late    bool          // a write has waited for the node for half of Fail, and still does
	falters int           // how often late became true, each time within faltersFails of the time before
	stumble Instant       // when late became true last
	match   Index         // acknowledged when assessed last
	moved   Instant       // when assessed last with more acknowledged than before, or with nothing to wait for
}

// shown returns for how long a node has shown that it keeps up: up to its last answer, or to
// its last acknowledgement if that is older. The silence after these shows nothing. A node that
// stands still again and again would be named in the middle of its silence, and hold writes up.
func (f *fit) shown(answered Instant) time.Duration { return min(answered, f.moved).since(f.since) }

// mark is where the leader's log ended at an instant.
type mark struct {
	at   Instant
	last Index
}

// Bounds of the failure detector.
const (
	marksPerFail = 8  // how finely the age of an entry is known: in parts of Fail
	maxBackoff   = 64 // of a responder that was removed again and again, in Fails
	// A responder that was removed and has been named again is as good as new after so many of
	// its backoffs without a falter, or so many Fails if that is less.
	redeemBackoffs, redeemFails = 16, 512
	// forgiven is how many falters of a responder that is as good as new are forgiven, if each
	// follows within faltersFails Fails on the falter before. A disk may hesitate twice.
	forgiven     = 2
	faltersFails = 16
)

// detect looks, at a leader's tick, for responders that failed or recovered.
//
// A responder failed when an entry has waited for its acknowledgement for
// Fail, or when nothing the leader asked of it was answered for as long. To have
// heard from it is not enough: a node whose disk is stuck, or that hears nothing,
// goes on asking for leases and acknowledges nothing. A responder that makes writes
// wait for half of Fail falters, and failed if it does so again and again. A responder that
// is merely slower than the others limps, and failed if it goes on to do so.
func (n *Node) detect(now Instant) {
	l := n.leading
	if n.pauses(now) || n.isOff() {
		// Answers received during a pause wait behind the tick. A leader
		// without a wish for leases asks for nothing.
		l.marks = l.marks[:0]
		for _, p := range n.peers {
			if p.follow.answered != 0 {
				p.follow.answered = max(p.follow.answered, now.after(-n.cfg.Fail/2))
			}
		}
	}
	l.ticked = now
	if len(l.marks) == 0 || now.since(l.marks[len(l.marks)-1].at) >= n.cfg.Fail/marksPerFail {
		l.marks = append(l.marks, mark{at: now, last: n.last})
	}
	for len(l.marks) > 1 && now.since(l.marks[1].at) >= n.cfg.Fail {
		l.marks = l.marks[1:]
	}
	n.measure(now)
	for _, p := range n.peers {
		n.assess(now, p)
	}
}

// graceFails is for how many Fails ticks must have come in time before a late one counts as a
// pause again.
const graceFails = 4

// pauses reports whether this node has just stood still, so that silence of others shows
// nothing. A node whose ticks are often late is slow, and gets this grace once: with grace at
// each late tick, a dead responder would hold writes up as long as the ticks stay late.
func (n *Node) pauses(now Instant) bool {
	l := n.leading
	if now.since(l.ticked) <= n.cfg.Fail/2 {
		return false
	}
	first := l.gap == 0 || l.ticked.since(l.gap) >= graceFails*n.cfg.Fail
	l.gap = now
	return first
}

// assess decides whether a node may be named.
func (n *Node) assess(now Instant, p *peer) {
	f := &p.follow.fit
	p.follow.speaks = p.follow.speaks && !n.isSilent(now, &p.follow)
	if p.follow.match > f.match || p.follow.match >= n.last {
		f.match, f.moved = p.follow.match, now
	}
	switch {
	case f.named:
		if now.since(f.at) >= min(redeemBackoffs*f.backoff, redeemFails*n.cfg.Fail) {
			f.backoff = 0
		}
		if reason := n.fails(now, p); reason != nil {
			*f = fit{match: f.match, moved: f.moved, backoff: min(max(2*f.backoff, n.cfg.Fail), maxBackoff*n.cfg.Fail)}
			if n.rosters.newest().names(p.id) {
				n.counts.Removed++
				*reason++
			}
		}
	case !n.keepsUp(now, &p.follow) || p.follow.pace.slow > wellWindows:
		f.since = 0
	case f.since == 0:
		f.since = now
		fallthrough
	default:
		if f.backoff == 0 || f.shown(p.follow.answered) >= f.backoff {
			f.named, f.at = true, now
			if f.backoff > 0 && n.isWanted(p.id) {
				n.counts.Restored++
			}
		}
	}
}

// fails returns the count of the reason for which a responder has to go; nil if there is none.
func (n *Node) fails(now Instant, p *peer) *uint64 {
	_, waits := n.isWaitedFor(now, p, n.cfg.Fail)
	switch {
	case n.isSilent(now, &p.follow):
		return &n.counts.Silent
	case waits:
		return &n.counts.Stuck
	case n.falters(now, p):
		return &n.counts.Faltered
	case p.follow.pace.slow >= limpWindows:
		return &n.counts.Limped
	}
	return nil
}

// isSilent reports whether a node has answered nothing for Fail.
func (n *Node) isSilent(now Instant, f *follow) bool {
	return f.answered == 0 || now.since(f.answered) >= n.cfg.Fail
}

// keepsUp reports whether a node answers, and lacks nothing that is older than half of Fail.
func (n *Node) keepsUp(now Instant, f *follow) bool {
	return !n.isSilent(now, f) && f.match >= max(n.leading.first, n.leading.lastAt(now.after(-n.cfg.Fail/2)))
}

// falters notes whether a responder keeps a write waiting for half of Fail, which would keep it
// from being named, and reports whether that was once too often. A write that a majority lacks
// waits for the majority.
func (n *Node) falters(now Instant, p *peer) bool {
	f := &p.follow.fit
	begins := !f.late
	i, waits := n.isWaitedFor(now, p, n.cfg.Fail/2)
	f.late = waits && n.members.majority(func(v NodeID) bool { return v == n.cfg.ID || n.peer(v).follow.match >= i })
	if !f.late || !begins {
		return false
	}
	if now.since(f.stumble) > faltersFails*n.cfg.Fail {
		f.falters = 0
	}
	f.falters++
	f.stumble = now
	return f.backoff > 0 || f.falters > forgiven
}

// isWaitedFor returns an entry that has waited for a responder for d, and whether there is one.
func (n *Node) isWaitedFor(now Instant, p *peer, d time.Duration) (Index, bool) {
	old := n.leading.lastAt(now.after(-d + n.cfg.Fail/marksPerFail))
	for _, a := range n.rosters.newest().Spans {
		if b, named := a.barrier(p.id); named {
			if i, waits := n.touches.first(max(p.follow.match, b, n.committed), a.Span, old); waits {
				return i, true
			}
		}
	}
	return 0, false
}

// lastAt returns an index that the log had reached at an instant; the log may
// have been longer. The result is 0 if the instant is long ago.
func (l *leading) lastAt(t Instant) Index {
	last := Index(0)
	for _, m := range l.marks {
		if m.at <= t {
			last = m.last
		}
	}
	return last
}
