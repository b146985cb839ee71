// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Node is the leases of one member: the member's promises, the leases held, the rosters
// known, and, while the member leads, the rosters made.
//
// Its methods are questions, news and work. Questions (MayVote, IsStable, ReadIndex,
// Permit, Committable, Status, ...) change nothing. News (Turned, Heard, Appended, Step, ...)
// report events to the node. Tick and Poll are its work. One goroutine at a time may call
// the methods. An instant in a call is a reading of the node's own clock, made after the
// arrival of the message, or the read, of the call.
type Node struct {
	cfg   Config
	delta time.Duration
	// latest is the latest reading of the clock. Invariant: it never falls.
	latest Instant

	// News from Raft.
	term    Term
	durable Term // on disk. Invariant: at most term.
	leader  NodeID
	former  NodeID  // another node that led last; 0 if none is known
	heard   Instant // when the leader of term was heard last; 0 if it never was
	members Members
	// Invariant: applied <= committed <= last.
	last, committed, applied Index
	touches                  touches

	// Invariant: ids ascend, and none is this node's own.
	peers   []*peer
	counter uint64  // of the newest nonce
	rosters rosters // of term
	// Invariant: nil or a known roster of term, adopted when no promise stood
	// against the roster.
	adopted *Roster
	wish    wish
	restart restart
	aside   bool     // the clock is not fit
	leading *leading // nil unless this node leads
	notes   notes
	tuner   *tuner // nil while the tuner is off
	counts  Counts
}

// wish is the responders wanted by the newest roster, of any term, known to this
// node.
type wish struct {
	id      RosterID // Invariant: id never falls.
	wanted  []Want
	retired bool
	tuner   TunerMode
}

// peer is this node's account of another node.
type peer struct {
	id NodeID

	// As a grantor.
	promise promise
	clock   ClockBound
	request Nonce   // the newest that is not answered; none if there is none
	owed    Answer  // decided and not sent yet
	atOnce  bool    // owed does not wait for the next heartbeat
	revoked Nonce   // the newest promise whose revocation was sent
	prompt  Instant // when an answer was hurried last, for the peer to measure its trip

	// As a grantee.
	sent    [maxSent]sentRequest // the newest requests; the oldest gives way to the next
	floor   uint64               // answers to this run's requests up to this counter are void
	holding holding
	confirm Nonce // to be sent

	// A leader's knowledge of the peer, in its term.
	follow follow
	report bool // the leader needs a report of this node's known and adopted rosters

	noted Index   // how far the peer holds the log of term, by its notes
	next  Instant // when the next heartbeat is due
}

// Start is a node's knowledge of itself at its start.
type Start struct {
	Now  Instant // more than 0, as all readings of the clock
	Term Term    // of the HardState on disk
	// Empty says that the HardState was empty. The node then has never vouched for
	// anything, and need not wait.
	Empty bool
}

// New returns the leases of a starting node. The error is the error of
// Config.Validate.
func New(cfg Config, s Start) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	n := &Node{cfg: cfg, delta: cfg.delta(cfg.clock()), latest: max(s.Now, 1), term: s.Term, durable: s.Term}
	n.wish.wanted = cfg.Wanted
	if !s.Empty {
		n.restart = restart{until: n.latest.after(cfg.Quarantine), term: s.Term, asking: true}
	}
	n.syncTuner()
	return n, nil
}

// advance takes a reading of the clock that came with news or work.
//
// A reading may be below an earlier one, because the call was late. The clock has
// passed both, so the higher one is right.
func (n *Node) advance(now Instant) Instant {
	n.latest = max(n.latest, now)
	return n.latest
}

// at returns the instant that a question is about.
func (n *Node) at(now Instant) Instant { return max(n.latest, now) }

// A Turn is a change of term, role or leader.
type Turn struct {
	Term   Term
	Leader NodeID // 0 if unknown; the node's own id if the node leads
	First  Index  // the index of the leader's empty entry, if this node leads
}

// Turned reports that the term, the leader or the role of this node has
// changed. Promises stand, because promises outlive terms.
func (n *Node) Turned(now Instant, t Turn) {
	now = n.advance(now)
	if t.Term != n.term {
		n.term = t.Term
		n.heard = 0
		n.rosters, n.adopted, n.notes = rosters{}, nil, notes{}
		for _, p := range n.peers {
			p.request, p.owed, p.atOnce = Nonce{}, Answer{}, false
			p.holding, p.follow, p.noted, p.report = holding{}, p.follow.anew(), 0, false
		}
		n.leading = nil
	}
	if n.leader != 0 && n.leader != t.Leader {
		n.former = n.leader
	}
	n.leader = t.Leader
	switch {
	case t.Leader != n.cfg.ID:
		n.leading = nil
	case n.leading == nil:
		n.startLeading(now, t.First)
	}
	n.syncPeers()
}

// TermDurable tells that the HardState on disk has reached a term. The node adopts
// and grants nothing in a term that is not on disk.
func (n *Node) TermDurable(t Term) { n.durable = min(max(n.durable, t), n.term) }

// Heard tells that a message of the leader of the current term has arrived. The
// reading may be old; an old reading makes leases shorter.
func (n *Node) Heard(now Instant) { n.heard = max(n.heard, now) }

// Configured tells that a configuration has been applied, or that others count beside it.
func (n *Node) Configured(now Instant, m Members) {
	now = n.advance(now)
	if l := n.leading; l != nil && slices.ContainsFunc(m.Incoming, func(id NodeID) bool { return !n.members.counts(id) }) {
		l.joined = now
	}
	before := n.members
	n.members = Members{Voters: m.Voters.clone(), Learners: ascending(m.Learners)}
	for _, ids := range m.Coming {
		n.members.Coming = append(n.members.Coming, ascending(ids))
	}
	// A member that has left may come back with an empty disk, and has then forgotten what it promised (rule L35). The log may
	// already say that it comes back.
	for _, p := range n.peers {
		if !n.members.has(p.id) && (before.has(p.id) || !n.members.counts(p.id)) {
			p.holding, p.sent = holding{}, [maxSent]sentRequest{}
		}
	}
	n.syncPeers()
	n.rostersMayChange()
}

