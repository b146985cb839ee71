// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/leases/clock"
	"github.com/weftraft/weft/raft"
)

// LeaseStatus returns this node's view of roster leases in its group: the roster, what
// this node may answer, has promised, and counts. LeaseStatus.On is false without
// leases.
func (h *Host) LeaseStatus(ctx context.Context) (raft.LeaseStatus, error) {
	if ctx == nil {
		return raft.LeaseStatus{}, errNoContext
	}
	s, err := h.ask(ctx)
	if err != nil || s.Leases == nil {
		return raft.LeaseStatus{}, err
	}
	return *s.Leases, nil
}

// SetResponders says which nodes are to answer reads of which keys by roster leases; see
// [raft.RawNode.SetResponders]. With a mode, at most one, it switches the tuner as well: with
// leases.TunerOn leaders choose responders by where keys are read, beside wanted. Only
// the leader takes the call: at another node the error wraps leases.ErrNotLeader, and
// CallError.Leader is the node to ask. It returns when the leader knows the wish;
// [Host.LeaseStatus] tells when responders are named, and what the tuner chose.
func (h *Host) SetResponders(ctx context.Context, wanted []leases.Want, tuner ...leases.TunerMode) error {
	return h.leaseCall(ctx, "set responders", func(r *replica.Replica) error { return r.SetResponders(wanted, tuner...) })
}

// RetireLeases switches roster leases off for all members, or on again; see
// [raft.RawNode.RetireLeases]. As SetResponders, only the leader takes it.
func (h *Host) RetireLeases(ctx context.Context, yes bool) error {
	return h.leaseCall(ctx, "retire leases", func(r *replica.Replica) error { return r.RetireLeases(yes) })
}

// leaseCall has the replica do something that takes no time.
func (h *Host) leaseCall(ctx context.Context, op string, do func(*replica.Replica) error) error {
	refused := func(cause error, leader uint64) error {
		return &CallError{Op: op, Verdict: ErrRefused, Cause: cause, Leader: leader}
	}
	if err := ended(ctx); err != nil {
		return refused(err, raft.None)
	}
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeoutCause(ctx, h.cfg.DefaultTimeout, ErrTimeout)
		defer cancel()
		ctx = limited
	}
	done := make(chan error, 1)
	if h.stopping.Load() || !h.inbox.post(func(r *replica.Replica) {
		err := do(r)
		if err != nil {
			err = refused(err, r.Leader())
		}
		done <- err
	}) {
		return refused(h.gone(), raft.None)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return &CallError{Op: op, Verdict: ErrUnknown, Cause: context.Cause(ctx)}
	case <-h.finished:
	}
	select {
	case err := <-done: // it was done before the end
		return err
	default:
		return refused(h.gone(), raft.None)
	}
}

// leaseDefaults fills in what a host knows better than its user.
func (c *Config) leaseDefaults() {
	if c.Replica.Leases == nil {
		return
	}
	own := *c.Replica.Leases
	if own.Tick == 0 {
		own.Tick = c.TickInterval
	}
	c.Replica.Leases = &own
	if _, plain := c.Replica.Clock.(clock.Boottime); plain || c.Replica.Clock == nil {
		c.Replica.Clock = clock.Watched{DriftPPM: cmp.Or(own.DriftPPM, leases.DefaultDriftPPM)}
	}
}

// ClockStatus is how well the clock of roster leases keeps time.
type ClockStatus struct {
	clock.Health
	// DriftPPM is the bound that the configuration states.
	DriftPPM int
	// Within says that no measurement was beyond the bound.
	Within bool
}

// clockWatch is a host's look at the clock; without leases, and where the user brings
// another clock, it is empty.
type clockWatch struct {
	driftPPM int // 0: nothing is watched
	stop     func()
	seen     uint64 // measurements
	told     bool   // of a doubtful source
}

// watchClock looks at the clock at the start, and has the clock watched from then on. A
// clock that cannot carry leases is an error.
func watchClock(cfg *Config) (clockWatch, error) {
	l := cfg.Replica.Leases
	if _, watched := cfg.Replica.Clock.(clock.Watched); l == nil || !watched {
		return clockWatch{stop: func() {}}, nil
	}
	if err := clock.Check(cmp.Or(l.Resolution, leases.DefaultResolution)); err != nil {
		return clockWatch{}, fmt.Errorf("%w: %w", ErrClock, err)
	}
	return clockWatch{driftPPM: cmp.Or(l.DriftPPM, leases.DefaultDriftPPM), stop: clock.Watch()}, nil
}

// lookAtClock tells the operator of a clock that is beyond the bound, or likely to be.
func (h *Host) lookAtClock() {
	w := &h.clock
	if w.driftPPM == 0 {
		return
	}
	s := clock.Latest()
	if s.Doubtful && !w.told {
		w.told = true
		h.log(slog.LevelWarn, raft.None, "the clock source of this machine is known to lose time; roster leases rest on it", "source", s.Source)
	}
	if s.Measurements == w.seen {
		return
	}
	w.seen = s.Measurements
	if now := (clock.Health{WorstPPM: s.RatePPM}); !now.Within(w.driftPPM) {
		h.log(slog.LevelError, raft.None, "the clock runs at a rate beyond Leases.DriftPPM: roster leases stand aside here, and reads by them may have missed writes; mend the clock, or raise DriftPPM at all members",
			"rate_ppm", s.RatePPM, "drift_ppm", w.driftPPM)
	}
}

// status returns nil if nothing is watched.
func (w *clockWatch) status() *ClockStatus {
	if w.driftPPM == 0 {
		return nil
	}
	s := clock.Latest()
	return &ClockStatus{Health: s, DriftPPM: w.driftPPM, Within: s.Within(w.driftPPM)}
}
