// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// Failover measures how long nothing commits after a group has lost its leader under load, with each
// way of replication.
//
// The same seeds kill the leader at the same instant on every side. Most of a gap
// is the election timeout, which is drawn; therefore the times from the election to
// the first commit, and to the first commit of a new entry, are measured on their own.
// In these times a leader would be slower that must first complete entries of its
// predecessor, or that counts on a lost member.
type Failover struct {
	Group
	// Seeds is how many leaders are killed on each side, the first with Seed.
	Seeds int
	// Leases says that sides differ in leases: see [LeaseSides].
	Leases bool
}

// loss is one loss of a leader.
type loss struct {
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

// lossRow is the measurement of one side and one size of group.
type lossRow struct {
	Voters int           `json:"voters"`
	Side   string        `json:"side"`
	RTT    time.Duration `json:"rtt_ns"`
	Gaps   []loss        `json:"gaps"`
}

// Run kills all the leaders.
func (cfg *Failover) Run(ctx context.Context) (*lab.Section, error) {
	rows, err := cfg.rows(ctx)
	return cfg.report(rows), err
}

func (cfg *Failover) rows(ctx context.Context) (rows []lossRow, err error) {
	kill := cfg.kill
	if cfg.Leases {
		kill = cfg.killLeased
	}
	err = cfg.each(ctx, func(voters int, side Side) error {
		row := lossRow{Voters: voters, Side: side.Name, RTT: 2 * cfg.Delay}
		for i := range cfg.Seeds {
			seed := cfg.Seed + uint64(i)
			gap, err := kill(side, voters, seed)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
			row.Gaps = append(row.Gaps, gap)
		}
		rows = append(rows, row)
		return nil
	})
	return rows, err
}

// kill runs a group under load, kills its leader, and waits for a commit.
func (cfg *Failover) kill(side Side, voters int, seed uint64) (loss, error) {
	gap := loss{Seed: seed}
	o := network(voters, seed, cfg.Delay)
	var w lossWatch
	w.use(side, &o)
	c, err := elected(o, &w.c)
	if err != nil {
		return gap, err
	}
	load, err := c.StartLoad(vnet.LoadOptions{Rate: cfg.rate(voters, cfg.Load), Sizes: []int{cfg.Size}, Seed: seed})
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

// loseLeader kills node 1, the leader, now, and measures the gap.
func (w *lossWatch) loseLeader(gap *loss, load *vnet.Load) error {
	c, at := w.c, w.c.Now()
	c.Kill(1)
	*w = lossWatch{c: c}
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

// lossWatch sees what a new leader does.
type lossWatch struct {
	c *vnet.Cluster
	// won is when the votes were in, which with coded entries may be before the
	// winner leads; term is that of the leader. committed and fresh are when
	// something, and something new, was committed.
	won, committed, fresh time.Duration
	term                  uint64
	recovering            uint64
}

// use has a cluster replicate in the way of a side, and watches it.
func (w *lossWatch) use(side Side, o *vnet.Options) {
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

// winner is called when a node has won an election and does not lead yet.
type winner struct {
	w    *lossWatch
	node uint64
}

// RecordCoding implements raft.CodingRecorder.
func (k winner) RecordCoding(e raft.CodingEvent) {
	if e.Kind == raft.CodingRecovery {
		k.w.won, k.w.recovering = k.w.c.Now(), k.node
	}
}