// Entries are appended entries, in the place of all entries from First on.
type Entries struct {
	First Index
	Count int
	// At is when a leader appended them. Other nodes need not tell.
	At Instant
	// Keys returns the keys that an entry touches: every key if the spans are nil,
	// no key if they are empty and not nil. If Keys is nil, every entry touches
	// every key.
	Keys func(Index) []Span
}

// Appended tells that entries were appended.
func (n *Node) Appended(e Entries) {
	n.last = e.First + Index(e.Count) - 1
	n.touches.cut(e.First - 1)
	if e.Keys != nil {
		for i := e.First; i <= n.last; i++ {
			n.touches.note(i, e.Keys(i))
		}
	}
	if n.leading != nil {
		n.leading.appended(e.At, n.last, n.cfg.Fail)
	}
}

// Truncated tells that the log ends at last, because entries were cut off.
func (n *Node) Truncated(last Index) {
	n.last = last
	n.touches.cut(last)
}

// Restored tells that a snapshot has taken the place of the log. The entries up to there may be others than those that
// this node knew, and under the id of a grantor there may be another member since, which knows of no promise.
func (n *Node) Restored(i Index) {
	n.touches.cut(0)
	n.last, n.committed = i, i
	n.GiveUp()
}

// Committed tells the commit index.
func (n *Node) Committed(i Index) { n.committed = i }

// Applied tells up to where the log, or a snapshot, is applied.
func (n *Node) Applied(i Index) {
	if n.leading != nil && n.applied < n.leading.settled { // otherwise no roster depends on it
		n.leading.outdated = true
	}
	n.applied = i
	n.touches.forget(i)
}

// Acknowledged tells a leader that a member, or the leader itself, holds the leader's log up
// to an index, durably.
func (n *Node) Acknowledged(now Instant, from NodeID, i Index) {
	now = n.advance(now)
	switch p := n.peer(from); {
	case n.leading == nil:
	case from == n.cfg.ID:
		n.leading.acknowledged(now, &n.leading.own, i)
	case p != nil:
		n.leading.acknowledged(now, &p.follow, i)
	}
}

// peer returns what is kept about a node, or nil.
func (n *Node) peer(id NodeID) *peer {
	if at, ok := n.find(id); ok {
		return n.peers[at]
	}
	return nil
}

func (n *Node) find(id NodeID) (int, bool) {
	return slices.BinarySearchFunc(n.peers, id, func(p *peer, id NodeID) int { return cmp.Compare(p.id, id) })
}

// syncPeers keeps account of the members, of the leader, and of nodes named by
// rosters. Of other nodes only the promises are kept.
func (n *Node) syncPeers() {
	known := ascending(n.members.all(), []NodeID{n.leader}, n.rosters.nodes())
	for _, id := range known {
		if at, ok := n.find(id); !ok && id != n.cfg.ID && id != 0 {
			n.peers = slices.Insert(n.peers, at, &peer{id: id})
		}
	}
	n.peers = slices.DeleteFunc(n.peers, func(p *peer) bool {
		_, in := slices.BinarySearch(known, p.id)
		return !in && p.promise.until <= n.latest
	})
}

// Check returns an error if one of the invariants on the fields does not hold.
func (n *Node) Check() error {
	var err error
	holds := func(ok bool, format string, args ...any) {
		if !ok && err == nil {
			err = fmt.Errorf("leases: node %d at term %d: %s", n.cfg.ID, n.term, fmt.Sprintf(format, args...))
		}
	}
	holds(n.durable <= n.term, "durable term %d", n.durable)
	holds(n.applied <= n.committed && n.committed <= n.last, "applied %d, committed %d, last %d", n.applied, n.committed, n.last)
	for i, p := range n.peers {
		holds(p.id != n.cfg.ID && p.id != 0 && (i == 0 || n.peers[i-1].id < p.id), "peer %d at place %d", p.id, i)
		holds(p.promise.until == 0 || p.promise.roster != nil && !p.promise.nonce.isNone(), "a promise to %d of nothing", p.id)
		holds(p.holding.until == 0 || p.holding.roster.Term == n.term, "a lease of %d on roster %v", p.id, p.holding.roster)
		holds(p.holding.until == 0 || p.holding.counter > p.floor, "a lease of %d for request %d, void up to %d", p.id, p.holding.counter, p.floor)
		holds(p.floor <= n.counter, "floor %d of %d, newest %d", p.floor, p.id, n.counter)
	}
	for _, id := range n.members.all() {
		holds(id == n.cfg.ID || n.peer(id) != nil, "member %d is not known", id)
	}
	for i, r := range n.rosters.list {
		holds(r.ID.Term == n.term && r.validate() == nil, "knows roster %v", r.ID)
		holds(i == 0 || n.rosters.list[i-1].ID.Seq < r.ID.Seq, "roster %v at place %d", r.ID, i)
	}
	holds(n.adopted == nil || n.adopted.ID.Term == n.term, "adopted a roster of another term")
	holds(n.leading == nil || n.leader == n.cfg.ID, "leads under leader %d", n.leader)
	for i := 1; i < len(n.touches.list); i++ {
		holds(n.touches.list[i-1].index < n.touches.list[i].index, "entry %d is listed at place %d", n.touches.list[i].index, i)
	}
	return err
}
