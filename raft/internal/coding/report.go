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

// The Context of each acknowledgement is a report of the member about itself, for a
// leader that codes. Upstream's library ignores the Context. Safety needs two fields of
// a report, and these are repeated in each: that the member reads envelopes, and how
// much of the log the member has released.

// report is a member's account of itself.
type report struct {
	// plain asks that no new entry be coded, stuck that a snapshot be sent, because no
	// peer has units of the entry stuckAt; dense says that no entry of the log is
	// coded.
	plain, stuck, dense bool
	// prefix is Coding.ClearPrefix.
	prefix uint64
	// released is the highest index that the member will never ask for again, because
	// it is durably applied there. completed is the highest index up to which the
	// member has all payloads, applied the index that its host has applied.
	released, completed, applied uint64
	// held is how long the member takes to store an append.
	held time.Duration
	// stuckAt is the index of an entry that the member cannot complete.
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

// parseReport reads a report. Fields that a later version appends are ignored.
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

// account is a node's knowledge of a member.
type account struct {
	report
	// capable says that the member reads envelopes like this node's, as its report says
	// or a slot in an entry of the log.
	capable bool
	// wasCapable says that the member was capable at some time: its log may have coded
	// entries.
	wasCapable bool
	// known says that the member has reported to this node.
	known bool
	// heardTick is the tick of the member's last message; unreachable says that the
	// host could not reach the member since.
	heardTick   int
	unreachable bool
	// shown is the highest index that the member reported as released, fellTick the
	// tick since which its reports say less, or 0. warned says that the log has a line
	// about the fall.
	shown    uint64
	fellTick int
	warned   bool
	// ackedAt is the time of the last acknowledgement of a new entry, by the clock.
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

// reads notes that a member reads envelopes.
func (c *Coder) reads(id uint64) {
	if c.follows(id) {
		c.account(id).setCapable(true)
	}
}

// setCapable notes whether the member reads envelopes.
func (a *account) setCapable(capable bool) {
	a.capable = capable
	a.wasCapable = a.wasCapable || capable
}

// heard notes a sign of life of a member.
func (c *Coder) heard(id uint64) {
	if id == c.id || !c.follows(id) {
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

// report returns this node's report.
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

// released returns the highest index whose payload this node will never need again,
// whatever crashes, once the last Ready is written.
func (c *Coder) released() uint64 { return c.log.Released(c.log.First()) }

// reported takes a member's report from an acknowledgement.
func (l *leading) reported(m *pb.Message) {
	c := l.Coder
	if m.GetIndex() < l.anewFrom {
		return // perhaps of an earlier process: see askAnew
	}
	a := c.account(m.GetFrom())
	before := a.capable
	p, err := parseReport(m.GetContext())
	if err == nil {
		l.watchCut(m.GetFrom(), a, p.released)
	}
	if p.dense && !m.GetReject() {
		p.released = max(p.released, min(m.GetIndex(), l.log.Committed())) // nothing is lacking there
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

// watchCut looks whether a member's log begins before a cut that the member has shown.
// If late messages are not the reason, the member's host showed the cut before it was
// durable, and the member may need units that others left out because of the cut.
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

// reportNews tells the leader of changes here since the last report, at most once a
// heartbeat. After a restart, on an idle group, a follower has nothing to acknowledge:
// it reports at its commit index, up to where the leader's log is known to match.
func (c *Coder) reportNews() {
	now := c.report()
	news := now.completed != c.told.completed || now.released != c.told.released || now.dense != c.told.dense || now.stuck != c.told.stuck || now.stuckAt != c.told.stuckAt
	if lacks := now.completed < c.log.Committed(); news || lacks && c.ticks-c.toldTick >= c.cfg.ElectionTick {
		c.Ask(extend.Effect{Do: extend.Report, ID: ecraft.ID{Index: max(c.acked.Index, c.log.Committed())}})
	}
}

// HandedOut hears that the host was given entries to store, Stored that the entries are
// stored: the time between is measured.
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
