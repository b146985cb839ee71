// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package slowbench makes one node of a cluster of real processes slow, or several, and measures what
// clients of the other nodes see, for several implementations of a replicated store.
package slowbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostbench"
	"github.com/weftraft/weft/cmd/weftbench/internal/load"
	"github.com/weftraft/weft/internal/lab"
)

// Config says what to measure. Faults of leaders strike a new cluster each: Host remembers which leaders were
// slow, and how often leaders changed, and a second fault would find another cluster than the first. Faults of
// followers strike one cluster in turn, which has some time to get well after each, because they leave no more than a log
// to catch up with; but not with roster leases, where responders that failed are watched for longer.
type Config struct {
	Sides   []Side
	Nodes   []int
	Faults  []string // names, of those that Names returns
	Who     []string // whom they strike, of Whom
	Rounds  int      // of each row, for each side, in turns
	Clients int
	Size    int // bytes of a value
	Reads   int // percentage of calls that are linearizable reads

	Healthy, For time.Duration // how long clients are watched before a fault, and from a leader's fault on; half as long from a follower's on
	Link, Sync   time.Duration // what a link, in one direction, and a sync take longer than on this machine, at all nodes
	Tick         time.Duration // of the nodes; ElectionTicks of them are an election timeout

	Dir      string    // for the nodes' data
	Progress io.Writer // told of each measurement
}

// Side is an implementation.
type Side struct {
	hostbench.Side
	// Etcd is the program of etcd, in the place of Serve. No file system of ours is under etcd, so that
	// its disk cannot be slow.
	Etcd string
}

// Whom are those whom a fault may strike.
var Whom = []string{leader, follower, minority}

const (
	leader   = "leader"
	follower = "follower"
	minority = "minority" // as many followers as may fail
)

// Case is a row: what happens to whom.
type Case struct {
	Fault string `json:"fault"`
	Who   string `json:"who"`
	Nodes int    `json:"nodes"`
}

// Run is one measurement.
type Run struct {
	Case
	Side  string `json:"side"`
	Round int    `json:"round"`
	// Share, of the healthy rate PerSecond, and P99, a multiple of the healthy one, are of calls answered
	// from an election timeout after the fault began on; 0: none was.
	PerSecond float64 `json:"healthy_per_second"`
	Share     float64 `json:"share"`
	P99       float64 `json:"p99"`
	Gap       float64 `json:"gap"` // the longest since the fault began, in election timeouts
}

const (
	// ElectionTicks are kvdemo's and the loop's.
	ElectionTicks = 10
	// patience is how many election timeouts a call may take: more than a write waits for a responder that fails.
	patience  = 4
	warm      = 500 * time.Millisecond // before anything counts
	leastRest = 2                      // election timeouts after a fault of followers
	slower    = 10                     // as many times as the others
	slice     = 20 * time.Millisecond  // in which the process of a node with a slow processor runs once
)

func (c Config) electionTimeout() time.Duration { return ElectionTicks * c.Tick }

// cases returns the rows.
func (c Config) cases() (all []Case) {
	for _, fault := range c.Faults {
		for _, n := range c.Nodes {
			for _, who := range c.Who {
				if who != minority || n > 4 { // of three or four, a follower is as many as may fail
					all = append(all, Case{fault, who, n})
				}
			}
		}
	}
	return all
}

// sessions returns the rows in groups that strike one cluster, one after the other.
func (c Config) sessions(s Side) (all [][]Case) {
	for _, n := range c.Nodes {
		for _, who := range c.Who {
			var session []Case
			for _, x := range c.cases() {
				if x.Who != who || x.Nodes != n || s.Etcd != "" && ofDisk(x.Fault) {
					continue
				}
				if session = append(session, x); who == leader || s.Responders {
					all, session = append(all, session), nil
				}
			}
			if len(session) > 0 {
				all = append(all, session)
			}
		}
	}
	return all
}

// Measure measures all rows, round by round: a table of one round is worth something.
func Measure(ctx context.Context, cfg Config) (runs []Run, err error) {
	err = lab.Turns(cfg.Rounds, len(cfg.Sides), func(round, i int) error {
		side := cfg.Sides[i]
		for _, session := range cfg.sessions(side) {
			more, err := lab.Again(func() ([]Run, error) { return cfg.session(ctx, side, round, session) })
			if err != nil {
				return fmt.Errorf("%s, %s of %d, round %d: %w", side.Name, session[0].Who, session[0].Nodes, round+1, err)
			}
			for _, run := range more {
				fmt.Fprintf(cfg.Progress, "round %d  %d nodes  %-8s %-5s %-8s %6.0f/s healthy, %4.2f of it, gap %5.2f, p99 x %.2f\n",
					round+1, run.Nodes, run.Who, run.Fault, run.Side, run.PerSecond, run.Share, run.Gap, run.P99)
			}
			runs = append(runs, more...)
		}
		return nil
	})
	return runs, err
}

// start starts a cluster whose links and disks take the time that they are to take.
func (c Config) start(ctx context.Context, s Side, n int) (_ *cluster.Cluster, err error) {
	dir, links := filepath.Join(c.Dir, fmt.Sprintf("%s-%d", s.Name, time.Now().UnixNano())), func(int, int) time.Duration { return c.Link }
	if s.Etcd != "" {
		args := []string{"--log-level", "error", "--heartbeat-interval", fmt.Sprint(c.Tick.Milliseconds()), "--election-timeout", fmt.Sprint(c.electionTimeout().Milliseconds())}
		members, err := cluster.StartEtcd(ctx, cluster.EtcdConfig{Name: s.Name, Nodes: n, Dir: dir, Links: links, Etcd: lab.Etcd{Program: s.Etcd, Args: args}})
		if err != nil {
			return nil, err
		}
		return members.Struck(), nil
	}
	cl, err := cluster.Start(ctx, cluster.Config{
		Name: s.Name, Nodes: n, Dir: dir, Disks: true, Dialer: s.Dialer, Responders: s.Responders, Links: links,
		Serve: lab.Serve{Program: s.Serve, Args: append([]string{"--tick", c.Tick.String()}, s.Args...)},
	})
	if err != nil {
		return nil, err
	}
	for _, node := range cl.Nodes {
		err = errors.Join(err, node.Disk.Set(c.Sync))
	}
	return cl, err
}

