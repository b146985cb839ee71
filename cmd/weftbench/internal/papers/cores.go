// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"hash/crc32"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/svg"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// cluster returns real cores of a side, of which node 1 leads.
func (b *Bench) cluster(side virtual.Side, nodes int, p place, tick time.Duration) (*vnet.Cluster, error) {
	o := vnet.Options{
		Nodes: make([]vnet.Node, nodes), Seed: b.Seed, Tick: tick, Keep: 1 << 20, KeepBytes: 1 << 32, Notice: 2*p.delay + ms,
		Link: func(_, _ uint64) vnet.Link { return vnet.Link{Delay: p.delay, Jitter: p.jitter} },
		Configure: func(_ uint64, c *raft.Config) {
			c.MaxInflightMsgs, c.MaxInflightBytes = 256, 8<<20
			side.Configure(c)
		},
	}
	for i := range o.Nodes {
		o.Nodes[i] = vnet.Node{Egress: p.egress, Sync: virtual.Sync}
	}
	c, err := vnet.New(o)
	if err != nil {
		return nil, err
	}
	return c, c.Elect(1)
}

// named are full copies and Weft in the real core.
func named() []virtual.Side {
	full, ours := virtual.FullCopies(), virtual.Ours()
	ours.Name, full.Name = weft, "full copies"
	return []virtual.Side{ours, full}
}

// When the leader is lost, and the end of the trace.
const (
	firstLoss, secondLoss, lossEnd = 3 * time.Second, 9 * time.Second, 14 * time.Second
	lossSeeds                      = 5
)

// leaderLostTwice kills the leader twice under load, with several seeds. The picture is of the first seed.
func leaderLostTwice(b *Bench) (*Result, error) {
	const part = 500 * ms
	gaps := newGrid("the leader is lost twice, medians of five seeds", "", "ms without a commit", false)
	chart := svg.Chart{Title: "the leader is lost after 3 s and 9 s", X: "seconds", Y: "puts a second"}
	for _, side := range named() {
		var longest [2][]time.Duration
		for i := range uint64(lossSeeds) {
			again := *b
			again.Seed += i
			calls, err := again.loseTwice(side)
			if err != nil {
				return nil, err
			}
			for which, d := range gapsOf(calls) {
				longest[which] = append(longest[which], d)
			}
			if i > 0 {
				continue
			}
			line := svg.Series{Name: side.Name}
			for at := time.Duration(0); at < lossEnd; at += part {
				line.X, line.Y = append(line.X, at.Seconds()), append(line.Y, 0)
			}
			for _, done := range calls {
				line.Y[min(int(done/part), len(line.Y)-1)] += 1 / part.Seconds()
			}
			chart.Series = append(chart.Series, line)
		}
		gaps.put("after the first loss", side.Name, millis(lab.Quantile(longest[0], 0.5)))
		gaps.put("after the second loss", side.Name, millis(lab.Quantile(longest[1], 0.5)))
	}
	res := result(gaps)
	res.Charts = []svg.Chart{chart}
	return res, nil
}

// loseTwice returns when puts were done.
func (b *Bench) loseTwice(side virtual.Side) (done []time.Duration, err error) {
	c, err := b.cluster(side, 5, regional, 100*ms)
	if err != nil {
		return nil, err
	}
	start := c.Now()
	load, err := c.StartLoad(vnet.LoadOptions{Clients: 15, Sizes: []int{64 << 10}, Seed: b.Seed})
	if err != nil {
		return nil, err
	}
	for _, at := range []time.Duration{firstLoss, secondLoss} {
		c.At(start+at, func() { c.Kill(c.Leader()) })
	}
	if err := c.Run(start + lossEnd); err != nil {
		return nil, err
	}
	for _, call := range load.Calls() {
		done = append(done, call.Done-start)
	}
	return done, nil
}

// gapsOf returns the longest time without a commit around each loss.
func gapsOf(done []time.Duration) (longest [2]time.Duration) {
	last := time.Duration(0)
	for _, at := range done {
		which := 0
		if at > (firstLoss+secondLoss)/2 {
			which = 1
		}
		longest[which], last = max(longest[which], at-last), at
	}
	return longest
}

// leaderPre is the time in which a new leader completes entries.
func leaderPre(b *Bench) (*Result, error) {
	res := &Result{}
	for _, n := range []int{16 << 10, 256 << 10, 2 << 20} {
		g := newGrid("a new leader, values of "+lab.Bytes(n), "unapplied entries", "ms from its votes to its first commit", false)
		bursts := []int{1, 10, 100}
		if n > 1<<20 {
			bursts = bursts[:2] // 100 take so long that the leader's link, and not the new leader, is measured
		}
		for _, entries := range bursts {
			for _, side := range named() {
				took, err := virtual.Unapplied{Voters: 7, Entries: entries, Size: n, Seed: b.Seed}.Run(side)
				if err != nil {
					return nil, err
				}
				g.put(fmt.Sprint(entries), side.Name, millis(took))
			}
		}
		res.show(g).compare(g)
	}
	return res, nil
}

