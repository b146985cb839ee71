// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
	"time"
)

// Report is what a node tells another. Reports also measure the link between the nodes: a report carries the
// time at which it was sent, by its sender's clock, and the next report of the other node carries it back.
type Report struct {
	// Figure is the sender's, without Reach.
	Figure Figure
	Weight int
	// Stamp is the sender's time. Answers is the last Stamp that came from the receiver, 0 for none, and Held the
	// time for which the sender has had it. All three are whole microseconds.
	Stamp, Answers, Held time.Duration
	// Links are the sender's links to the nearest of the other nodes, at most maxLinks.
	Links []Link
}

// Link is the round trip of a message to another node.
type Link struct {
	Node  uint64
	Round time.Duration
}

// trips are the last round trips to another node.
type trips struct {
	last   [roundsKept]time.Duration
	count  int           // of last, at most roundsKept
	next   int           // index of the oldest
	stamp  time.Duration // of the last round trip
	knowAt time.Duration // when it ended
}

// answered notes an answer. Stamps of a peer are not trusted: a stamp that this node cannot have sent lately says
// nothing, and neither does one that has been answered.
func (t *trips) answered(now, timeout time.Duration, r Report) {
	took := now - r.Answers - max(r.Held, 0)
	if r.Answers <= t.stamp || r.Answers > now || now-r.Answers > roundsLast*timeout || took < 0 {
		return
	}
	t.last[t.next] = took
	t.next = (t.next + 1) % roundsKept
	t.count = min(t.count+1, roundsKept)
	t.stamp, t.knowAt = r.Answers, now
}

// round returns the median of the last round trips; with two, the shorter. It is at least a microsecond, and 0
// if nothing is known.
func (t *trips) round(now, timeout time.Duration) time.Duration {
	if t.count == 0 || now-t.knowAt > roundsLast*timeout {
		return 0
	}
	sorted := t.last
	slices.Sort(sorted[:t.count])
	return max(sorted[(t.count-1)/2], time.Microsecond)
}

// shortest returns the shortest of the last round trips, or 0 if there are not enough to be sure of.
func (t *trips) shortest(now, timeout time.Duration) time.Duration {
	if t.count < roundsKept || now-t.knowAt > timeout {
		return 0
	}
	return max(slices.Min(t.last[:]), time.Microsecond)
}

// links returns the nearest of the other nodes. The caller holds n.mu.
func (n *Node) links(now time.Duration) (all []Link) {
	for id, o := range n.others {
		if round := o.trips.round(now, n.cfg.Timeout); round > 0 && n.fresh(o, now) {
			all = append(all, Link{id, round})
		}
	}
	return byRound(all)
}

// byRound sorts links, the nearest first, and returns the first maxLinks.
func byRound(all []Link) []Link {
	slices.SortFunc(all, func(a, b Link) int { return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Node, b.Node)) })
	return all[:min(len(all), maxLinks)]
}

// reachOf returns the round trip to the nearer half of the other voters: with the node itself they are a majority, and
// a command is committed when the last of them has answered. links are sorted by round trip. It is 0 if too
// few of the links are known, or none is needed.
func reachOf(id uint64, links []Link, voters []uint64) time.Duration {
	need := len(voters) / 2
	for _, l := range links {
		if l.Node == id || !slices.Contains(voters, l.Node) {
			continue
		}
		if need--; need == 0 {
			return l.Round
		}
	}
	return 0
}

// Reach returns how long a node takes to reach a majority of the voters of a group, and an answer to come back,
// as the node has measured it; 0 if that is not known.
func (n *Node) Reach(id uint64, voters []uint64) time.Duration {
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if id == n.cfg.ID {
		n.ownLocked(now)
		return reachOf(id, n.ownLinks, voters)
	}
	if o := n.others[id]; o != nil && n.fresh(o, now) {
		return reachOf(id, o.links, voters)
	}
	return 0
}

// Surely returns how long this node takes at least to reach a majority of the voters of a group, as far as that is
// sure: by the shortest of the last round trips; 0 if that is not known.
func (n *Node) Surely(voters []uint64) time.Duration {
	now := n.cfg.Clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []Link
	for id, o := range n.others {
		if round := o.trips.shortest(now, n.cfg.Timeout); round > 0 {
			all = append(all, Link{id, round})
		}
	}
	return reachOf(n.cfg.ID, byRound(all), voters)
}

// far reports whether some other node may be so much nearer to a majority than this node that it matters which of them
// leads, for the voters of any group: this node needs at most the farthest of the others, and the other node at least
// the nearest. surely says that it is so by the shortest of the last round trips to the nearest. The caller holds n.mu.
func (n *Node) far(now time.Duration) (far, surely bool) {
	if len(n.ownLinks) == 0 {
		return false, false
	}
	farthest, shortest := n.ownLinks[len(n.ownLinks)-1].Round, time.Duration(0)
	for _, o := range n.others {
		if round := o.trips.shortest(now, n.cfg.Timeout); shortest == 0 || round > 0 && round < shortest {
			shortest = round
		}
	}
	for _, o := range n.others {
		if len(o.links) > 0 && n.fresh(o, now) {
			far = far || worse(farthest, o.links[0].Round)
			surely = surely || worse(shortest, o.links[0].Round)
		}
	}
	return far, surely
}
