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
// much of the log the member has released. Without a report neither counts.

// report is a member's account of itself.
type report struct {
	// plain asks that no new entry be coded, stuck that a snapshot be sent, because no
	// peer has units of the entry stuckAt; dense says that no entry of the log is
	// coded.
	plain, stuck, dense bool
	// busy is the share of time for which the member's processors are busy. A report
	// without the field says 0.
	busy share
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
)

// share is a part of a whole, in thousandths.
type share uint16

const whole = 1000

// shareOf bounds a share, also one that is no number.
func shareOf(x float64) share {
	if x > 0 {
		return share(min(x, 1) * whole)
	}
	return 0
}

func (s share) float() float64 { return float64(s) / whole }

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
	if p.busy > 0 {
		b = binary.AppendUvarint(b, uint64(p.busy))
	}
	return b
}

// saysThatItCodes reports whether an acknowledgement or a vote says without its Context that its
// sender codes. The Context may be lost, as upstream's library leaves it empty. LogTerm is in use
// there, in refusals; so in all other answers a node that codes has its term there.
func saysThatItCodes(m *pb.Message) bool { return !m.GetReject() && m.GetLogTerm() != 0 }

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
	if len(b) > 0 {
		busy, n := binary.Uvarint(b)
		if n <= 0 {
			return report{}, fmt.Errorf("%w: it ends early", errReport)
		}
		p.busy = share(min(busy, whole))
	}
	p.held = time.Duration(min(held, uint64(time.Hour/time.Microsecond))) * time.Microsecond
	return p, nil
}

// reports is this node's account of itself to its leader, and to its host.
type reports struct {
	*node
	payloads *payloads
	wants    *wants
	// told is the last report to the leader, at toldTick.
	told     report
	toldTick int
	// handed is when the oldest append that is not stored was handed out, storing the
	// mean time that storing takes. Both are 0 without a clock.
	handed, storing time.Duration
	// releaseTick is the tick from which on the host may be asked for a snapshot again.
	releaseTick int
}

// report returns this node's report.
func (r *reports) report() report {
	p := report{
		plain:     r.plain,
		dense:     r.payloads.ledger.dense(r.log),
		prefix:    uint64(r.cfg.ClearPrefix),
		released:  r.released(),
		completed: r.payloads.completeTo(),
		applied:   r.log.Applied(),
		held:      r.storing,
		busy:      r.busy,
	}
	p.stuckAt, p.stuck = r.wants.stuckAt()
	return p
}

// tell returns this node's report to the leader, for an acknowledgement.
func (r *reports) tell() []byte {
	r.told, r.toldTick = r.report(), r.ticks
	return r.told.encode()
}

// news tells the leader of changes here since the last report, at most once a
// heartbeat. After a restart, on an idle group, a follower has nothing to acknowledge:
// it reports at its commit index, up to where the leader's log is known to match.
func (r *reports) news() {
	now := r.report()
	news := now.completed != r.told.completed || now.released != r.told.released || now.dense != r.told.dense || now.stuck != r.told.stuck || now.stuckAt != r.told.stuckAt
	if lacks := now.completed < r.log.Committed(); news || lacks && r.ticks-r.toldTick >= r.cfg.ElectionTick {
		r.Ask(extend.Effect{Do: extend.Report, ID: ecraft.ID{Index: max(r.acked.Index, r.log.Committed())}})
	}
}

// HandedOut hears that the host was given entries to store, Stored that the entries are
// stored: the time between is measured.
func (r *reports) handedOut() {
	if r.handed == 0 {
		r.handed = r.now()
	}
}

// Stored ends what HandedOut begins.
func (r *reports) stored() {
	if r.handed == 0 {
		return
	}
	r.storing += (r.now() - r.handed - r.storing) / 8
	r.handed = 0
}

// askForSnapshot asks the host for a snapshot that covers an index, once in an election
// timeout: the host may make a snapshot, and so release entries.
func (r *reports) askForSnapshot(index uint64) {
	if index <= r.released() {
		r.told.released = 0 // the report was lost: repeat the news
	}
	if index <= r.released() || index > r.log.Applied() || r.ticks < r.releaseTick {
		return
	}
	r.releaseTick = r.ticks + r.cfg.ElectionTick
	_, _ = r.log.Snapshot() // the next report says how far
}
