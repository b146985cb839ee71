// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Members say of themselves, in the Context of each acknowledgement, what a
// leader that codes wants to know. Upstream's library ignores it. Nothing that
// safety needs stands there but what is repeated in each: that a member can read
// envelopes, and how much of the log it has released.

// report is what a member says of itself.
type report struct {
	// plain asks that nothing new be coded; stuck, that a snapshot be sent as
	// nobody has what stuckAt lacks; dense says that no entry of the log is coded.
	plain, stuck, dense bool
	// prefix is Coding.ClearPrefix.
	prefix uint64
	// released is the highest index that the member will not ask for any more:
	// it is durably applied there. completed is the highest index up to which
	// it has all payloads, applied what its host has applied.
	released, completed, applied uint64
	// held is how long it takes the member to store an append.
	held time.Duration
	// stuckAt is the index of an entry that it cannot complete.
	stuckAt uint64
}

const (
	reportVersion = 1
	flagPlain     = 1 << 0
	flagStuck     = 1 << 1
	flagDense     = 1 << 2
	maxReport     = 2 + 6*binary.MaxVarintLen64
)

func (p report) encode() []byte {
	flags := byte(0)
	if p.plain {
		flags |= flagPlain
	}
	if p.stuck {
		flags |= flagStuck
	}
	if p.dense {
		flags |= flagDense
	}
	b := append(make([]byte, 0, 32), reportVersion, flags)
	for _, v := range []uint64{p.prefix, p.released, p.completed, p.applied, uint64(p.held / time.Microsecond), p.stuckAt} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

var errReport = errors.New("not a report")

// parseReport reads a report. What a later version appends is ignored.
func parseReport(b []byte) (p report, err error) {
	if len(b) < 2 || b[0] < reportVersion {
		return p, fmt.Errorf("%w: %d bytes", errReport, len(b))
	}
	p.plain, p.stuck, p.dense = b[1]&flagPlain != 0, b[1]&flagStuck != 0, b[1]&flagDense != 0
	b = b[2:]
	var held uint64
	for _, v := range []*uint64{&p.prefix, &p.released, &p.completed, &p.applied, &held, &p.stuckAt} {
		var n int
		if *v, n = binary.Uvarint(b); n <= 0 {
			return report{}, fmt.Errorf("%w: it ends early", errReport)
		}
		b = b[n:]
	}
	p.held = time.Duration(min(held, uint64(time.Hour/time.Microsecond))) * time.Microsecond
	return p, nil
}

// account is what a node knows of a member.
type account struct {
	report
	// capable says that the member reads envelopes like this node's: it said
	// so, or has a slot in an entry of the log.
	capable bool
	// was says that it has been capable: there may be coded entries in its log.
	was bool
	// known says that it has reported to this node.
	known bool
	// heardTick is when it was last heard from, unreachable set when the host
	// could not reach it since.
	heardTick   int
	unreachable bool
	// shown is the highest index that it said it has released, fellTick the tick since
	// which it says less; 0 if it does not. warned says that this was logged.
	shown    uint64
	fellTick int
	warned   bool
	// ackedAt is when it last acknowledged something new, by the clock.
	ackedAt time.Duration
}

func (c *coded) account(id uint64) *account {
	a := c.accounts[id]
	if a == nil {
		a = &account{heardTick: c.ticks}
		c.accounts[id] = a
	}
	return a
}

// reads notes whether the member reads envelopes.
func (a *account) reads(capable bool) {
	a.capable = capable
	a.was = a.was || capable
}

// heard notes that a member is alive.
func (c *coded) heard(id uint64) {
	if c == nil || id == c.r.id || c.r.members.Progress[id] == nil {
		return
	}
	a := c.account(id)
	a.heardTick, a.unreachable = c.ticks, false
	c.puller.Heard(id)
}

// healthy reports whether a member was heard from of late: within two
// heartbeats and a tick.
func (c *coded) healthy(id uint64) bool {
	a := c.accounts[id]
	return a != nil && !a.unreachable && c.ticks-a.heardTick <= 2*c.r.cfg.HeartbeatTick+1
}

// appendResp begins an acknowledgement, with this node's report.
func (r *raft) appendResp(to uint64) *envelope {
	e := r.message(pb.MsgAppResp, to)
	if r.coded != nil {
		r.coded.told, r.coded.toldTick = r.coded.report(), r.coded.ticks
		e.msg.Context = r.coded.told.encode()
	}
	return e
}

// report returns what this node says of itself.
func (c *coded) report() report {
	p := report{
		plain:     c.plain,
		dense:     c.dense(),
		prefix:    uint64(c.opt.ClearPrefix),
		released:  c.released(),
		completed: c.completeTo(),
		applied:   c.r.log.applied,
		held:      c.storing,
	}
	p.stuckAt, p.stuck = c.stuckAt()
	return p
}

// Releaser is an optional interface of a [Storage]: a host that keeps entries
// for longer than it needs them can say how much it would be able to do
// without.
type Releaser interface {
	// Released returns the highest index that is durably applied: after a
	// restart the host starts from there, or from later. It never falls.
	Released() uint64
}

// released returns the highest index whose payload this node will never need
// again, whatever crashes, once what it was given is written.
func (c *coded) released() uint64 { return c.releasedFrom(c.r.log.firstIndex()) }

// releasedFrom returns it for a log that begins at index first.
func (c *coded) releasedFrom(first uint64) uint64 {
	r := first - 1
	if s, ok := c.r.log.storage.(Releaser); ok {
		r = max(r, min(s.Released(), c.r.log.applied))
	}
	return r
}

// reported takes a member's report from an acknowledgement.
func (l *leader) reported(m *pb.Message) {
	c := l.coded
	if m.GetIndex() < l.enc.anewFrom {
		return // it may be of an earlier process: see askAnew
	}
	a := c.account(m.GetFrom())
	before := a.capable
	p, err := parseReport(m.GetContext())
	if err == nil {
		l.watchCut(m.GetFrom(), a, p.released)
	}
	if p.dense && !m.GetReject() {
		p.released = max(p.released, min(m.GetIndex(), l.log.committed)) // it lacks nothing there
	}
	p.released = max(p.released, a.released) // a late message says less
	a.report, a.known = p, true
	a.reads(err == nil && p.prefix == uint64(c.opt.ClearPrefix))
	if err != nil {
		return
	}
	if !before && a.capable {
		l.enc.blocked[m.GetFrom()] = true
	}
	if !p.stuck {
		delete(l.enc.stuck, m.GetFrom())
	}
}

// watchCut looks whether a member's log begins before a cut that it has shown: not a late
// message, but its host, which had not made the cut durable before it showed it. What
// others left out on the strength of that it may need.
func (l *leader) watchCut(id uint64, a *account, released uint64) {
	if released >= a.shown {
		a.shown, a.fellTick = released, 0
		return
	}
	if a.fellTick == 0 {
		a.fellTick = max(l.coded.ticks, 1)
	}
	if l.coded.ticks-a.fellTick >= l.cfg.ElectionTick && !a.warned {
		a.warned = true
		l.logger.Warningf("raft: member %x has released its log up to %d, and said %d before; a host must not show a cut of its log, nor an index as released, "+
			"until it is durable: what nobody else has any more of the entries between them is lost", id, released, a.shown)
	}
}

// reportNews tells the leader what has changed here since the last report, at
// most once a heartbeat. Who has started anew has acknowledged nothing yet, and gets
// nothing to acknowledge where nobody proposes: it answers for what is committed,
// which the leader has as well.
func (c *coded) reportNews() {
	if c == nil {
		return
	}
	index := c.r.log.committed
	if c.acked.term == c.r.term {
		index = c.acked.index
	}
	now := c.report()
	news := now.completed != c.told.completed || now.released != c.told.released || now.dense != c.told.dense || now.stuck != c.told.stuck || now.stuckAt != c.told.stuckAt
	if lacks := now.completed < c.r.log.committed; news || lacks && c.ticks-c.toldTick >= c.r.cfg.ElectionTick {
		c.r.vouch(c.r.appendResp(c.r.lead).withIndex(index))
	}
}

// handedOut and stored measure how long the host takes to store an append.
func (c *coded) handedOut() {
	if c != nil && c.handed == 0 {
		c.handed = c.now()
	}
}

func (c *coded) stored() {
	if c == nil || c.handed == 0 {
		return
	}
	c.storing += (c.now() - c.handed - c.storing) / 8
	c.handed = 0
}

// heardAppend takes what an answer to an append says beside Raft.
func (l *leader) heardAppend(m *pb.Message) {
	if l.enc == nil || m.GetFrom() == l.id {
		return
	}
	l.reported(m)
	if m.GetReject() {
		return
	}
	a, now := l.coded.account(m.GetFrom()), l.coded.now()
	if m.GetIndex() > l.members.Progress[m.GetFrom()].Match {
		a.ackedAt = now
	}
	if o := l.observer(); o != nil {
		o.Acked(m.GetFrom(), m.GetIndex(), a.held, now)
	}
}

// sentEntries notes that an append with entries left for a member.
func (l *leader) sentEntries(to uint64, ents []*pb.Entry, saved int) {
	if o := l.observer(); o != nil && len(ents) > 0 {
		o.Sent(to, ents[len(ents)-1].GetIndex(), int(encodingSize(ents))-saved, l.coded.now())
	}
}

func (l *leader) sentHeartbeat(to uint64) {
	if o := l.observer(); o != nil {
		o.HeartbeatSent(to, l.coded.now())
	}
}

func (l *leader) gotHeartbeat(from uint64) {
	if o := l.observer(); o != nil {
		o.HeartbeatAnswered(from, l.coded.now())
	}
}

// acknowledged notes that this node acknowledges its log up to index.
func (c *coded) acknowledged(index uint64) {
	if c != nil {
		c.acked = entryID{term: c.r.term, index: max(index, c.acked.index)}
	}
}

// lost notes that the host could not reach a member.
func (c *coded) lost(id uint64) {
	if c != nil && c.r.members.Progress[id] != nil {
		c.account(id).unreachable = true
	}
}

// expects reports whether a node that is no member in force may answer: it is
// one of a configuration in the log.
func (c *coded) expects(id uint64) bool { return c != nil && slices.Contains(c.pending.members, id) }

// lags reports whether a member, as far as it last said, lacks payloads of what
// it has acknowledged. That may be old news: the answer to an append tells.
func (c *coded) lags(id, match uint64) bool {
	if c == nil {
		return false
	}
	a := c.accounts[id]
	return a != nil && a.capable && a.known && a.completed < match
}
