// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
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
	// wasCapable says that it has been capable: there may be coded entries in its log.
	wasCapable bool
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

func (c *Coder) account(id uint64) *account {
	a := c.accounts[id]
	if a == nil {
		a = &account{heardTick: c.ticks}
		c.accounts[id] = a
	}
	return a
}

// reads notes whether the member reads envelopes.
func (a *account) setCapable(capable bool) {
	a.capable = capable
	a.wasCapable = a.wasCapable || capable
}

// heard notes that a member is alive.
func (c *Coder) heard(id uint64) {
	if id == c.id || c.raft.Members().Progress[id] == nil {
		return
	}
	a := c.account(id)
	a.heardTick, a.unreachable = c.ticks, false
	c.puller.Heard(id)
}

// healthy reports whether a member was heard from of late: within two
// heartbeats and a tick.
func (c *Coder) healthy(id uint64) bool {
	a := c.accounts[id]
	return a != nil && !a.unreachable && c.ticks-a.heardTick <= 2*c.cfg.HeartbeatTick+1
}

// report returns what this node says of itself.
func (c *Coder) report() report {
	p := report{
		plain:     c.plain,
		dense:     c.dense(),
		prefix:    uint64(c.cfg.ClearPrefix),
		released:  c.released(),
		completed: c.completeTo(),
		applied:   c.log.Applied(),
		held:      c.storing,
	}
	p.stuckAt, p.stuck = c.stuckAt()
	return p
}

// released returns the highest index whose payload this node will never need
// again, whatever crashes, once what it was given is written.
func (c *Coder) released() uint64 { return c.log.Released(c.log.First()) }

// reported takes a member's report from an acknowledgement.
func (l *leading) reported(m *pb.Message) {
	c := l.Coder
	if m.GetIndex() < l.anewFrom {
		return // it may be of an earlier process: see askAnew
	}
	a := c.account(m.GetFrom())
	before := a.capable
	p, err := parseReport(m.GetContext())
	if err == nil {
		l.watchCut(m.GetFrom(), a, p.released)
	}
	if p.dense && !m.GetReject() {
		p.released = max(p.released, min(m.GetIndex(), l.log.Committed())) // it lacks nothing there
	}
	p.released = max(p.released, a.released) // a late message says less
	a.report, a.known = p, true
	a.setCapable(err == nil && p.prefix == uint64(c.cfg.ClearPrefix))
	if err != nil {
		return
	}
	if !before && a.capable {
		l.blocked[m.GetFrom()] = true
	}
	if !p.stuck {
		delete(l.stuck, m.GetFrom())
	}
}

// watchCut looks whether a member's log begins before a cut that it has shown: not a late
// message, but its host, which had not made the cut durable before it showed it. What
// others left out on the strength of that it may need.
func (l *leading) watchCut(id uint64, a *account, released uint64) {
	if released >= a.shown {
		a.shown, a.fellTick = released, 0
		return
	}
	if a.fellTick == 0 {
		a.fellTick = max(l.ticks, 1)
	}
	if l.ticks-a.fellTick >= l.cfg.ElectionTick && !a.warned {
		a.warned = true
		l.cfg.Logger.Warningf("raft: member %x has released its log up to %d, and said %d before; a host must not show a cut of its log, nor an index as released, "+
			"until it is durable: what nobody else has any more of the entries between them is lost", id, released, a.shown)
	}
}

// reportNews tells the leader what has changed here since the last report, at
// most once a heartbeat. After a restart, on an idle group, a follower has nothing
// to acknowledge: it reports at its commit index, up to where the leader's log is
// known to match.
func (c *Coder) reportNews() {
	now := c.report()
	news := now.completed != c.told.completed || now.released != c.told.released || now.dense != c.told.dense || now.stuck != c.told.stuck || now.stuckAt != c.told.stuckAt
	if lacks := now.completed < c.log.Committed(); news || lacks && c.ticks-c.toldTick >= c.cfg.ElectionTick {
		c.Ask(extend.Effect{Do: extend.Report, ID: ecraft.ID{Index: max(c.acked.Index, c.log.Committed())}})
	}
}

// HandedOut hears that the host was given entries to store, Stored that it has: so
// is measured how long that takes.
func (c *Coder) HandedOut() {
	if c.handed == 0 {
		c.handed = c.now()
	}
}

// Stored ends what HandedOut begins.
func (c *Coder) Stored() {
	if c.handed == 0 {
		return
	}
	c.storing += (c.now() - c.handed - c.storing) / 8
	c.handed = 0
}
