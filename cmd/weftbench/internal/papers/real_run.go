// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
	"github.com/weftraft/weft/cmd/weftbench/internal/codingbench"
	"github.com/weftraft/weft/cmd/weftbench/internal/realreads"
	"github.com/weftraft/weft/internal/lab"
)

// kind is a figure that processes and the simulation both have, of full copies and of Weft.
type kind struct {
	what      string
	clients   int
	processes func(*codingbench.Cell) lab.Rounds
	simulated func(adaptive.Outcome) lab.Rounds
	// higher says that more is better.
	higher bool
}

func perSecond(clients int) kind {
	return kind{
		what: "puts a second", clients: clients, higher: true,
		processes: func(c *codingbench.Cell) lab.Rounds { return c.PerSecond },
		simulated: func(o adaptive.Outcome) lab.Rounds { return byRound(o.Trace) },
	}
}

var (
	// rate is that of Crossword's clients. With one client, which FlexRaft has, the rate is the inverse of the latency.
	rate, latency = perSecond(16), perSecond(1)
	leaderBytes   = kind{
		what: "bytes sent by the leader for a byte", clients: 16,
		processes: func(c *codingbench.Cell) lab.Rounds { return lab.Rounds{c.Sent()} },
		simulated: func(o adaptive.Outcome) lab.Rounds { return lab.Rounds{o.Sent} },
	}
)

// servers are the members of a group, and the number of failed members among them.
type servers struct{ nodes, failed int }

// near is how far the ratios of processes and of the simulation may lie apart.
const near = 1.25

// byProcesses runs values of 64 and 256 KB twice: by processes of kvdemo that send at most 100 Mbit/s each, and in a
// simulation of these processes and of the processor that they share. The links are the limit of both, so the two ratios
// can be compared. Processes and simulation run on from round to round, so the policy knows the load after the first rounds.
func byProcesses(k kind, groups ...servers) func(*Bench) (*Result, error) {
	return func(b *Bench) (*Result, error) {
		t := lab.Table{
			Title: fmt.Sprintf("%s, 100 Mbit/s, %d clients: full copies → Weft", k.what, k.clients),
			Rows:  [][]string{{"N", "failed", "value", "simulated", "ratio", "processes", "ratio", "processes' ratio over the simulated"}},
		}
		apart, where, cells := 1.0, "", 0
		for _, g := range groups {
			measured, err := b.processes(k.clients, g)
			if err != nil {
				return nil, err
			}
			for i := 0; i < len(measured); i += 2 {
				full, ours := measured[i], measured[i+1]
				simFull, err := b.simulated(k, g, full.Size, adaptive.FullCopies())
				if err != nil {
					return nil, err
				}
				simOurs, err := b.simulated(k, g, full.Size, adaptive.Weft())
				if err != nil {
					return nil, err
				}
				measuredRatio, simRatio := k.better(k.processes(ours), k.processes(full)), k.better(simOurs, simFull)
				real, sim := measuredRatio.Median(), simRatio.Median()
				t.Rows = append(t.Rows, []string{
					fmt.Sprint(g.nodes), fmt.Sprint(g.failed), lab.Bytes(full.Size),
					figure(simFull.Median()) + " → " + figure(simOurs.Median()), simRatio.Text("%.2fx"),
					figure(k.processes(full).Median()) + " → " + figure(k.processes(ours).Median()), measuredRatio.Text("%.2fx"), figure(real / sim),
				})
				cells++
				if off := max(real/sim, sim/real); off > apart {
					apart, where = off, fmt.Sprintf("N = %d, %d failed, %s", g.nodes, g.failed, lab.Bytes(full.Size))
				}
			}
		}
		says := fmt.Sprintf("the ratios of processes are within 25%% of the simulated ones in all %d cells", cells)
		if apart > near {
			says = fmt.Sprintf("the ratios of processes and of the simulation lie up to %.2f times apart (%s)", apart, where)
		}
		return &Result{Tables: []lab.Table{t}, Says: says}, nil
	}
}

// better returns how many times as good as other figures some are, round by round.
func (k kind) better(ours, full lab.Rounds) lab.Rounds {
	if k.higher {
		return ours.Ratio(full)
	}
	return full.Ratio(ours)
}

const (
	narrow = gbit / 10
	// long is the time of a load, at the start of which the policy tries its forms.
	long = 4 * time.Second
)

// processLoad is a load of processes. Rows that show other figures of the same load share its measurement.
type processLoad struct {
	servers
	clients int
}

