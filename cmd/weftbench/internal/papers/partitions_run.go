// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/partitions"
	"github.com/weftraft/weft/internal/svg"
)

// byPartitions is Figure 13.
func byPartitions(b *Bench) (*Result, error) {
	received, answered := newGrid("puts that each replica has received", "clients", "a second", true), newGrid("puts answered", "clients", "a second", true)
	p50, p99 := newGrid("latency, median", "clients", "ms", false), newGrid("latency, 99%", "clients", "ms", false)
	sent := newGrid("bytes on all links, up to the last receipt", "clients", "for a byte of payload", false)
	atOnce := newGrid("bytes on all links, up to the end of the load", "clients", "for a byte of payload", false)
	chart := svg.Chart{Title: "YCSB-A over five partitions", X: "puts a second", Y: "ms, median"}
	hottest := 0.0
	p := partitions.Plan{Machines: 5, Rate: regional.egress, Delay: regional.delay, Warm: 300 * ms, Time: time.Second, Seed: b.Seed}
	clients := []int{5, 20, 50, 100, 200}
	if b.Short {
		p.Warm, p.Time, clients = 50*ms, 100*ms, clients[:2]
	}
	for _, s := range partitions.Sides() {
		line := svg.Series{Name: s.Name}
		for _, p.Clients = range clients {
			o, err := s.Run(b.Ctx, p)
			if err != nil {
				return nil, err
			}
			group := fmt.Sprint(p.Clients)
			received.put(group, s.Name, o.Received)
			answered.put(group, s.Name, o.Answered)
			p50.put(group, s.Name, millis(o.P50))
			p99.put(group, s.Name, millis(o.P99))
			sent.put(group, s.Name, o.Sent)
			atOnce.put(group, s.Name, o.SentAtOnce)
			line.X, line.Y = append(line.X, o.Received), append(line.Y, millis(o.P50))
			hottest = max(hottest, o.Hottest)
		}
		chart.Series = append(chart.Series, line)
		fmt.Fprintln(b.Progress, s.Name)
	}
	res := result(received).show(answered).show(p50).show(p99).show(sent).show(atOnce)
	res.Charts = []svg.Chart{chart}
	res.Tables[4].Notes = []string{"Weft sends more than 4 bytes where links are full: units between followers leave behind all else, and a follower asks for units that take longer than they did of late, though they are on their way, so that some come twice."}
	res.Tables[0].Notes = []string{fmt.Sprintf("Up to %.0f%% of the puts are of one partition.", 100*hottest)}
	return res, nil
}
