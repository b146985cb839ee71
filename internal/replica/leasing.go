// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// leasingCore is the methods of a core with roster leases beyond Core. Weft's core has
// them.
type leasingCore interface {
	ReadIndexSpans(rctx []byte, spans ...leases.Span)
	LeaseStatus() raft.LeaseStatus
	LeasePermit(former *leases.Permit) *leases.Permit
	CountPermittedReads(local, leader uint64, spans []leases.Usage)
	SetResponders(wanted []leases.Want, tuner ...leases.TunerMode) error
	RetireLeases(yes bool) error
}

// leasing is a replica's part in roster leases. Without them core is nil.
type leasing struct{ core leasingCore }

// configure completes the core's configuration, if this node is to have leases. served hears of the reads that a lease answers.
func (l *leasing) configure(cfg *Config, core *raft.Config, served func(context []byte, leads bool)) {
	if cfg.Leases == nil {
		return
	}
	own := *cfg.Leases
	own.Served = served
	if spans := own.Spans; spans != nil {
		clear := 0
		if cfg.Coding != nil {
			clear = cfg.Coding.ClearPrefix
		}
		own.Spans = func(data []byte) []leases.Span { return spansOf(data, clear, spans) }
	}
	core.Leases = &own
}

// start looks whether the core has leases, if it should.
func (l *leasing) start(cfg *Config, core Core) error {
	if cfg.Leases == nil {
		return nil
	}
	var ok bool
	if l.core, ok = core.(leasingCore); !ok {
		return fmt.Errorf("%w: Leases is set, and the core has none; want the core Weft, or no Leases", ErrInvalid)
	}
	return nil
}

// state returns nil without leases.
func (l *leasing) state() *raft.LeaseStatus {
	if l.core == nil {
		return nil
	}
	s := l.core.LeaseStatus()
	return &s
}

// spansOf returns the keys that an entry writes, as the host says of each of its
// commands; nil: every key. What cannot be read, as a coded entry, may write any key. Of a
// coded entry there are so many clear bytes, and the command in them is cut off.
func spansOf(data []byte, clear int, of func([]byte) []leases.Span) []leases.Span {
	env, err := decodeEnvelope(data)
	if err != nil || len(data) == clear {
		return nil
	}
	all := []leases.Span{} // not nil: of no key
	for _, command := range env.commands {
		spans := of(command)
		if spans == nil || len(all)+len(spans) > leases.MaxSpans {
			return nil
		}
		all = append(all, spans...)
	}
	return all
}

// askCore asks for the index of a round, by its name.
func (r *Replica) askCore(q question, context []byte) {
	r.dirty = true
	if r.leasing.core == nil {
		r.core.ReadIndex(context)
		return
	}
	if q.route == viaLeader && !r.leads() {
		m := &pb.Message{Type: pb.MsgReadIndex.Enum(), From: new(r.cfg.ID), To: new(r.state.Lead), Entries: []*pb.Entry{{Data: context}}}
		if q.spans != "" {
			m.Context = []byte(q.spans)
		}
		r.send(m)
		return
	}
	spans, err := []leases.Span(nil), error(nil)
	if q.spans != "" {
		spans, err = leases.ParseSpans([]byte(q.spans))
	}
	if err != nil {
		spans = nil // cannot be, and every key is never wrong
	}
	r.leasing.core.ReadIndexSpans(context, spans...)
}

// SetResponders says, at the leader, which nodes are to answer reads of which keys by
// roster leases. The leader names them as soon as they keep up; later leaders go
// by it, too. Spans ascend and are disjoint. A mode, at most one, switches the tuner in the
// whole group. Errors: raft.ErrNoLeases, leases.ErrNotLeader, leases.ErrMalformed. Flush
// follows, as after any input.
func (r *Replica) SetResponders(wanted []leases.Want, tuner ...leases.TunerMode) error {
	return r.leaseCall(func() error { return r.leasing.core.SetResponders(wanted, tuner...) })
}

// RetireLeases switches roster leases off for all members, or on again, at the leader.
// When Status().Leases.Retired is true there, members may be restarted without leases.
// Errors: raft.ErrNoLeases, leases.ErrNotLeader. Flush follows, as after any input.
func (r *Replica) RetireLeases(yes bool) error {
	return r.leaseCall(func() error { return r.leasing.core.RetireLeases(yes) })
}

func (r *Replica) leaseCall(do func() error) error {
	switch {
	case r.err != nil:
		return fmt.Errorf("%w: %w", ErrFailed, r.err)
	case r.leasing.core == nil:
		return raft.ErrNoLeases
	}
	r.dirty = true
	return do()
}

// replicaClock is the time that a core goes by: the clock of the configuration, which is
// read when it is asked for, or else the time of the replica's inputs.
type replicaClock struct{ *facts }

// Fit returns why the clock of the configuration is not fit for leases, if the clock knows.
func (c replicaClock) Fit() error {
	if clock, ok := c.cfg.Clock.(interface{ Fit() error }); ok {
		return clock.Fit()
	}
	return nil
}

// Now implements raft.Clock.
func (c replicaClock) Now() time.Duration {
	if clock := c.cfg.Clock; clock != nil {
		return clock.Now()
	}
	return c.now
}