// firstReads is reads at a new leader, of values that it was sent in parts.
func firstReads(b *Bench) (*Result, error) {
	calm := newGrid("reads at a new leader", "value, reads", "ms", false)
	first := newGrid("a read asked when the votes are in, with the first commit of the new leader", "value", "ms", false)
	for _, n := range []int{16 << 10, 256 << 10, 2 << 20} {
		for _, side := range named() {
			took, err := virtual.FirstReads{Voters: 7, Entries: 10, Size: n, Rest: time.Second, Reads: 11, Seed: b.Seed}.Run(side)
			if err != nil {
				return nil, err
			}
			sum := time.Duration(0)
			for _, d := range took[1:] {
				sum += d
			}
			first.put(lab.Bytes(n), side.Name, millis(took[0]))
			calm.put(lab.Bytes(n)+", the first", side.Name, millis(took[1]))
			calm.put(lab.Bytes(n)+", mean of ten", side.Name, millis(sum/10))
		}
	}
	return result(calm, first), nil
}

// heartbeat is the time between two heartbeats in followerBack. A follower that is back waits for the next one, so that the
// time of a small log hangs on the moment: moments are as many, evenly spread over a heartbeat.
const (
	heartbeat = 10 * ms
	moments   = 5
)

// followerBack is the time in which a follower that was away has all entries, and the bytes sent to it.
func followerBack(b *Bench) (*Result, error) {
	const entries = 100
	took := newGrid("a follower comes back to N = 7, 100 entries", "failed, size", "ms until it has applied all, mean", false)
	bytes := newGrid("bytes sent to the follower", "failed, size", "for a byte of payload", false)
	for _, failed := range []int{1, 2, 3} {
		for _, n := range []int{16 << 10, 256 << 10, 1 << 20} {
			group := fmt.Sprintf("%d, %s", failed, lab.Bytes(n))
			for _, side := range named() {
				var ms, sent float64
				for i := range moments {
					t, s, err := b.back(side, failed, n, entries, time.Duration(i)*heartbeat/moments)
					if err != nil {
						return nil, err
					}
					ms, sent = ms+t/moments, sent+s/moments
				}
				took.put(group, side.Name, ms)
				bytes.put(group, side.Name, sent)
			}
			bytes.put(group, "FlexRaft", 1/float64(4-failed))
			bytes.put(group, "FlexRaft+", 1./4)
		}
	}
	return result(took).show(bytes), nil
}

// back measures one follower that comes back so long after the last entry.
func (b *Bench) back(side virtual.Side, failed, size, entries int, after time.Duration) (took, sent float64, err error) {
	const away, patient = 7, time.Minute
	c, err := b.cluster(side, 7, place{egress: gbit, delay: 100 * us}, heartbeat)
	if err != nil {
		return 0, 0, err
	}
	for i := range failed {
		c.Kill(uint64(away - i))
	}
	if err := c.Run(c.Now() + time.Second); err != nil {
		return 0, 0, err
	}
	load, err := c.StartLoad(vnet.LoadOptions{Clients: 4, Sizes: []int{size}, Seed: b.Seed, Most: entries})
	if err != nil {
		return 0, 0, err
	}
	if done, err := c.RunUntil(c.Now()+patient, func() bool { return len(load.Calls()) == entries }); err != nil || !done {
		return 0, 0, fmt.Errorf("%d of %d entries are done within %v: %w", len(load.Calls()), entries, patient, err)
	}
	if err := c.Run(c.Now() + after); err != nil {
		return 0, 0, err
	}
	toIt := func() (sum uint64) {
		for id := range uint64(away - 1) {
			sum += c.Sent(id+1, away).Total()
		}
		return sum
	}
	start, before := c.Now(), toIt()
	if err := c.Restart(away); err != nil {
		return 0, 0, err
	}
	if done, err := c.RunUntil(start+patient, func() bool { return c.Applied(away) >= c.Applied(1) }); err != nil || !done {
		return 0, 0, fmt.Errorf("the follower has not applied all within %v: %w", patient, err)
	}
	return millis(c.Now() - start), float64(toIt()-before) / float64(entries*size), nil
}

// codeCost times the code on this machine.
func codeCost(*Bench) (*Result, error) {
	g := newGrid("coding for 4 followers at the highest level, one thread", "payload", "µs", false)
	for _, n := range []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20} {
		p := make([]byte, n)
		h := &ecraft.Header{Kind: ecraft.Coded, PayloadLen: n, PayloadCRC: crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)), Encoder: 1,
			Members: []uint64{2, 3, 4, 5}, Layout: ecraft.NewLayout(5, 4), Units: make([]uint8, 4)}
		units := make([]int, 4)
		h.Spread(ecraft.Levels(5), 0, units)
		h.Layout = h.Reduce(units)
		rounds, start := 0, time.Now()
		for ; time.Since(start) < 300*ms; rounds++ {
			c := ecraft.NewCodeword(h, p)
			c.Prepare(units)
			c.Free()
		}
		g.put(lab.Bytes(n), weft, float64(time.Since(start).Microseconds())/float64(rounds))
	}
	return result(g), nil
}
