// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// ReadsReport gives the cost of linearizable reads in a cluster without other load.
type ReadsReport struct {
	Follower, Leader ReadCost
	// Idle is the bytes a second that all members send to each other without reads.
	Idle float64
}

// ReadCost is the cost of reads at a member, one read after another.
type ReadCost struct {
	// Bytes is the bytes that all members sent to each other for a read, less the bytes of an idle
	// cluster in the same time; noise may make Bytes negative. Median is the median time of a read.
	Bytes  float64
	Median time.Duration
	// Served counts reads by lease; nil without leases.
	Served *served
}

// String returns the report as a line.
func (r ReadsReport) String() string {
	return fmt.Sprintf("%d reads at a follower: %v; at the leader: %v; idle, all members send %.1f KB/s", readCount, r.Follower, r.Leader, r.Idle/1000)
}

// String returns the cost in a few words.
func (c ReadCost) String() string {
	s := fmt.Sprintf("%d B between members and %v each", int(math.Round(c.Bytes)), c.Median.Round(10*time.Microsecond))
	if c.Served != nil {
		s += fmt.Sprintf(" (%d by a responder, %d by the leader's lease)", c.Served.Local, c.Served.Leader)
	}
	return s
}

const (
	readCount = 1000
	// idleTime is the time for which the traffic of an idle cluster is measured.
	idleTime = 3 * time.Second
)

var errNotByLease = errors.New("fewer than nine reads in ten were answered by a lease of the member that was asked")

// Reads measures linearizable reads at a follower and at the leader.
func Reads(ctx context.Context, o Options) (report ReadsReport, err error) {
	r := newRun(o)
	defer r.close()
	if err := r.boot(ctx); err != nil {
		return report, err
	}
	leader, err := r.leader(ctx)
	if err != nil {
		return report, err
	}
	follower, err := r.other(leader)
	if err != nil {
		return report, err
	}
	if _, err := leader.api.Put(ctx, keyName(0), "value"); err != nil {
		return report, err
	}
	if o.Leased {
		if err := r.stable(ctx); err != nil {
			return report, err
		}
	}
	if report.Idle, err = r.idle(ctx); err != nil {
		return report, err
	}
	for m, cost := range map[*member]*ReadCost{follower: &report.Follower, leader: &report.Leader} {
		if *cost, err = r.readCost(ctx, m, report.Idle); err != nil {
			return report, err
		}
	}
	return report, nil
}

// idle returns the bytes a second that members send to each other without load.
func (r *run) idle(ctx context.Context) (float64, error) {
	began := time.Now()
	before, err := r.sent(ctx)
	if err != nil {
		return 0, err
	}
	if err := lab.Sleep(ctx, idleTime); err != nil {
		return 0, err
	}
	after, err := r.sent(ctx)
	return (after - before) / time.Since(began).Seconds(), err
}

// sent returns the bytes that members have sent to each other.
func (r *run) sent(ctx context.Context) (total float64, err error) {
	for _, m := range r.members {
		n, err := m.metric(ctx, "etcd_network_peer_sent_bytes_total{")
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (r *run) readCost(ctx context.Context, m *member, idle float64) (c ReadCost, err error) {
	var was view
	if r.Leased {
		if was, err = m.look(ctx); err != nil {
			return c, err
		}
	}
	began := time.Now()
	before, err := r.sent(ctx)
	if err != nil {
		return c, err
	}
	took := make([]time.Duration, 0, readCount)
	for range readCount {
		start := time.Now()
		if _, err := m.api.Get(ctx, keyName(0)); err != nil {
			return c, fmt.Errorf("reading at %s: %w", m.name, err)
		}
		took = append(took, time.Since(start))
	}
	after, err := r.sent(ctx)
	if err != nil {
		return c, err
	}
	slices.Sort(took)
	c.Median, c.Bytes = took[len(took)/2], (after-before-idle*time.Since(began).Seconds())/readCount
	if !r.Leased {
		return c, nil
	}
	is, err := m.look(ctx)
	if err != nil {
		return c, err
	}
	c.Served = &served{Local: is.Reads.Local - was.Reads.Local, Leader: is.Reads.Leader - was.Reads.Leader}
	if c.Served.Local+c.Served.Leader < readCount*9/10 {
		return c, fmt.Errorf("%w: at %s, %d of %d", errNotByLease, m.name, c.Served.Local+c.Served.Leader, readCount)
	}
	return c, nil
}