// session has faults strike a new cluster under load, one after the other.
func (c Config) session(ctx context.Context, s Side, round int, cases []Case) (runs []Run, err error) {
	cl, err := c.start(ctx, s, cases[0].Nodes)
	if cl != nil {
		defer func() { err = errors.Join(err, closed(cl)) }()
	}
	if err != nil {
		return nil, err
	}
	first, err := cl.WaitLeader(ctx)
	if err != nil {
		return nil, err
	}
	victims, others := cases[0].split(cl.Nodes, first)
	var acks lab.Acks
	stop := c.load(ctx, s, others, round, acks.Note)
	defer func() { err = errors.Join(err, stop()) }()
	if err := lab.Sleep(ctx, warm); err != nil {
		return nil, err
	}
	for i, x := range cases {
		if i > 0 {
			if err := lab.Sleep(ctx, c.getsWell()); err != nil {
				return nil, err
			}
		}
		if err := lab.Sleep(ctx, c.Healthy); err != nil {
			return nil, err
		}
		if now, err := cl.WaitLeader(ctx); err != nil || now != first {
			return nil, cmp.Or(err, fmt.Errorf("%w: the leader changed before the fault", lab.ErrDisturbed))
		}
		run, err := c.strike(ctx, cl, victims, first, &acks, Run{Case: x, Side: s.Name, Round: round})
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// strike has a fault strike nodes for a time, and measures what it does to the calls.
func (c Config) strike(ctx context.Context, cl *cluster.Cluster, victims []*cluster.Node, first *cluster.Node, acks *lab.Acks, run Run) (_ Run, err error) {
	at := time.Now()
	for _, v := range victims {
		heal, failed := c.fault(run.Fault).Strike(cl, v, first)
		if failed != nil {
			return run, failed
		}
		defer func() { err = errors.Join(err, heal()) }()
	}
	lasting := c.For
	if run.Who != leader {
		lasting /= 2
	}
	if err := lab.Sleep(ctx, lasting); err != nil {
		return run, err
	}
	err = run.figures(acks, at.Add(-c.Healthy), at, at.Add(c.electionTimeout()), time.Now())
	return run, err
}

// getsWell is how long a cluster is left alone after a fault of followers: as long as the fault lasted, because those that
// catch up take processor time from the others, which would be measured as the healthy rate of the next fault.
func (c Config) getsWell() time.Duration { return max(leastRest*c.electionTimeout(), c.For/2) }

// closed ends a cluster, whose logs stay; the data of all would fill the disk.
func closed(cl *cluster.Cluster) error {
	err := cl.Close()
	for _, n := range cl.Nodes {
		err = errors.Join(err, os.RemoveAll(n.Data))
	}
	return err
}

// split returns whom the fault strikes, and the others, whom clients use.
func (r Case) split(nodes []*cluster.Node, first *cluster.Node) (victims, others []*cluster.Node) {
	followers := slices.DeleteFunc(slices.Clone(nodes), func(n *cluster.Node) bool { return n == first })
	switch r.Who {
	case leader:
		return []*cluster.Node{first}, followers
	case follower:
		return followers[:1], append(followers[1:], first)
	}
	f := (len(nodes) - 1) / 2
	return followers[:f], append(followers[f:], first)
}

// load begins the load, and returns what ends it.
func (c Config) load(ctx context.Context, s Side, nodes []*cluster.Node, round int, note func(*lab.Call)) (stop func() error) {
	plan := load.Plan{Clients: c.Clients, Size: c.Size, Keys: load.KeysFor(c.Size), Reads: c.Reads, Duration: time.Hour, Timeout: patience * c.electionTimeout(), Note: note, Seed: uint64(round)}
	if s.Etcd != "" {
		plan.Store = load.Etcd
	}
	for _, n := range nodes {
		plan.Addresses = append(plan.Addresses, n.Client)
	}
	var err error
	end := lab.Background(ctx, func(ctx context.Context) { _, err = load.Run(ctx, plan) })
	return func() error { end(); return err }
}

// figures compares the calls answered from settled to end with those from healthy to the fault.
func (r *Run) figures(acks *lab.Acks, healthy, fault, settled, end time.Time) error {
	before, after := took(acks, healthy, fault), took(acks, settled, end)
	if len(before) == 0 {
		return fmt.Errorf("%w: no call was answered before the fault", lab.ErrDisturbed)
	}
	r.PerSecond = float64(len(before)) / fault.Sub(healthy).Seconds()
	r.Share = float64(len(after)) / end.Sub(settled).Seconds() / r.PerSecond
	r.Gap = acks.LongestGap(fault, end).Seconds() / settled.Sub(fault).Seconds()
	r.P99 = float64(lab.Quantile(after, 0.99)) / float64(lab.Quantile(before, 0.99))
	return nil
}

// took returns how long calls took that were answered between two instants.
func took(acks *lab.Acks, from, to time.Time) (all []time.Duration) {
	for _, a := range acks.List() {
		if a.Done.After(from) && !a.Done.After(to) {
			all = append(all, a.Took())
		}
	}
	return all
}
