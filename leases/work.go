// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"slices"
	"time"
)

// Step takes a message of another node. The error wraps ErrMalformed if the
// message is impossible; then nothing of the message has been taken.
func (n *Node) Step(now Instant, from NodeID, m Message) error {
	now = n.advance(now)
	if err := n.check(from, &m); err != nil {
		n.counts.Refused++
		return err
	}
	p := n.peer(from)
	if p == nil {
		n.counts.Strangers++
		return nil
	}
	// These two hold whatever the terms are.
	if !m.Revoke.isNone() {
		n.stepRevoke(p, m.Revoke)
	}
	if !m.Confirm.isNone() {
		n.stepConfirm(p, m.Confirm)
	}
	err := n.stepClock(p, &m)
	if m.Term == n.term {
		n.stepTerm(now, p, &m)
	}
	n.tryAdopt(now)
	return err
}

// stepClock takes the bound of a peer's clock, and returns an error if no lease between the
// two nodes could be renewed in time. The message then asks for no lease and grants none. Left are a member's
// question and the leader's answer: a node that was restarted learns by them which roster is the newest (rule L10), and
// others may wait for its adoption.
func (n *Node) stepClock(p *peer, m *Message) error {
	if !m.measures() {
		return nil
	}
	p.clock = m.Clock
	d, ok := n.cfg.lasts(p.clock)
	if ok {
		return nil
	}
	if n.leading != nil {
		m.Answer = Answer{}
	} else {
		m.Request, m.Answer.For, m.Answer.Seq = Nonce{}, 0, 0
	}
	n.counts.Refused++
	return fmt.Errorf("%w: node %d has DriftPPM %d and Resolution %v, and node %d has DriftPPM %d and Resolution %v: "+
		"a lease between them would last %v, and must last three heartbeats, %v; give all members the same settings",
		ErrClocks, n.cfg.ID, n.cfg.DriftPPM, n.cfg.Resolution, p.id, p.clock.DriftPPM, p.clock.Resolution, max(d, 0), 3*n.cfg.Heartbeat)
}

// check returns an error if a message says what its sender cannot say.
func (n *Node) check(from NodeID, m *Message) error {
	if err := m.validate(); err != nil {
		return err
	}
	if from == n.cfg.ID || from == 0 {
		return malformed("a message of node %d to node %d", from, n.cfg.ID)
	}
	for i := range m.Lists {
		if r := &m.Lists[i]; r.Leader != from {
			return malformed("roster %v of leader %d, sent by %d", r.ID, r.Leader, from)
		}
	}
	return nil
}

// stepTerm takes a current message's news of the term.
func (n *Node) stepTerm(now Instant, p *peer, m *Message) {
	if p.id == n.leader {
		n.stepNews(p, m)
	}
	if !m.Answer.Nonce.isNone() {
		n.stepAnswer(p, m.Answer)
	}
	if n.leading != nil {
		p.follow.leased, p.follow.speaks = true, true
		p.follow.known = m.Report.Known // known falls after a restart of the node
		p.follow.heardOf = max(p.follow.heardOf, m.Report.Known)
		p.follow.adopted = max(p.follow.adopted, m.Report.Adopted)
		n.rostersMayChange()
		if n.tuner != nil {
			n.tuner.reported(p.id, m.Usage)
		}
	}
	if !m.Request.isNone() {
		n.tryAdopt(now)
		n.stepRequest(now, p, m.Request)
	}
}

// stepNews takes what the leader says of its rosters.
func (n *Node) stepNews(p *peer, m *Message) {
	if len(m.Lists) > 0 {
		n.learn(m.Lists)
	}
	if m.News.Newest > 0 {
		p.report = p.report || m.Request.isNone() // or the answer has the report with it
		n.rosters.supersede(m.News.Least)
		n.rosters.drop(func(q Seq) bool { return n.counted(q) })
		if _, ok := p.sentAt(m.Answer.Nonce.Counter); ok && m.Answer.Nonce.Boot == n.cfg.Boot {
			n.answeredByLeader(m.News.Newest)
		}
	}
}

// counted reports whether a lease is held on the roster of a number.
func (n *Node) counted(q Seq) bool {
	for _, p := range n.peers {
		if p.holding.until > 0 && p.holding.roster.Seq == q {
			return true
		}
	}
	return false
}

// Tick tells that time has passed. How much is read from the clock: ticks may be late,
// or come in a burst.
func (n *Node) Tick(now Instant) {
	now = n.advance(now)
	if n.leading != nil {
		n.detect(now)
		n.tune(now)
		n.rostersMayChange()
	}
}

