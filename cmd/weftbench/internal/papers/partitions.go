// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/svg"
	"github.com/weftraft/weft/rafttest/vnet"
)

// partitionSizes are those of TiDB's payloads, as far as the paper tells them.
var partitionSizes = []int{256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 290_000}

const partitionCount = 5

// partitions is Figure 13: five groups on five machines, of which each leads one.
func partitions(b *Bench) (*Result, error) {
	rate := newGrid("throughput, five groups on five machines", "clients", "puts a second", true)
	median := newGrid("latency", "clients", "median, ms", false)
	curves := svg.Chart{Title: "latency by throughput, five groups on five machines", X: "puts a second", Y: "median ms"}
	for _, side := range append(named(), oneUnit()) {
		line := svg.Series{Name: side.Name}
		for _, clients := range []int{5, 20, 80, 320} {
			puts, took, err := b.partitioned(side, clients)
			if err != nil {
				return nil, err
			}
			rate.put(fmt.Sprint(clients), side.Name, puts)
			median.put(fmt.Sprint(clients), side.Name, millis(took))
			line.X, line.Y = append(line.X, puts), append(line.Y, millis(took))
		}
		curves.Series = append(curves.Series, line)
	}
	res := result(rate).show(median)
	res.Charts = []svg.Chart{curves}
	return res, nil
}

// oneUnit is the side that sends each healthy follower one unit of every large entry.
func oneUnit() virtual.Side {
	for _, s := range virtual.Sides() {
		if s.Name == "levelled" {
			s.Name = "one unit"
			return s
		}
	}
	panic("papers: virtual has no side levelled") // it has
}

// partitioned runs all groups with so many clients, and returns puts a second and their median time.
func (b *Bench) partitioned(side virtual.Side, clients int) (rate float64, median time.Duration, err error) {
	warm, measured := time.Second, 4*time.Second
	if b.Short {
		warm, measured = 200*ms, 500*ms
	}
	o := b.options(side, partitionCount, regional, 100*ms)
	if o.Machines, err = vnet.NewMachines(o.Nodes); err != nil {
		return 0, 0, err
	}
	var groups []*vnet.Cluster
	for i := range partitionCount {
		o.On = append(o.On, i)
	}
	for i := range partitionCount {
		o.Seed++
		c, err := vnet.New(o)
		if err == nil {
			err = c.Elect(uint64(i) + 1)
		}
		if err != nil {
			return 0, 0, err
		}
		groups = append(groups, c)
	}
	var loads []*vnet.Load
	for i, share := range b.keyShares() {
		l, err := groups[i].StartLoad(vnet.LoadOptions{Clients: max(1, int(math.Round(share*float64(clients)))), Sizes: partitionSizes, Seed: b.Seed + uint64(i)})
		if err != nil {
			return 0, 0, err
		}
		loads = append(loads, l)
	}
	from := groups[0].Now() + warm
	if err := groups[0].Run(from + measured); err != nil {
		return 0, 0, err
	}
	var took []time.Duration
	for i, l := range loads {
		if err := groups[i].Err(); err != nil {
			return 0, 0, err
		}
		for _, call := range l.Calls() {
			if call.Done > from {
				took = append(took, call.Latency())
			}
		}
	}
	return float64(len(took)) / measured.Seconds(), lab.Quantile(took, 0.5), nil
}

// keyShares is the share of calls of each of five ranges of 1000 keys, whose frequencies are of a Zipf distribution
// (0.99, as YCSB's), in a random order, as YCSB scrambles them.
func (b *Bench) keyShares() (shares [partitionCount]float64) {
	const keys = 1000
	total := 0.0
	for rank, key := range rand.New(rand.NewPCG(b.Seed, 13)).Perm(keys) {
		p := math.Pow(float64(rank+1), -0.99)
		shares[key*partitionCount/keys] += p
		total += p
	}
	for i := range shares {
		shares[i] /= total
	}
	return shares
}
