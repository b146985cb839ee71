// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

import (
	"context"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Share is a load, and the processor time that each kind of process takes for a call.
type Share struct {
	Load                      Load
	Rate                      float64       // calls a second
	Leader, Follower, Gateway time.Duration // a call: of the leader, of all followers, of all gateways
	Counted                   time.Duration // a call: what the leader's work takes by Fitted
	Bytes                     time.Duration // of Counted, what bytes take: received, written and sent
	Sleeps                    time.Duration // and what sleeps of threads take
}

// MostGateways is the most gateways of a load.
const MostGateways = 3

// Shares measures what a call costs each kind of process: calls at the leader, and at gateways.
func Shares(ctx context.Context, cfg Config) (shares []Share, err error) {
	var samples []Sample
	err = lab.Turns(cfg.Rounds, 1, func(round, _ int) error {
		s, err := cfg.measure(ctx, round, true, MostGateways, cfg.calls(0, 1, 2, MostGateways))
		samples = append(samples, s...)
		return err
	})
	if err != nil {
		return nil, err
	}
	for sums := Sum(samples); len(sums) > 0; {
		n := sums[0].Load.samples()
		shares = append(shares, shareOf(sums[:n]))
		sums = sums[n:]
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
			sh.Leader, sh.Counted = x.CPU/calls, Fitted.Of(x.Work)/calls
			sh.Bytes, sh.Sleeps = Fitted.ofBytes().Of(x.Work)/calls, Costs{Sleep: Fitted.Sleep}.Of(x.Work)/calls
		case x.Gateway:
			sh.Gateway += x.CPU / calls
		default:
			sh.Follower += x.CPU / calls
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
