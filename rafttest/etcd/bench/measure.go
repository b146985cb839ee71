// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sample is a measurement. Processor time, disk and sent bytes are sums over all members, up to the
// time when the members are idle.
type Sample struct {
	Puts     int     `json:"puts"`       // answered
	PutsPerS float64 `json:"puts_per_s"` // of them
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	CPU      float64 `json:"cpu_ms_per_put"`
	// Disk is the bytes written to disks for a byte of value. LeaderSent and AllSent are the bytes
	// sent by the leader, and by all members, to other members for a byte of value, with headers.
	Disk       float64 `json:"disk_bytes_per_byte"`
	LeaderSent float64 `json:"leader_sent_bytes_per_byte"`
	AllSent    float64 `json:"all_sent_bytes_per_byte"`
	// Others is the share of the machine's processors, 0 to 1, that was used by neither members nor
	// clients.
	Others float64 `json:"others_cpu_share"`
}

// figures are the figures of each side in a table. More puts are better; of all other figures, less
// is better.
var figures = []struct {
	name, column string
	of           func(Sample) float64
}{
	{"puts a second", "puts/s", func(s Sample) float64 { return s.PutsPerS }},
	{"median latency", "p50 ms", func(s Sample) float64 { return s.P50 }},
	{"99th percentile", "p99 ms", func(s Sample) float64 { return s.P99 }},
	{"processor time", "CPU ms/put", func(s Sample) float64 { return s.CPU }},
	{"disk", "disk", func(s Sample) float64 { return s.Disk }},
	{"sent by the leader", "sent by leader", func(s Sample) float64 { return s.LeaderSent }},
	{"sent by all", "sent by all", func(s Sample) float64 { return s.AllSent }},
}

// describe is a line of progress.
func (c *Cell) describe() (line string) {
	for i, f := range figures {
		if i > 0 {
			line += ", "
		}
		line += fmt.Sprintf("%s %s", f.column, figure(c.median(f.of)))
	}
	return fmt.Sprintf("%s; others use %.0f%%", line, 100*c.median(func(s Sample) float64 { return s.Others }))
}

const (
	// attempts bounds the attempts for a sample.
	attempts = 5
	// disturbed bounds the attempts that are dropped because the machine was busy.
	disturbed = 2
)

var errRestless = errors.New("the leader changed in each attempt")

// measure adds one of the samples returned by take to a cell: the first sample during which the
// leader did not change and other processes used at most a share of the processors; or, if all
// samples exceed this share, the sample with the least share.
func (c *Cell) measure(others float64, take func(attempt int) (s Sample, restless bool, err error)) error {
	var best *Sample
	busy := 0
	for attempt := range attempts {
		s, restless, err := take(attempt)
		if err != nil {
			return err
		}
		if restless {
			c.Restless++
			continue
		}
		if best == nil || s.Others < best.Others {
			best = &s
		}
		if best.Others <= others || busy == disturbed {
			break
		}
		busy++
		c.Disturbed++
	}
	if best == nil {
		return errRestless
	}
	c.Samples = append(c.Samples, *best)
	return nil
}

// sample puts a load on a cluster and reads all values back. restless reports that the leader
// changed meanwhile, so that the sample has little meaning.
func sample(ctx context.Context, c *cluster, l *load, clients int, d time.Duration) (s Sample, restless bool, err error) {
	leader, term, err := c.leader(ctx)
	if err != nil {
		return s, false, err
	}
	before, err := c.read(leader)
	if err != nil {
		return s, false, err
	}
	if err := errors.Join(l.run(ctx, leader, clients, d), c.Settle(ctx, settleLimit)); err != nil {
		return s, false, err
	}
	after, err := c.read(leader)
	if err != nil {
		return s, false, err
	}
	if err := l.verify(ctx, c); err != nil {
		return s, false, err
	}
	_, now, err := c.leader(ctx)
	if err != nil {
		return s, false, err
	}
	used, puts := after.Sub(before.Usage), float64(l.result.Calls)
	perByte := func(bytes uint64) float64 { return float64(bytes) / puts / float64(l.size) }
	return Sample{
		Puts: int(l.result.Calls), PutsPerS: l.result.PerSecond(), P50: l.result.Latency.Millis(0.5), P99: l.result.Latency.Millis(0.99),
		CPU: milliseconds(used.CPU) / puts, Disk: perByte(used.WriteBytes),
		LeaderSent: perByte(after.leaderSent - before.leaderSent), AllSent: perByte(after.allSent - before.allSent),
		Others: after.machine.others(before.machine, used.CPU),
	}, now != term, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