// processes measures a load of processes.
func (b *Bench) processes(clients int, g servers) ([]*codingbench.Cell, error) {
	load := processLoad{g, clients}
	if cells := b.measured[load]; cells != nil {
		return cells, nil
	}
	c := codingbench.Config{
		Kvdemo: b.Kvdemo, Dir: filepath.Join(b.Dir, fmt.Sprintf("%d-%d-%d", g.nodes, g.failed, clients)),
		Nodes: []int{g.nodes}, Down: g.failed, Egress: []int{narrow}, Sizes: []int{64 << 10, 256 << 10}, Clients: []int{clients},
		Rounds: b.Rounds, Warm: 500 * ms, Time: long, Progress: b.Progress,
	}
	if b.Short {
		c.Sizes, c.Time = c.Sizes[:1], 500*ms
	}
	cells, err := codingbench.Run(b.Ctx, c)
	if b.measured == nil {
		b.measured = map[processLoad][]*codingbench.Cell{}
	}
	b.measured[load] = cells
	return cells, err
}

// simulated is the same in virtual time: as many rounds, of a leader that keeps what it has learnt, as processes do.
func (b *Bench) simulated(k kind, g servers, bytes int, side adaptive.Side) (lab.Rounds, error) {
	s := adaptive.Setting{
		Network: adaptive.OneMachine(g.nodes, narrow), Sizes: []int{bytes}, Clients: k.clients, Failed: g.failed,
		Time: time.Duration(b.Rounds) * long, Seed: b.Seed,
	}
	out, err := s.Run(side, false)
	return k.simulated(out), err
}

// byRound returns the rates of rounds, of the ops of each second.
func byRound(trace []float64) (all lab.Rounds) {
	for seconds := range slices.Chunk(trace, int(long/time.Second)) {
		sum := 0.
		for _, ops := range seconds {
			sum += ops
		}
		all = append(all, sum/float64(len(seconds)))
	}
	return all
}

// ycsbBeside runs three workloads at five processes with the delays of wan, all of them responders, and at as many of
// released etcd and ZooKeeper.
func ycsbBeside(b *Bench) (*Result, error) {
	const roster = "roster, notes"
	programs := realreads.Config{Kvdemo: b.Kvdemo, Etcd: b.Etcd, ZooKeeper: b.ZooKeeper}
	others := slices.DeleteFunc([]string{realreads.Etcd, realreads.SyncedZooKeeper, realreads.Serializable, realreads.ZooKeeper},
		func(side string) bool { return programs.Lacks(side) != "" })
	t := lab.Table{
		Title: "wan, four clients near each of five nodes, 128 B, uniform keys: ops a second, and the mean of the sites' reads in ms (reads of Weft and of etcd are linearizable, those of the other three sides are not)",
		Rows:  [][]string{{"workload", "Weft"}},
	}
	for _, side := range others {
		t.Rows[0] = append(t.Rows[0], side, "Weft over it")
	}
	least, reads := map[string]float64{}, 0.
	for _, w := range []struct {
		name   string
		writes float64
	}{{"A", 0.5}, {"B", 0.05}, {"C", 0}} {
		cfg := programs
		cfg.Dir, cfg.Networks, cfg.Policies, cfg.Everywhere = filepath.Join(b.Dir, "ycsb-"+w.name), []string{"wan"}, append(others, roster), true
		cfg.Clients, cfg.Writes, cfg.Keys, cfg.Value = 4, w.writes, 1000, 128
		cfg.Rounds, cfg.Time, cfg.Progress = b.Rounds, long, b.Progress
		if b.Short {
			cfg.Time = 500 * ms
		}
		r, err := realreads.Run(b.Ctx, cfg)
		if err != nil {
			return nil, err
		}
		byPolicy := map[string]realreads.Row{}
		for _, row := range r.Rows {
			byPolicy[row.Policy] = row
		}
		cell := func(side string) string {
			return byPolicy[side].Rates.Text("%.0f") + ", " + figure(millis(byPolicy[side].ReadMean))
		}
		row := []string{w.name, cell(roster)}
		for _, side := range others {
			ratio := byPolicy[roster].Rate / byPolicy[side].Rate
			row = append(row, cell(side), figure(ratio)+"x")
			if was, ok := least[side]; !ok || ratio < was {
				least[side] = ratio
			}
		}
		if stale := byPolicy[realreads.Serializable]; stale.ReadMean > 0 {
			reads = max(reads, byPolicy[roster].ReadMean.Seconds()/stale.ReadMean.Seconds())
		}
		t.Rows = append(t.Rows, row)
	}
	var says []string
	for _, side := range others {
		says = append(says, fmt.Sprintf("%s at least %sx", side, figure(least[side])))
	}
	res := &Result{Tables: []lab.Table{t}, Says: "ops a second of Weft over " + strings.Join(says, ", ")}
	if reads > 0 {
		res.Says += fmt.Sprintf("; Weft's reads take at most %.2f times as long as those of stale etcd, and miss no acknowledged write: writes wait for all five responders, and etcd's for a majority", reads)
	}
	return res, nil
}
