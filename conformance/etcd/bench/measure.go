// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sample is one measurement. Processor time, disk and what is sent are those of all
// members, until they rest.
type Sample struct {
	Puts     int     `json:"puts"`       // answered
	PutsPerS float64 `json:"puts_per_s"` // of them
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	CPU      float64 `json:"cpu_ms_per_put"`
	// Disk is what was given to disks for a byte of value, LeaderSent and AllSent
	// what members sent to members for one, with what it is wrapped in.
	Disk       float64 `json:"disk_bytes_per_byte"`
	LeaderSent float64 `json:"leader_sent_bytes_per_byte"`
	AllSent    float64 `json:"all_sent_bytes_per_byte"`
	// Others is the share of the machine's processors, 0 to 1, that was used by
	// others than members and clients.
	Others float64 `json:"others_cpu_share"`
}

// figures are what a table has of each side. Of puts more is better, of all others
// less.
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
	// attempts is how often a load is put on a cluster, at most, for one sample.
	attempts = 5
	// disturbed is how many of them may be thrown away as the machine was busy.
	disturbed = 2
)

var errRestless = errors.New("the leader changed in each attempt")

// measure adds one of the samples that take returns to a cell: the first during
// which the leader did not change and others used no more than a share of the
// processors, or, of some during which they used more, the one with the least of it.
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

// sample puts a load on a cluster and reads all of it back. It reports whether the
// leader changed meanwhile: then the sample says little.
func sample(ctx context.Context, c *cluster, l *load, clients int, d time.Duration) (s Sample, restless bool, err error) {
	leader, term, err := c.leader(ctx)
	if err != nil {
		return s, false, err
	}
	before, err := c.read(leader)
	if err != nil {
		return s, false, err
	}
	if err := errors.Join(l.run(ctx, leader, clients, d), c.settle(ctx)); err != nil {
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
	if len(l.latency) == 0 {
		return s, false, fmt.Errorf("no call of %d was answered: %w", l.failed, l.err)
	}
	used, puts := after.Sub(before.Usage), float64(len(l.latency))
	perByte := func(bytes uint64) float64 { return float64(bytes) / puts / float64(l.size) }
	return Sample{
		Puts: len(l.latency), PutsPerS: puts / l.elapsed.Seconds(),
		P50: milliseconds(l.quantile(50)), P99: milliseconds(l.quantile(99)),
		CPU: milliseconds(used.CPU) / puts, Disk: perByte(used.WriteBytes),
		LeaderSent: perByte(after.leaderSent - before.leaderSent), AllSent: perByte(after.allSent - before.allSent),
		Others: after.machine.others(before.machine, used.CPU),
	}, now != term, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
