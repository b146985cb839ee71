// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package partitions

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/weftraft/weft/internal/world"
)

// The load: YCSB's keys, and sizes of payloads as TiDB has them, of which the paper's text names the
// range. Each order of magnitude is as likely as any other.
const (
	keys      = 1000
	zipfian   = 0.99 // YCSB's constant
	leastSize = 128
	mostSize  = 290_000
)

// load is what clients put, and what they saw.
type load struct {
	upTo  []float64 // by rank: the share of the puts at keys up to the rank
	at    []int     // by rank: the partition
	bytes []byte

	counts  bool
	open    int
	puts    int
	payload int
	by      []int // puts, by partition
	took    []time.Duration
}

func newLoad(p Plan) load {
	d := world.NewDraws(p.Seed, 3)
	l := load{bytes: make([]byte, mostSize), by: make([]int, p.Machines)}
	for i := range l.bytes {
		l.bytes[i] = byte(d.IntN(256))
	}
	total := 0.0
	for rank, key := range d.Perm(keys) {
		total += math.Pow(float64(rank+1), -zipfian)
		l.upTo, l.at = append(l.upTo, total), append(l.at, key*p.Machines/keys)
	}
	for i := range l.upTo {
		l.upTo[i] /= total
	}
	return l
}

// draw draws a partition and a payload.
func (l *load) draw(d world.Draws) (partition int, payload []byte) {
	rank := sort.SearchFloat64s(l.upTo, d.Float64())
	size := int(d.Scale(leastSize, mostSize))
	return l.at[min(rank, keys-1)], l.bytes[:size]
}

func (l *load) hottest() float64 { return float64(slices.Max(l.by)) / float64(l.puts) }

// client is a closed loop: it puts when its last put is answered.
type client struct {
	w     *sim
	draws world.Draws
}

func (c *client) next() {
	if c.w.ending {
		return
	}
	l, begun := &c.w.load, c.w.Now()
	to, payload := l.draw(c.draws)
	l.open, l.puts, l.payload, l.by[to] = l.open+1, l.puts+1, l.payload+len(payload), l.by[to]+1
	c.w.groups[to].put(payload, func() {
		l.open--
		if l.counts {
			l.took = append(l.took, c.w.Now()-begun)
		}
		c.next()
	})
}
