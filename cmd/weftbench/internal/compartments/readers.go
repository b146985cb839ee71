// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"context"
	"fmt"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
)

// ReaderRow is a number of readers.
type ReaderRow struct {
	Readers int
	Reads   float64 // a second, at all readers, while there are writes
	Slope   float64 // Reads, divided by so many times the reads of one reader
	// Small and Large are writes without reads, of 16 B and of 64 KB. The latter travel in units.
	Small, Large PerWrite
}

// PerWrite is what a write costs the leader.
type PerWrite struct {
	Processor time.Duration
	Egress    float64 // bytes
	// MoreProcessor and MoreEgress are what each reader adds, as a share of a write without readers.
	MoreProcessor, MoreEgress float64
}

const (
	readClients  = 512 // at each reader
	writeClients = 16  // at all members, beside, and of large writes
	smallClients = 1000
	largeWrite   = 64 << 10
)

// scale measures reads by the number of readers.
func (cfg Config) scale(ctx context.Context) (rows []ReaderRow, err error) {
	one := 0.0
	var none ReaderRow
	for _, n := range cfg.Readers {
		row := ReaderRow{Readers: n}
		p := Plan{Members: voters, Groups: 1, Batches: true, Spread: true, Readers: n, ReadClients: readClients, Clients: writeClients, Way: hostnode.RPC}
		o, err := cfg.run(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%d readers: %w", n, err)
		}
		if row.Reads = o.Reads; n == 1 {
			one = o.Reads
		}
		if n > 0 {
			row.Slope = o.Reads / (float64(n) * one)
		}
		for _, w := range []struct {
			to, from       *PerWrite
			value, clients int
		}{{&row.Small, &none.Small, cfg.Value, smallClients}, {&row.Large, &none.Large, largeWrite, writeClients}} {
			bed, p := cfg.Bed, p
			bed.Value, p.Clients, p.ReadClients, p.Coded = w.value, w.clients, 0, true
			o, err := run(bed, p)
			if err != nil {
				return nil, fmt.Errorf("%d readers, writes of %d bytes: %w", n, w.value, err)
			}
			*w.to = PerWrite{Processor: o.LeaderPer, Egress: o.Egress}
			if n > 0 {
				w.to.MoreProcessor = (float64(o.LeaderPer)/float64(w.from.Processor) - 1) / float64(n)
				w.to.MoreEgress = (o.Egress/w.from.Egress - 1) / float64(n)
			}
		}
		if n == 0 {
			none = row
		}
		rows = append(rows, row)
		fmt.Fprintf(cfg.Progress, "%d readers: %.0f reads a second\n", n, row.Reads)
	}
	return rows, nil
}
