// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"fmt"
	"strconv"

	"github.com/weftraft/weft/internal/lab"
)

// report puts the rows into a table.
func (cfg *Away) report(rows []awayRow) *lab.Section {
	s := &lab.Section{
		Virtual: true, Verb: "virtual away",
		Title: "A follower is lost, and comes back",
		Intro: fmt.Sprintf("Values of %s at random times, %.0f%% of what full copies can do at 1 Gbit, %s ms between members. A follower is\n"+
			"away for %v. Latencies in ms of virtual time, median / 99%% / worst: with all members, in the first half second\n"+
			"without the follower, and while it catches up and half a second more; how long it takes; what it missed; what\n"+
			"comes to it from the member that sends it most, of %.0f MB/s; and what the leader sends meanwhile, for a byte of payload\n"+
			"that is committed. At most 8 MB are on their way to a follower.",
			lab.Bytes(cfg.Size), 100*cfg.Load, lab.Millis(cfg.Delay), cfg.Away, Egress/1e6),
		Data: rows,
	}
	t := lab.Table{
		Title: "The leader's clients, and the follower's time:",
		Rows:  [][]string{{"N", "side", "before", "lost", "catching up", "takes", "missed", "link MB/s", "leader sends"}},
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(r.Voters), r.Side, r.Before.String(), r.Lost.String(), r.Back.String(),
			lab.Millis(r.Caught), fmt.Sprintf("%d MB", r.Missed>>20), fmt.Sprintf("%.0f", r.Link/1e6), fmt.Sprintf("%.2f", r.Sent),
		})
	}
	s.Tables = append(s.Tables, t)
	return s
}
