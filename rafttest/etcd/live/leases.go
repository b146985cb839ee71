// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weftraft/weft/internal/lab"
)

// LeaseReport counts the faults of a run whose members answer reads by roster leases, and the
// reads.
type LeaseReport struct {
	// Local reads were answered by responders, Leader reads by the leader's lease, and Redirected
	// reads went from a responder to the leader, as all reads at followers do without leases.
	Local, Leader, Redirected uint64
	// Stops counts processes that were stopped for longer than a lease lasts, Steps the steps of
	// their time of day, Boots the starts with another origin of the other clocks.
	Stops, Steps, Boots int
	// Gap is the longest time without an acknowledged write, for a writer at another
	// member, after a responder was stopped.
	Gap time.Duration
	// NoBoots is the reason why Boots is 0, or nil.
	NoBoots error
}

// String describes the run in one line.
func (r *LeaseReport) String() string {
	s := fmt.Sprintf("reads by lease: %d at responders, %d at leaders; %d redirected; %d SIGSTOPs of more than a lease, writes paused %v at most after that of a responder; %d steps of the time of day; ",
		r.Local, r.Leader, r.Redirected, r.Stops, r.Gap.Round(time.Millisecond), r.Steps)
	if r.NoBoots != nil {
		return s + fmt.Sprintf("no start with another origin of CLOCK_BOOTTIME: %v", r.NoBoots)
	}
	return s + fmt.Sprintf("%d starts with another origin of CLOCK_BOOTTIME", r.Boots)
}

// stopTime is the least time for which a process is stopped: longer than the time in which a leader
// notices a failed responder (0.5 s), a lease (1 s), and an election together.
const stopTime = 4 * time.Second

// Leases plays faults against a cluster whose members answer reads by roster leases:
// processes are killed, and stopped for longer than leases last, and clocks are
// stepped, each under load and with a reader at each member.
func Leases(ctx context.Context, o Options) (Report, error) {
	return play(ctx, o, func(r *run, ctx context.Context) error {
		r.report.Leases = &LeaseReport{}
		return r.withReaders(ctx, r.leaseFaults)
	})
}

