// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/tpcc"
	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/internal/lab"
)

// onRanges runs TPC-C on 12 machines with a side.
func (b *Bench) onRanges(side virtual.Side, change func(*tpcc.Config)) (*tpcc.Outcome, error) {
	cfg := tpcc.Config{
		Machines: 12, Ranges: 24, Warehouses: 2, Terminals: 400, Text: 1, Egress: regional.egress, Delay: regional.delay, Jitter: regional.jitter,
		Sync: virtual.Sync, Warm: 500 * ms, Time: time.Second, Seed: b.Seed, Configure: side.Configure,
	}
	if b.Short {
		cfg.Terminals, cfg.Warm, cfg.Time = 40, 100*ms, 200*ms
	}
	change(&cfg)
	return tpcc.Run(cfg)
}

// warehouses is Figure 14, and what Figure 1 says of CockroachDB's payloads.
func warehouses(b *Bench) (*Result, error) {
	rate := newGrid("TPC-C, 12 machines, 48 warehouses, 400 terminals", "texts, links, machines down", "transactions a second", true)
	took := newGrid("latency, texts eight times as long, links of 100 Mbit/s", "transaction", "ms", false)
	sent := newGrid("bytes that all machines send for a byte of an entry", "texts, links, machines down", "bytes", false)
	for _, c := range []struct {
		name   string
		text   int
		egress float64
		down   int
		thinks bool
	}{
		{"as specified, 1 Gbit/s", 1, gbit, 0, false}, {"eight times, 1 Gbit/s", 8, gbit, 0, false},
		{"as specified, 100 Mbit/s", 1, gbit / 10, 0, false}, {"eight times, 100 Mbit/s", 8, gbit / 10, 0, false},
		{"eight times, 100 Mbit/s, one down", 8, gbit / 10, 1, false}, {"eight times, 100 Mbit/s, two down", 8, gbit / 10, 2, false},
		{"eight times, 100 Mbit/s, 480 that key and think", 8, gbit / 10, 0, true},
	} {
		for _, side := range append(named(), oneUnit()) {
			out, err := b.onRanges(side, func(cfg *tpcc.Config) {
				cfg.Text, cfg.Egress, cfg.Failed, cfg.Thinks = c.text, c.egress, c.down, c.thinks
				if c.thinks {
					cfg.Terminals, cfg.Warm, cfg.Time = 480, 100*cfg.Warm, 100*cfg.Time
				}
			})
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", c.name, side.Name, err)
			}
			rate.put(c.name, side.Name, out.Rate)
			sent.put(c.name, side.Name, out.Sent)
			if c.text == 8 && c.egress < gbit && c.down == 0 && !c.thinks {
				for k := range tpcc.Kinds {
					took.put(k.String()+", median", side.Name, millis(lab.Quantile(out.Kinds[k], 0.5)))
					took.put(k.String()+", 95%", side.Name, millis(lab.Quantile(out.Kinds[k], 0.95)))
				}
			}
		}
	}
	return result(rate).show(took).show(sent), nil
}

// profile is Figure 1, of the kit.
func profile(b *Bench) (*Result, error) {
	g := newGrid("sizes of entries under TPC-C", "texts", "bytes", false)
	res := &Result{}
	for _, text := range []int{1, 8} {
		out, err := b.onRanges(virtual.FullCopies(), func(cfg *tpcc.Config) { cfg.Text = text })
		if err != nil {
			return nil, err
		}
		group := "as specified"
		if text > 1 {
			group = fmt.Sprintf("%d times as long", text)
		}
		for _, q := range []float64{0.1, 0.5, 0.9, 1} {
			g.put(group, fmt.Sprintf("%.0f%% are at most", 100*q), float64(out.Sizes[min(int(q*float64(len(out.Sizes))), len(out.Sizes)-1)]))
		}
		large, _ := slices.BinarySearch(out.Sizes, 4<<10)
		res.Says += fmt.Sprintf("texts %s: %.0f%% of entries have 4 KB or more; ", group, 100-100*float64(large)/float64(len(out.Sizes)))
	}
	res.Says = strings.TrimSuffix(res.Says, "; ")
	return res.show(g), nil
}
