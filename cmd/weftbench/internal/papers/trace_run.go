// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
	"github.com/weftraft/weft/cmd/weftbench/internal/load"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/svg"
)

// traced are the sides of the trace by processes, and the flags of their nodes.
var traced = []struct {
	adaptive.Side
	coding string
}{{adaptive.FullCopies(), "off"}, {adaptive.Weft(), "on"}}

// slower is by how much the rates of processes are lower than the paper's: the processors of one machine fill no faster links.
const slower = 10

func slowerPhases() (all []phase) {
	for _, p := range phases {
		p.rate, p.laggard = p.rate/slower, p.laggard/slower
		all = append(all, p)
	}
	return all
}

// traceClients is the number of clients in the trace, which call the leader and stand beside it.
const traceClients = 15

// adaptByProcesses runs the trace by processes, whose parent shapes their links while clients go on, and in a
// simulation of the same.
func adaptByProcesses(b *Bench) (_ *Result, err error) {
	seconds := 6
	if b.Short {
		seconds = 1
	}
	var clusters []*cluster.Cluster
	defer func() {
		for _, c := range clusters {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, side := range traced {
		name := "trace-" + side.coding
		c, err := cluster.Start(b.Ctx, cluster.Config{
			Name: name, Nodes: 5, Dir: filepath.Join(b.Dir, name),
			Serve: lab.Serve{Program: []string{b.Kvdemo, "serve"}, Args: []string{"--orders", "--coding", side.coding}},
		})
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, c)
	}
	traces := make([][]trace, len(traced)) // by side and round
	err = lab.Turns(b.Rounds, len(traced), func(round, i int) error {
		t, err := lab.Again(func() (trace, error) { return b.trace(clusters[i], seconds, uint64(round)) })
		traces[i] = append(traces[i], t)
		fmt.Fprintf(b.Progress, "%s: round %d of %d\n", traced[i].Name, round+1, b.Rounds)
		return err
	})
	if err != nil {
		return nil, err
	}
	t := lab.Table{
		Title: fmt.Sprintf("puts a second, %d clients, 1/%d of the rates: full copies → Weft, the last two thirds of %d s", traceClients, slower, seconds),
		Rows:  [][]string{{"phase", "simulated", "ratio", "processes", "ratio"}},
	}
	simulated := make([][]float64, len(traced))
	for i, side := range traced {
		if simulated[i], err = b.simulatedTrace(side.Side, seconds); err != nil {
			return nil, err
		}
	}
	least := 0.
	for i, p := range phases {
		in := func(side int) lab.Rounds {
			return lab.RoundsOf(traces[side], func(t trace) float64 { return settledIn(t.puts, i, seconds) })
		}
		sim := func(side int) float64 { return settledIn(simulated[side], i, seconds) }
		ratio := in(1).Ratio(in(0))
		if least == 0 || ratio.Median() < least {
			least = ratio.Median()
		}
		t.Rows = append(t.Rows, []string{
			p.name, figure(sim(0)) + " → " + figure(sim(1)), figure(sim(1)/sim(0)) + "x",
			figure(in(0).Median()) + " → " + figure(in(1).Median()), ratio.Text("%.2fx"),
		})
	}
	chart := svg.Chart{Title: "puts of processes as load and network change, the last round", X: "seconds", Y: "puts a second"}
	for i, side := range traced {
		chart.Series = append(chart.Series, line(side.Name, traces[i][b.Rounds-1].puts))
	}
	behind := func(side int) float64 {
		return 100 * lab.RoundsOf(traces[side], func(t trace) float64 { return t.behind }).Median()
	}
	return &Result{Tables: []lab.Table{t}, Charts: []svg.Chart{chart}, Says: fmt.Sprintf(
		"Weft beside full copies at least %.2fx in each phase; when the last one ends, its two slow followers have yet to apply %.0f%% of its entries with full copies, %.0f%% with Weft, whose other followers send them units",
		least, behind(0), behind(1))}, nil
}

// simulatedTrace is the trace of processes in virtual time.
func (b *Bench) simulatedTrace(side adaptive.Side, seconds int) ([]float64, error) {
	s := adaptive.Setting{Network: adaptive.OneMachine(5, phases[0].rate/slower), Clients: traceClients, Seed: b.Seed}
	for i := range s.Network.Links {
		s.Network.Links[i].Delay = regional.delay
	}
	through(slowerPhases(), &s, seconds)
	out, err := s.Run(side, false)
	return out.Trace, err
}

// trace is how processes went through all phases.
type trace struct {
	puts   []float64 // of each second
	behind float64   // the part of the last phase's entries that the slow followers have yet to apply at its end
}

// trace has processes go through all phases.
func (b *Bench) trace(c *cluster.Cluster, seconds int, seed uint64) (t trace, err error) {
	leader, term, err := c.Lead(b.Ctx)
	if err != nil {
		return t, err
	}
	for _, p := range slowerPhases() {
		if err := p.shape(c, leader.ID); err != nil {
			return t, err
		}
		before := c.Status(b.Ctx)
		counts, begun := make([]atomic.Int64, seconds), time.Now()
		_, err := load.Run(b.Ctx, load.Plan{
			Addresses: []string{leader.Client}, Clients: traceClients, Size: p.size, Keys: load.KeysFor(p.size),
			Duration: time.Duration(seconds) * time.Second, Timeout: 30 * time.Second, Seed: seed,
			Note: func(call *lab.Call) {
				if at := int(call.Done.Sub(begun) / time.Second); call.Err == nil && at < seconds {
					counts[at].Add(1)
				}
			},
		})
		if err != nil {
			return t, err
		}
		for i := range counts {
			t.puts = append(t.puts, float64(counts[i].Load()))
		}
		if p.laggard > 0 {
			t.behind = behind(before, c.Status(b.Ctx), p.slow(c, leader.ID))
		}
	}
	if err := c.Settle(b.Ctx, 3*time.Second); err != nil {
		return t, err
	}
	if _, now, err := c.Lead(b.Ctx); err != nil || now != term {
		return t, errors.Join(fmt.Errorf("the leader changed, term %d was %d: %w", now, term, lab.ErrDisturbed), err)
	}
	return t, nil
}

// behind returns which part of the entries committed since before slow nodes have yet to apply, on average.
func behind(before, now []*kvpb.StatusResponse, slow map[int]bool) (part float64) {
	commit := func(all []*kvpb.StatusResponse) (most uint64) {
		for _, s := range all {
			most = max(most, s.GetCommit())
		}
		return most
	}
	for _, s := range now {
		if slow[int(s.GetId())] {
			part += float64(commit(now)-s.GetApplied()) / float64(max(commit(now)-commit(before), 1)) / float64(len(slow))
		}
	}
	return part
}

// slow returns the followers that lag in a phase.
func (p phase) slow(c *cluster.Cluster, leader int) map[int]bool {
	slow := map[int]bool{}
	for id := len(c.Nodes); p.laggard > 0 && len(slow) < 2; id-- {
		if id != leader {
			slow[id] = true
		}
	}
	return slow
}

// shape has processes be in a phase: each link of a node has the same part of its card.
func (p phase) shape(c *cluster.Cluster, leader int) error {
	lag := p.slow(c, leader)
	for _, from := range c.Nodes {
		for _, to := range c.Nodes {
			rate, delay := p.rate/float64(len(c.Nodes)-1), regional.delay
			if lag[from.ID] || lag[to.ID] {
				rate, delay = min(rate, p.laggard), 10*delay
			}
			if from == to {
				continue
			}
			if err := from.Tell(fmt.Sprintf("shape %d %d %d", to.ID, int(rate), delay.Milliseconds())); err != nil {
				return err
			}
		}
	}
	return nil
}