// StopResponders is the part of Leases that fails on a cluster whose leases use the time of day:
// responders are stopped, their time of day is set back, and the responders go on.
func StopResponders(ctx context.Context, o Options) (Report, error) {
	return play(ctx, o, func(r *run, ctx context.Context) error {
		r.report.Leases = &LeaseReport{}
		return r.withReaders(ctx, func(ctx context.Context) error {
			if err := errors.Join(r.serves(ctx, 100), r.stable(ctx)); err != nil {
				return err
			}
			for range 3 {
				if err := r.stopFollower(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (r *run) leaseFaults(ctx context.Context) error {
	if err := errors.Join(r.serves(ctx, 200), r.stable(ctx)); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		r.stopFollower, r.stopLeader, r.stepAll, r.killLeader, r.stopFollower, r.bootAll, r.moveLeader, r.stopLeader, r.killMajorityThenLeader,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := errors.Join(r.serves(ctx, 100), r.stable(ctx)); err != nil {
			return err
		}
	}
	return r.countReads(ctx)
}

// stable waits until every member answers reads by a lease of its own.
func (r *run) stable(ctx context.Context) error {
	return r.Wait(ctx, "members to answer reads by leases", func(ctx context.Context) error {
		for _, m := range r.members {
			v, err := m.look(ctx)
			if err == nil && !v.Stable {
				err = fmt.Errorf("%s has no lease; responders are %v", m.name, v.Responders)
			}
			if err != nil {
				return err
			}
			m.latest = v.Reads
		}
		return nil
	})
}

var errNoLocalReads = errors.New("no read was answered by a responder, or none by the leader's lease: the run did not test what it should")

// countReads adds up the reads that all processes have served.
func (r *run) countReads(ctx context.Context) error {
	var all served
	for _, m := range r.members {
		m.sample(ctx)
		all.add(m.before)
		all.add(m.latest)
	}
	l := r.report.Leases
	l.Local, l.Leader, l.Redirected = all.Local, all.Leader, all.Redirected
	if l.Local == 0 || l.Leader == 0 {
		return errNoLocalReads
	}
	return nil
}

// stopFollower stops a responder, sets its time of day back by an hour meanwhile, and resumes the
// responder after writes have been acknowledged without its help.
func (r *run) stopFollower(ctx context.Context) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	followers := slices.DeleteFunc(slices.Clone(r.members), func(m *member) bool { return m == leader })
	m := followers[r.report.Leases.Stops%len(followers)]
	gap, err := r.stop(ctx, m)
	r.report.Leases.Gap = max(r.report.Leases.Gap, gap)
	return err
}

// stopLeader does the same with the leader: the other members elect a new leader, of which the old
// leader hears after its resumption.
func (r *run) stopLeader(ctx context.Context) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	_, err = r.stop(ctx, leader)
	return err
}

// stop stops a member for stopTime, as a debugger, a scheduler or a hypervisor would: the process
// keeps its sockets, and clients wait. stop returns the longest time for which writers at the other
// members had to wait.
func (r *run) stop(ctx context.Context, m *member) (gap time.Duration, err error) {
	by, err := r.other(m)
	if err != nil {
		return 0, err
	}
	if err := m.Pause(); err != nil {
		return 0, err
	}
	if err := r.step(m, -time.Hour); err != nil {
		return 0, err
	}
	if gap, err = r.probe(ctx, by, stopTime); err != nil {
		return 0, err
	}
	r.say("%s was stopped; a writer at %s waited for %v", m.name, by.name, gap.Round(time.Millisecond))
	if err := m.Resume(); err != nil {
		return 0, err
	}
	r.report.Leases.Stops++
	if err := r.caughtUp(ctx, m); err != nil {
		return 0, err
	}
	if err := r.stepShows(ctx, m, -time.Hour); err != nil {
		return 0, err
	}
	return gap, r.step(m, 0)
}

// lostAfter is the time for which a writer waits for an answer while the leader may be gone: writes
// that a member has passed on to a leader that died are lost, and etcd reports the loss after 7 s.
const lostAfter = 300 * time.Millisecond

// probe writes through a member for stopTime, and longer until a write was acknowledged, and
// returns the longest time without an acknowledgement; each write is given up after giveUp. The
// clients of the load cannot measure this time, because they wait for the stopped member, or for
// lost writes.
func (r *run) probe(ctx context.Context, by *member, giveUp time.Duration) (gap time.Duration, err error) {
	began := time.Now()
	last, acked := began, 0
	err = r.Wait(ctx, "writes through "+by.name, func(ctx context.Context) error {
		for time.Since(began) < stopTime || acked == 0 && ctx.Err() == nil {
			r.probes++
			o := operation{verb: put, key: keyName(r.probes % keys), value: fmt.Sprintf("probe.%d", r.probes), call: r.history.now()}
			callCtx, cancel := context.WithTimeout(ctx, giveUp)
			o.answered = o.run(callCtx, by.api, r.values) == nil
			cancel()
			o.ret = r.history.now()
			r.history.add(o)
			if o.answered {
				gap, last, acked = max(gap, time.Since(last)), time.Now(), acked+1
			}
		}
		return ctx.Err()
	})
	return gap, err
}

// stepAll sets the time of day of each running member forward and back.
func (r *run) stepAll(ctx context.Context) error {
	for _, m := range r.members {
		for _, d := range []time.Duration{time.Hour, -time.Hour, 0} {
			if err := r.step(m, d); err != nil {
				return err
			}
			if err := errors.Join(r.serves(ctx, 30), r.stepShows(ctx, m, d)); err != nil {
				return err
			}
		}
	}
	r.say("the time of day was stepped at all members")
	return nil
}

// bootAll restarts each member with clocks of another origin, as after a restart of the machine,
// and then again with the system's own clocks.
func (r *run) bootAll(ctx context.Context) error {
	l := r.report.Leases
	if l.NoBoots = tryTimeNamespace(ctx); l.NoBoots != nil {
		r.say("no member gets other clocks: %v", l.NoBoots)
		return nil
	}
	for _, r.ahead = range []time.Duration{1000 * time.Hour, 0} {
		for _, m := range r.members {
			m.kill()
			if err := r.back(ctx, m); err != nil {
				return err
			}
			l.Boots++
			if err := r.serves(ctx, 30); err != nil {
				return err
			}
		}
		r.say("all members were restarted, with CLOCK_BOOTTIME ahead by %v", r.ahead)
	}
	return nil
}

// withReaders has a reader at each member while do runs.
func (r *run) withReaders(ctx context.Context, do func(context.Context) error) error {
	var group sync.WaitGroup
	readCtx, cancel := context.WithCancel(ctx)
	stop := func() { cancel(); group.Wait() }
	defer stop()
	for i, m := range r.members {
		api, err := newClient(m.Client)
		if err != nil {
			return fmt.Errorf("reader of %s: %w", m.name, err)
		}
		group.Go(func() {
			defer func() { _ = api.Close() }() // an error of Close has no effect on the run
			for n := i; readCtx.Err() == nil; n++ {
				r.readOnce(readCtx, api, keyName(n%keys))
			}
		})
	}
	return do(ctx)
}

// freshness bounds a read of a reader: a read that waits while the process is stopped began at most
// this long before its end, after writes that other members have acknowledged.
const freshness = 250 * time.Millisecond

// readOnce reads a key, and records a read that is answered in time.
func (r *run) readOnce(ctx context.Context, api clientv3.KV, key string) {
	callCtx, cancel := context.WithTimeout(ctx, freshness)
	defer cancel()
	o := operation{verb: get, key: key, call: r.history.now()}
	if err := o.run(callCtx, api, r.values); err == nil {
		o.ret, o.answered = r.history.now(), true
		r.history.add(o)
	}
	_ = lab.Sleep(ctx, pause) // the caller looks at ctx
}
