// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"context"
	"slices"
)

// Figures returns figures of the adaptive policy in a group of five, each figure under its name,
// where less is better: in all cells, when a follower stops, and when the network changes. Command
// sweep compares the figures of policies with different constants. The same seed gives the same
// figures.
func Figures(ctx context.Context, seed uint64) (map[string]float64, error) {
	o := Options{Quick: true, Seed: seed, only: []Side{ours()}}
	cells, err := o.sweep(ctx, 5)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, c := range cells {
		for _, m := range metrics {
			if m.in(c.load) {
				out[m.name+", "+c.name()] = m.of(&c.runs[0])
			}
		}
	}
	nets := networks(5)
	named := func(name string) Network {
		return nets[slices.IndexFunc(nets, func(n Network) bool { return n.Name == name })]
	}
	for _, name := range []string{"lan1g", "reg1g", "jitter"} {
		x, err := o.outage(named(name), 64<<10, 0, ours())
		if err != nil {
			return nil, err
		}
		out["longest without a commit when a follower dies, "+name] = x.WorstStall.Seconds()
		out["rider bytes when a follower dies, "+name] = 0.01 + x.Extra
	}
	for _, ch := range changes {
		for _, back := range []bool{false, true} {
			a, name := named("lan1g"), ch.name
			b := a
			b.Links = slices.Clone(a.Links)
			if ch.do(&b); back {
				a, b, name = b, a, name+": and back"
			}
			r, err := o.throughChange(a, b, ch.size, ours())
			if err != nil {
				return nil, err
			}
			out["mean after a change, "+name] = r.between(shiftAt, shiftEnd).Seconds()
		}
	}
	return out, nil
}
