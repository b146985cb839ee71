// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/replica"
)

// readsBy names how the reads of a plan come about.
func (p Plan) readsBy() string {
	if p.Leases {
		return "roster leases"
	}
	return hostnode.Policies[slices.Index(policies, p.Policy)]
}

// policies are how reads come about, in the order of hostnode.Policies.
var policies = []replica.ReadPolicy{nil, replica.QuorumRead{}}

// SharesReport sets what calls cost real processes, at the leader and at gateways, beside what they cost in a simulation.
func SharesReport(ctx context.Context, cfg costs.Config, shares []costs.Share) (*lab.Section, error) {
	t := lab.Table{
		Title: "Processor time of a call, in µs: of the leader, and what is left of it with gateways; of both followers, of all gateways; and of the leader in the simulation:",
		Rows:  [][]string{{"calls", "gateways", "calls/s", "leader", "left", "followers", "gateways", "leader, simulated", "off by"}},
	}
	var counted, simulated []float64 // errors
	for _, s := range shares {
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
		left, off := leaves(shares, s), float64(o.LeaderCall)/float64(s.Leader)-1
		counted, simulated = append(counted, math.Abs(float64(s.Counted)/float64(s.Leader)-1)), append(simulated, math.Abs(off))
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%s, %s, %d clients", s.Load.Way, what, s.Load.Clients), fmt.Sprint(s.Load.Gateways), number(s.Rate),
			micros(s.Leader.Seconds()), fmt.Sprintf("%.2f", left), micros(s.Follower.Seconds()), micros(s.Gateway.Seconds()),
			micros(o.LeaderCall.Seconds()), fmt.Sprintf("%+.0f%%", 100*off),
		})
	}
	return &lab.Section{
		Verb: "compartments --real", Title: "Data: what calls cost real processes", Page: true, Rounds: cfg.Rounds,
		Intro: fmt.Sprintf("Written by `weftbench compartments --real`: three Hosts, with logs on a disk and a state machine that keeps nothing, and up to %d gateways, each a\n"+
			"process. Clients call at the leader, or at gateways, for %v at a time, in %d rounds. Processes share the machine: processor time is to be\n"+
			"compared, not calls a second.", costs.MostGateways, cfg.Time, cfg.Rounds),
		Tables: []lab.Table{leftTable(cfg.Sizes, shares), t, {
			Title: "Relative error of the leader's processor time, by the fitted costs of the work that it counted, and by those of its simulated work:",
			Rows:  [][]string{costs.SpreadHead, costs.SpreadOf(counted).Row("counted"), costs.SpreadOf(simulated).Row("simulated")},
		}}, Data: shares,
	}, nil
}

// leaves is what gateways leave of the leader's processor time for a call.
func leaves(shares []costs.Share, s costs.Share) float64 {
	return float64(s.Leader) / float64(direct(shares, s).Leader)
}

// direct returns the same load at the leader.
func direct(shares []costs.Share, s costs.Share) costs.Share {
	l := s.Load
	l.Gateways = 0
	return shares[slices.IndexFunc(shares, func(o costs.Share) bool { return o.Load == l })]
}

// wanted is the most that gateways shall leave of the leader's processor time for a write, by the way of clients.
var wanted = map[string]float64{hostnode.RPC.String(): 1. / 5, hostnode.Lean.String(): 1. / 3}

// leftTable has what gateways leave of writes.
func leftTable(sizes []int, shares []costs.Share) lab.Table {
	t := lab.Table{
		Title: "Of the leader's processor time for a write, what gateways leave, by the size of commands; a fifth is wanted by gRPC, and a third in shared frames. In\n" +
			"brackets what would be left if bytes alone took time:",
		Rows: [][]string{{"clients", "gateways", "wanted"}},
	}
	for _, size := range sizes {
		t.Rows[0] = append(t.Rows[0], lab.Bytes(size))
	}
	above := map[int][]costs.Share{} // by size
	for _, s := range shares {
		l := s.Load
		if l.Gateways == 0 || l.Read != "" {
			continue
		}
		if l.Size == sizes[0] {
			t.Rows = append(t.Rows, []string{fmt.Sprintf("%s, %d clients", l.Way, l.Clients), strconv.Itoa(l.Gateways), fmt.Sprintf("%.2f", wanted[l.Way])})
		}
		left, last := leaves(shares, s), &t.Rows[len(t.Rows)-1]
		*last = append(*last, fmt.Sprintf("%.2f (%.2f)", left, float64(s.Bytes)/float64(direct(shares, s).Leader)))
		if left > wanted[l.Way] {
			above[l.Size] = append(above[l.Size], s)
		}
	}
	for _, size := range sizes {
		if s := above[size]; len(s) > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("More than wanted is left of writes of %s in %d rows. By the costs of costs.md bytes take %s of the leader's time for its work there, and sleeps of\n"+
				"threads %s.", lab.Bytes(size), len(s), shareOfCounted(s, func(s costs.Share) time.Duration { return s.Bytes }),
				shareOfCounted(s, func(s costs.Share) time.Duration { return s.Sleeps })))
		}
	}
	t.Notes = append(t.Notes, "Gateways take calls off the leader, and no bytes: the leader receives, writes and sends to each follower what it did before. A batch of few commands wakes\n"+
		"the leader's threads as often as one of many.")
	return t
}

// shareOfCounted returns what a part takes of the leader's time for the work that it counted: from the least to the most.
func shareOfCounted(shares []costs.Share, part func(costs.Share) time.Duration) string {
	var all []float64
	for _, s := range shares {
		all = append(all, float64(part(s))/float64(max(s.Counted, 1)))
	}
	return fmt.Sprintf("%s to %s", percent(slices.Min(all)), percent(slices.Max(all)))
}

// bedOf and planOfLoad return a load's simulation.
func bedOf(l costs.Load) Bed {
	return realBed(costs.Fitted, max(1, l.Size))
}

func planOfLoad(l costs.Load) Plan {
	p := Plan{Members: voters, Groups: 1, Batches: l.Batches, Gateways: l.Gateways, Clients: l.Clients}
	if l.Way == hostnode.RPC.String() {
		p.Way = hostnode.RPC
	}
	if l.Read != "" {
		p.Reads, p.Policy = 1, policies[slices.Index(hostnode.Policies, l.Read)]
	}
	return p
}