// Poll does what has become possible and returns the messages to send, at once.
// Call it after news, and after Tick. Nothing is granted or adopted, and so
// nothing is said that vouches for a term, before the term is on disk.
func (n *Node) Poll(now Instant) []Outgoing {
	now = n.advance(now)
	n.tryAdopt(now)
	if l := n.leading; l != nil && l.outdated {
		n.updateRosters(now)
	}
	var out []Outgoing
	for _, p := range n.peers {
		if m := n.messageTo(now, p); !m.isEmpty() {
			out = append(out, Outgoing{To: p.id, Message: m})
		}
	}
	return out
}

// messageTo returns the message due to a peer; an empty message if none is due.
func (n *Node) messageTo(now Instant, p *peer) Message {
	m := Message{Term: n.term}
	due := now >= p.next
	if due && n.asks(p) {
		m.Request = n.ask(now, p)
	}
	if !p.owed.Nonce.isNone() && (p.atOnce || !m.Request.isNone()) {
		m.Answer, p.owed, p.atOnce = p.owed, Answer{}, false
	}
	if n.waitsFor(now, p) && (due || p.revoked != p.promise.nonce) {
		m.Revoke, p.revoked = p.promise.nonce, p.promise.nonce
	}
	m.Confirm, p.confirm = p.confirm, Nonce{}
	if m.measures() {
		m.Clock = n.cfg.clock()
	}
	if n.leading != nil {
		n.addNews(due, p, &m)
	} else if p.id == n.leader && (p.report || !m.isEmpty()) {
		n.addReport(p, &m)
	}
	if due && !m.isEmpty() {
		p.next = now.after(n.beat(p))
	}
	return m
}

// beat returns how long a node waits before it asks a peer again. The leader's request has
// its members ask the leader at once, so that answer and request still ride together; a member
// asks unasked a little later, if no request has come.
func (n *Node) beat(p *peer) time.Duration {
	if p.id == n.leader {
		return n.cfg.Heartbeat + n.cfg.Heartbeat/2
	}
	return n.cfg.Heartbeat
}

// addNews adds what a leader tells of its rosters: with every message their
// numbers, and the rosters whole to a node that does not have the newest.
func (n *Node) addNews(due bool, p *peer, m *Message) {
	newest := n.rosters.newest().ID.Seq
	if !n.members.has(p.id) && !n.members.counts(p.id) {
		return
	}
	if p.follow.known < newest && (due || p.follow.announced < newest) {
		list, _ := n.rosters.inUse()
		m.Lists = announcement(list)
		p.follow.announced = newest
	}
	// A voter that has adopted the newest roster may have said so in vain.
	if !m.isEmpty() || due && p.follow.adopted < newest && n.members.counts(p.id) {
		m.News = News{Newest: newest, Least: n.rosters.least}
	}
}

// maxAnnouncement bounds the bytes of rosters in a message, unless the newest one alone has more. A roster
// within its bounds has less than 640 KiB, and transports take control messages of a megabyte.
const maxAnnouncement = 512 << 10

// announcement returns the newest of some rosters in use. An older one that is missing gives its receiver less: no lease on
// that roster counts, and notes release nothing until the roster is superseded.
func announcement(inUse []*Roster) (list []Roster) {
	bytes := 0
	for _, r := range slices.Backward(inUse) {
		if bytes += len(appendRoster(nil, r)); bytes > maxAnnouncement && len(list) > 0 {
			break
		}
		list = append(list, *r)
	}
	slices.Reverse(list)
	return list
}

// addReport adds this node's report to the leader.
func (n *Node) addReport(p *peer, m *Message) {
	p.report = false
	if r := n.rosters.newest(); r != nil {
		m.Report.Known = r.ID.Seq
	}
	if n.adopted != nil {
		m.Report.Adopted = n.adopted.ID.Seq
	}
	if n.tuner != nil {
		m.Usage = n.tuner.take()
	}
}

// asks reports whether this node has something to ask of a peer: a lease on its
// own role; as a leader, whether a responder is there; and after a restart, of
// the leader, which roster is the newest. A leader that stands aside goes on asking,
// because the answers tell which responders are there.
func (n *Node) asks(p *peer) bool {
	if n.isAsking() && p.id == n.leader {
		return true
	}
	newest := n.rosters.newest()
	if newest == nil {
		return false
	}
	voter := n.members.counts(p.id)
	if n.leading != nil {
		return !n.isOff() && (voter || n.members.has(p.id) && n.isWanted(p.id))
	}
	return voter && newest.names(n.cfg.ID) && !n.aside
}

// isWanted reports whether a node is wanted as a responder.
func (n *Node) isWanted(id NodeID) bool {
	return slices.ContainsFunc(n.wish.wanted, func(w Want) bool { return slices.Contains(n.meantBy(w), id) })
}

// meantBy returns the nodes that a wish is for, ascending, with the voters in force in
// the place of AllVoters.
func (n *Node) meantBy(w Want) []NodeID {
	if !slices.Contains(w.Nodes, AllVoters) {
		return w.Nodes
	}
	return ascending(w.Nodes, n.members.Incoming)
}
