// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/replica"
)

// readsBy names how the reads of a plan come about.
func (p Plan) readsBy() string { return hostnode.Policies[slices.Index(policies, p.Policy)] }

// policies are how reads come about, in the order of hostnode.Policies.
var policies = []replica.ReadPolicy{nil, replica.QuorumRead{}}

// SharesReport sets what calls cost real processes, at the leader and at gateways, beside what they cost in a simulation.
func SharesReport(ctx context.Context, cfg costs.Config, shares []costs.Share) (*lab.Section, error) {
	t := lab.Table{
		Title: "Processor time of a call, in µs: of the leader, and what is left of it with gateways; of both followers, of all gateways; and of the leader in the simulation:",
		Rows:  [][]string{{"calls", "gateways", "calls/s", "leader", "left", "followers", "gateways", "leader, simulated", "off by"}},
	}
	left := lab.Table{
		Title: "Of the leader's processor time for a write, what gateways leave, over the sizes; at most a fifth is wanted by gRPC, and a third in shared frames:",
		Rows:  [][]string{{"clients", "gateways", "least", "most"}},
	}
	var counted, simulated []float64       // errors
	leavesOf := map[costs.Load][]float64{} // by loads without their size
	for _, s := range shares {
		direct := shares[slices.IndexFunc(shares, func(o costs.Share) bool {
			l := s.Load
			l.Gateways = 0
			return o.Load == l
		})]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := run(bedOf(s.Load), planOfLoad(s.Load))
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s.Load, err)
		}
		what := lab.Bytes(s.Load.Size) + " written"
		if s.Load.Read != "" {
			what = s.Load.Read
		}
		leaves, off := float64(s.Leader)/float64(direct.Leader), float64(o.LeaderCall)/float64(s.Leader)-1
		counted, simulated = append(counted, math.Abs(float64(s.Counted)/float64(s.Leader)-1)), append(simulated, math.Abs(off))
		if s.Load.Gateways > 0 && s.Load.Read == "" {
			l := s.Load
			l.Size = 0
			leavesOf[l] = append(leavesOf[l], leaves)
			if n := leavesOf[l]; len(n) == len(cfg.Sizes) {
				left.Rows = append(left.Rows, []string{fmt.Sprintf("%s, %d clients", l.Way, l.Clients), fmt.Sprint(l.Gateways),
					fmt.Sprintf("%.2f", slices.Min(n)), fmt.Sprintf("%.2f", slices.Max(n))})
			}
		}
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%s, %s, %d clients", s.Load.Way, what, s.Load.Clients), fmt.Sprint(s.Load.Gateways), number(s.Rate),
			micros(s.Leader.Seconds()), fmt.Sprintf("%.2f", leaves), micros(s.Follower.Seconds()), micros(s.Gateway.Seconds()),
			micros(o.LeaderCall.Seconds()), fmt.Sprintf("%+.0f%%", 100*off),
		})
	}
	return &lab.Section{
		Verb: "compartments --real", Title: "Data: what calls cost real processes", Page: true, Rounds: cfg.Rounds,
		Intro: fmt.Sprintf("Written by `weftbench compartments --real`: three Hosts, with logs on a disk and a state machine that keeps nothing, and up to %d gateways, each a\n"+
			"process. Clients call at the leader, or at gateways, for %v at a time, in %d rounds. Processes share the machine: processor time is to be\n"+
			"compared, not calls a second.", costs.MostGateways, cfg.Time, cfg.Rounds),
		Tables: []lab.Table{left, t, {
			Title: "Relative error of the leader's processor time, by the fitted costs of the work that it counted, and by those of its simulated work:",
			Rows:  [][]string{costs.SpreadHead, costs.SpreadOf(counted).Row("counted"), costs.SpreadOf(simulated).Row("simulated")},
		}}, Data: shares,
	}, nil
}

// bedOf and planOfLoad return a load's simulation.
func bedOf(l costs.Load) Bed {
	bed := Default().Bed
	bed.Sync, bed.Value = realSync, max(1, l.Size)
	return bed
}

func planOfLoad(l costs.Load) Plan {
	p := Plan{Members: voters, Groups: 1, Batches: true, Gateways: l.Gateways, Clients: l.Clients}
	if l.Way == hostnode.RPC.String() {
		p.Way = hostnode.RPC
	}
	if l.Read != "" {
		p.Reads, p.Policy = 1, policies[slices.Index(hostnode.Policies, l.Read)]
	}
	return p
}
