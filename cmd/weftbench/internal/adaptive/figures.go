// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"context"
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
	for _, name := range outageNetworks {
		x, err := o.outage(named(5, name), 64<<10, 0, ours())
		if err != nil {
			return nil, err
		}
		out["longest without a commit when a follower dies, "+name] = x.WorstStall.Seconds()
		out["rider bytes when a follower dies, "+name] = 0.01 + x.Extra
	}
	return out, eachChange(func(name string, from, to Network, size int) error {
		r, err := o.throughChange(from, to, size, ours())
		out["mean after a change, "+name] = r.between(shiftAt, shiftEnd).Seconds()
		return err
	})
}
