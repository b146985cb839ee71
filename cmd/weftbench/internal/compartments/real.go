// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"fmt"
	"runtime"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
)

// realSync is about what a write to a log takes on a small virtual machine's disk.
const realSync = time.Millisecond

// realDelay is about what a frame takes within a machine.
const realDelay = 10 * time.Microsecond

// realBed is a bed on which simulated processes share a machine, as real ones do that are measured.
func realBed(c costs.Costs, value int) Bed {
	bed := Default().Bed
	bed.Costs, bed.Value, bed.Delay, bed.Sync, bed.Processors = c, value, realDelay, realSync, runtime.NumCPU()
	return bed
}

// BesideReal sets processor time of real processes beside that of simulated ones under the same loads,
// all at the leader: here the batches, frames and rounds are the simulation's, too.
func BesideReal(samples []costs.Sample, fitted costs.Costs) (lab.Table, error) {
	samples = costs.Sum(samples)
	t := lab.Table{
		Title: fmt.Sprintf("Processor time a command, of real processes and of a simulation of the same loads on one machine with %d processors (`weftbench compartments`, writes durable after %v), in µs:", runtime.NumCPU(), realSync),
		Rows:  [][]string{{"load", "leader", "simulated", "off by", "followers", "simulated", "off by"}},
	}
	for _, i := range besides(samples) {
		l := samples[i].Load
		o, err := run(realBed(fitted, l.Size), planOfLoad(l))
		if err != nil {
			return t, fmt.Errorf("%v: %w", l, err)
		}
		row := []string{l.String()}
		for _, pair := range [][2]time.Duration{
			{perCommand(samples[i]), o.LeaderPer},
			{(perCommand(samples[i+1]) + perCommand(samples[i+2])) / 2, (o.AllPer - o.LeaderPer) / 2},
		} {
			row = append(row, micros(pair[0].Seconds()), micros(pair[1].Seconds()), fmt.Sprintf("%+.0f%%", 100*(float64(pair[1])/float64(pair[0])-1)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// besides returns the places of the leaders' samples of loads that are simulated: of clients that write the smallest commands at the leader.
func besides(samples []costs.Sample) (places []int) {
	size := 0
	for _, s := range samples {
		if n := s.Load.Size; n > 0 && (size == 0 || n < size) {
			size = n
		}
	}
	for i, s := range samples {
		l := s.Load
		if s.Leader && !l.Spread && l.Gateways == 0 && l.Size == size && (l.Way == hostnode.Lean.String() || l.Way == hostnode.RPC.String()) {
			places = append(places, i)
		}
	}
	return places
}

func perCommand(s costs.Sample) time.Duration {
	return s.CPU / time.Duration(max(s.Work.Applied, 1))
}
