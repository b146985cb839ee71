// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package failoverbench measures how long nothing commits after a group has lost
// its leader under load, with each way of replication.
//
// The same seeds kill the leader at the same instant on every side. Most of a gap
// is the election timeout, which is drawn; so the time from the election to the
// first commit, and to the first commit of something new, is measured on its
// own. That is where a leader that must first complete what its predecessor left
// behind would be slower, or one that counts on a member that is gone.
package failoverbench

import (
	"context"
	"fmt"
	"io"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Config says what to measure.
type Config struct {
	// Voters are the sizes of the groups.
	Voters []int
	// Size is that of a payload in bytes.
	Size int
	// Load is the share of what full copies can do that clients ask for.
	Load float64
	// Delay is that of a message in one direction.
	Delay time.Duration
	// Seeds is how many leaders are killed on each side, the first with the
	// seed First.
	Seeds int
	First uint64
	// Leases says that sides differ in leases: see [virtual.LeaseSides].
	Leases bool
	// Sides run in the core. The others are compared with the first.
	Sides []virtual.Side
	// Progress hears of each row.
	Progress io.Writer
}

// Gap is one loss of a leader.
type Gap struct {
	Seed uint64 `json:"seed"`
	// Whole is from the kill to the next commit of a client's proposal;
	// Elected, from the kill to the election that lasts; Commit, from there to
	// the first commit of anything; Fresh, to the first commit of a proposal
	// that the new leader appended.
	Whole   time.Duration `json:"whole_ns"`
	Elected time.Duration `json:"elected_ns"`
	Commit  time.Duration `json:"commit_ns"`
	Fresh   time.Duration `json:"fresh_ns"`
	// Heard is when each survivor, by ascending id, heard the old leader last, from the
	// kill: its election timeout runs from there. Only filled in where leases are compared.
	Heard []time.Duration `json:"heard_ns,omitempty"`
}

// Row is what one side did with one size of group.
type Row struct {
	Voters int           `json:"voters"`
	Side   string        `json:"side"`
	RTT    time.Duration `json:"rtt_ns"`
	Gaps   []Gap         `json:"gaps"`
}

// Run kills all the leaders.
func Run(ctx context.Context, cfg Config) ([]Row, error) {
	var rows []Row
	for _, n := range cfg.Voters {
		for _, side := range cfg.Sides {
			row := Row{Voters: n, Side: side.Name, RTT: 2 * cfg.Delay}
			for i := range cfg.Seeds {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				kill := cfg.kill
				if cfg.Leases {
					kill = cfg.killLeased
				}
				gap, err := kill(side, n, cfg.First+uint64(i))
				if err != nil {
					return nil, fmt.Errorf("%d voters, %s, seed %d: %w", n, side.Name, cfg.First+uint64(i), err)
				}
				row.Gaps = append(row.Gaps, gap)
			}
			rows = append(rows, row)
			fmt.Fprintf(cfg.Progress, "N=%d, %s\n", n, side.Name)
		}
	}
	return rows, nil
}

const patient = time.Minute // of virtual time

// kill runs a group under load, kills its leader, and waits for a commit.
func (cfg *Config) kill(side virtual.Side, voters int, seed uint64) (Gap, error) {
	gap := Gap{Seed: seed}
	o := virtual.Network(voters, seed, cfg.Delay)
	var w watch
	w.use(side, &o)
	c, err := vnet.New(o)
	if err != nil {
		return gap, err
	}
	w.c = c
	if err := c.Elect(1); err != nil {
		return gap, err
	}
	load, err := c.StartLoad(vnet.LoadOptions{Rate: cfg.rate(voters), Sizes: []int{cfg.Size}, Seed: seed})
	if err != nil {
		return gap, err
	}
	// Some time into the load, at an instant that is the same on all sides.
	at := c.Now() + 200*time.Millisecond + time.Duration(seed%1000)*50*time.Microsecond
	if err := c.Run(at); err != nil {
		return gap, err
	}
	if c.Leader() != 1 {
		return gap, fmt.Errorf("node %d leads before the kill, not node 1", c.Leader())
	}
	return gap, w.loseLeader(&gap, load)
}

// rate is how many payloads a second clients write.
func (cfg *Config) rate(voters int) float64 {
	return cfg.Load * virtual.Egress / float64((voters-1)*cfg.Size)
}

// loseLeader kills node 1, the leader, now, and measures the gap.
func (w *watch) loseLeader(gap *Gap, load *vnet.Load) error {
	c, at := w.c, w.c.Now()
	c.Kill(1)
	*w = watch{c: c}
	before := len(load.Calls())
	var first time.Duration
	done, err := c.RunUntil(at+patient, func() bool {
		if first == 0 && len(load.Calls()) > before {
			first = c.Now()
		}
		return w.fresh > 0
	})
	if err != nil {
		return err
	}
	if !done {
		return fmt.Errorf("nothing committed within %v", patient)
	}
	gap.Whole, gap.Elected, gap.Commit, gap.Fresh = first-at, w.won-at, w.committed-w.won, w.fresh-w.won
	return nil
}

// watch sees what a new leader does.
type watch struct {
	c *vnet.Cluster
	// won is when the votes were in, which with coded entries may be before the
	// winner leads; term is that of the leader. committed and fresh are when
	// something, and something new, was committed.
	won, committed, fresh time.Duration
	term                  uint64
	recovering            uint64
}

// use has a cluster replicate in the way of a side, and watches it.
func (w *watch) use(side virtual.Side, o *vnet.Options) {
	o.Configure = func(id uint64, c *raft.Config) {
		side.Configure(c)
		if c.Coding != nil {
			c.Coding.Recorder = winner{w, id}
		}
	}
	o.OnRole = func(node uint64, role raft.StateType) {
		if role != raft.StateLeader {
			return
		}
		if w.recovering != node {
			w.won = w.c.Now()
		}
		w.recovering, w.committed, w.fresh = 0, 0, 0
		w.term = w.c.Core(node).BasicStatus().GetTerm()
	}
	o.OnCommit = func(node, _ uint64) {
		if w.committed == 0 && node == w.c.Leader() {
			w.committed = w.c.Now()
		}
	}
	o.OnApply = func(node uint64, e *pb.Entry) {
		if w.fresh == 0 && node == w.c.Leader() && e.GetTerm() == w.term && len(e.GetData()) > 0 {
			w.fresh = w.c.Now()
		}
	}
}

// winner hears of an election that is won by a node which does not lead yet.
type winner struct {
	w    *watch
	node uint64
}

// RecordCoding implements raft.CodingRecorder.
func (k winner) RecordCoding(e raft.CodingEvent) {
	if e.Kind == raft.CodingRecovery {
		k.w.won, k.w.recovering = k.w.c.Now(), k.node
	}
}
