// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/internal/lab"
)

// Fault is one failure of a responder.
type Fault struct {
	Failure string `json:"failure"`
	// Held is the longest time of a write that waited for the responder. Holds counts the times
	// at which writes waited: slow writes without another write between them count once.
	Held  time.Duration `json:"held_ns"`
	Holds int           `json:"holds"`
	// Besides counts slow writes while the leader's roster did not name the responder, so that
	// no write waited for the responder. Slowest is the longest of these writes. The cause is the
	// machine, above all its disk, or another responder that was too slow because of the machine.
	Besides int           `json:"besides"`
	Slowest time.Duration `json:"slowest_ns"`
	// Reads counts the reads at the other nodes, of keys that nobody writes, and Longest is the
	// longest of these reads. Before and After are 99th percentiles, before and after the failure.
	// Late counts the reads after the failure that took over 2 ms longer than Before.
	Reads   int           `json:"reads"`
	Late    int           `json:"late"`
	Before  time.Duration `json:"before_ns"`
	After   time.Duration `json:"after_ns"`
	Longest time.Duration `json:"longest_ns"`
}

const (
	// failTime and leaseTime are kvdemo's settings.
	failTime  = 500 * time.Millisecond
	leaseTime = time.Second
	// bound is the longest time that a responder may hold a write up, but for two round trips,
	// which take almost no time on one machine.
	bound = failTime + leaseTime
	// observed is how long a failure is looked at.
	observed = 2*bound + time.Second
	// slowWrite is the least time of a write that counts as held up.
	slowWrite = failTime / 2
	// lateBy is how much longer a read takes that counts as late.
	lateBy = 2 * time.Millisecond
)

// faults has responders fail in each way.
func (b *bench) faults(ctx context.Context) (err error) {
	s := &side{name: "responders", leases: true, fails: true}
	if err := b.start(ctx, s); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.c.Close()) }()
	for i := range b.cfg.Faults {
		for _, f := range failures() {
			fault, err := lab.Again(func() (Fault, error) { return s.fault(ctx, f) })
			if err != nil {
				return fmt.Errorf("%s, failure %d: %w", f.Name, i+1, err)
			}
			b.results.Faults = append(b.results.Faults, fault)
			b.say("failure %d of %d, %s: writes held up %d times, %v at most, and %d times besides; %d of %d reads late, the longest took %v", i+1, b.cfg.Faults, f.Name,
				fault.Holds, fault.Held.Round(time.Millisecond), fault.Besides, fault.Late, fault.Reads, fault.Longest.Round(10*time.Microsecond))
		}
	}
	return nil
}

// fault has one responder fail under load, and get well. Then another node leads: a leader
// makes a responder that failed wait longer each time.
func (s *side) fault(ctx context.Context, f cluster.Fault) (Fault, error) {
	leader, err := s.ready(ctx)
	if err != nil {
		return Fault{}, err
	}
	others := but(s.c.Nodes, leader)
	victim, next := others[0], others[1]
	w, r, n := startWrites(ctx, leader), startReads(ctx, but(s.c.Nodes, victim)...), watchNaming(ctx, leader, victim)
	stop := sync.OnceValue(func() namings { w.stop(); r.stop(); return n.stop() })
	defer stop()
	if err := w.calm(ctx, time.Second); err != nil {
		return Fault{}, err
	}
	if err := n.isNamed(ctx); err != nil {
		return Fault{}, err
	}
	at := time.Now()
	heal, err := f.Strike(s.c, victim, leader)
	if err != nil {
		return Fault{}, err
	}
	end, err := w.observe(ctx)
	if err != nil {
		return Fault{}, errors.Join(err, heal())
	}
	seen := stop()
	if err := heal(); err != nil {
		return Fault{}, err
	}
	if _, err := s.c.WaitLeader(ctx); err != nil {
		return Fault{}, err
	}
	if err := s.c.HandTo(ctx, next.Node); err != nil {
		return Fault{}, err
	}
	fault := Fault{Failure: f.Name}
	fault.reads(r.List(), at)
	if !seen.oneTerm() {
		return fault, fmt.Errorf("%w: node %d led in several terms", lab.ErrDisturbed, leader.ID)
	}
	return fault, fault.writes(w.List(), at, end, seen)
}

// isNamed waits for the leader's word on its roster, and returns an error if the responder is
// not named. The leader may have removed it just before, because the machine was too busy.
func (n *naming) isNamed(ctx context.Context) error {
	for begun, end := time.Now(), time.Now().Add(patience); time.Now().Before(end); {
		if x, ok := n.last(begun); ok {
			if !x.named {
				return fmt.Errorf("%w: roster %d.%d does not name the responder that is to fail", lab.ErrDisturbed, x.term, x.roster)
			}
			return nil
		}
		if err := lab.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("the leader did not say within %v whom its roster names; look at the log of its process", patience)
}

// observe lets writes go on for a while, and then until a write that began after the while is
// done. It returns the instant at which the while ended.
func (w *calls) observe(ctx context.Context) (end time.Time, err error) {
	if err := lab.Sleep(ctx, observed); err != nil {
		return end, err
	}
	end = time.Now()
	_, err = w.next(ctx, end)
	return end, err
}

// hold is a time in which writes were slow, from the beginning of the first to the end of the
// last.
type hold struct {
	from, to time.Time
	longest  time.Duration
}

// holds returns the times at which writes were slow, for writes under way at one instant, or
// begun after that instant and before another.
func holds(acks []lab.Ack, at, end time.Time) (list []hold) {
	slices.SortFunc(acks, func(a, b lab.Ack) int { return a.Begun.Compare(b.Begun) })
	for _, a := range acks {
		took := a.Took()
		if a.Done.Before(at) || a.Begun.After(end) || took <= slowWrite {
			continue
		}
		if len(list) == 0 || a.Begun.After(list[len(list)-1].to) {
			list = append(list, hold{from: a.Begun, to: a.Done})
		}
		h := &list[len(list)-1]
		h.longest = max(h.longest, took)
		if a.Done.After(h.to) {
			h.to = a.Done
		}
	}
	return list
}

// writes looks at the writes around a failure. It returns lab.ErrDisturbed if nobody can tell
// whether the responder held a write up.
func (f *Fault) writes(acks []lab.Ack, at, end time.Time, seen namings) error {
	for _, h := range holds(acks, at, end) {
		// Of a time that began before the failure, what is after it counts.
		from := h.from
		if from.Before(at) {
			from = at
		}
		switch seen.named(from, h.to) {
		case sometimes:
			f.Holds++
			f.Held = max(f.Held, h.longest)
		case never:
			f.Besides++
			f.Slowest = max(f.Slowest, h.longest)
		case unknown:
			return fmt.Errorf("%w: rosters came and went unseen while a write took %v", lab.ErrDisturbed, h.longest)
		}
	}
	return nil
}

// reads looks at the reads around a failure.
func (f *Fault) reads(acks []lab.Ack, at time.Time) {
	var before, after []time.Duration
	for _, a := range acks {
		if a.Done.Before(at) {
			before = append(before, a.Took())
		} else {
			after = append(after, a.Took())
		}
	}
	f.Reads, f.Before, f.After, f.Longest = len(after), lab.Quantile(before, 0.99), lab.Quantile(after, 0.99), lab.Quantile(after, 1)
	for _, d := range after {
		if d > f.Before+lateBy {
			f.Late++
		}
	}
}
