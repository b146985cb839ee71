// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import "fmt"

// inShort sums up the tables, from the figures.
func (r *results) inShort() []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, "- "+fmt.Sprintf(format, args...)) }
	for _, p := range r.Paths {
		if x := policy(p.Policy); x.Ours {
			say("`%s`: a read at a responder takes %.3f messages between nodes.", p.Policy, p.Messages)
		}
	}
	for _, p := range policies() {
		if !p.Ours {
			continue
		}
		least, most := r.holdSpan(p.Name)
		say("`%s`: a read that a write of its key delays waits %.2f to %.2f round trips at the median.", p.Name, least, most)
		cells, behind := 0, [3]int{}
		for _, c := range r.Cells {
			if c.Policy != p.Name || c.Mix > 0.3 {
				continue
			}
			cells++
			for i, m := range measures {
				if r.best(c, m.of).times > 1+noise {
					behind[i]++
				}
			}
		}
		say("`%s`: of %d cells up to 30%% writes another safe policy does more ops in %d, has faster reads in %d, and faster writes in %d, which are named below.",
			p.Name, cells, behind[0], behind[1], behind[2])
	}
	safe := 0
	for _, p := range policies() {
		n := r.wrongBy(p.Name)
		if p.Safe {
			safe += n
		} else {
			say("`%s`: %d answers were not linearizable.", p.Name, n)
		}
	}
	say("Of the safe policies %d answers were not linearizable.", safe)
	return lines
}

// holdSpan returns the least and the greatest median delay of a policy, in round trips.
func (r *results) holdSpan(policy string) (least, most float64) {
	for _, h := range r.Holds {
		if h.Policy == policy {
			x := float64(h.Delay.P50) / float64(h.Trip)
			if least == 0 || x < least {
				least = x
			}
			most = max(most, x)
		}
	}
	return least, most
}
