// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

import (
	"context"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
)

// Share is a load, and the processor time that each kind of process takes for a call.
type Share struct {
	Load                      Load
	Rate                      float64       // calls a second
	Leader, Follower, Gateway time.Duration // a call: of the leader, of all followers, of all gateways
}

// MostGateways is the most gateways of a load.
const MostGateways = 3

// Shares measures what a call costs each kind of process: calls at the leader, and at gateways.
func Shares(ctx context.Context, cfg Config) (shares []Share, err error) {
	var loads []Load
	for _, way := range []string{hostnode.Lean.String(), hostnode.RPC.String()} {
		for _, clients := range cfg.Clients {
			for _, gateways := range []int{0, 1, MostGateways} {
				l := Load{Way: way, Clients: clients, Batches: true, Gateways: gateways}
				for _, l.Size = range cfg.Sizes {
					loads = append(loads, l)
				}
				l.Size = 0
				for _, l.Read = range hostnode.Policies {
					loads = append(loads, l)
				}
			}
		}
	}
	sums := map[Load][]Sample{}
	err = lab.Turns(cfg.Rounds, 1, func(round, _ int) error {
		samples, err := cfg.measure(ctx, round, true, MostGateways, loads)
		for i, s := range samples {
			of := i % (processes + MostGateways)
			if len(sums[s.Load]) == of {
				sums[s.Load] = append(sums[s.Load], s)
				continue
			}
			sum := &sums[s.Load][of]
			sum.CPU += s.CPU
			sum.Work.Seconds, sum.Work.Counts = sum.Work.Seconds+s.Work.Seconds, sum.Work.Plus(s.Work.Counts)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, l := range loads {
		shares = append(shares, shareOf(sums[l]))
	}
	return shares, nil
}

// shareOf divides the processor time of processes by their calls.
func shareOf(s []Sample) Share {
	sh := Share{Load: s[0].Load, Rate: rate(s)}
	calls := time.Duration(max(1, sh.Rate*s[0].Work.Seconds))
	for i, x := range s {
		switch {
		case i == 0:
			sh.Leader = x.CPU / calls
		case i < processes:
			sh.Follower += x.CPU / calls
		case i < processes+x.Load.Gateways:
			sh.Gateway += x.CPU / calls
		}
	}
	return sh
}

// rate returns the calls of clients a second, or those of clients in the processes.
func rate(samples []Sample) float64 {
	calls, within := 0.0, 0.0
	for _, s := range samples {
		within += s.Work.Proposals + s.Work.Reads
		for _, n := range s.Work.Calls {
			calls += n
		}
	}
	if calls == 0 {
		calls = within
	}
	return calls / samples[0].Work.Seconds
}
