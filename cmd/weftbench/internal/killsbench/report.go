// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Report puts what was measured into tables.
func Report(cfg Config, r *Results) *lab.Section {
	s := &lab.Section{
		Verb: "kills", Rounds: cfg.rounds(),
		Title: "Real processes: leaders killed with leases off and on, and responders that fail",
		Intro: fmt.Sprintf("%d kvdemo processes on one machine, ticks of %v, elections after %d to %d of them; with leases all nodes are responders.\n"+
			"Clients begin a write at each node every %v, whatever became of those before. Times are in ms.",
			cfg.Nodes, cfg.Tick, cfg.ElectionTicks, 2*cfg.ElectionTicks, pace),
		Data: r,
	}
	if len(r.Gaps) > 0 {
		s.Tables = append(s.Tables, gapTable(r.Gaps))
	}
	if len(r.Reads) > 0 {
		s.Tables = append(s.Tables, readsTable(r.Reads))
	}
	if len(r.Faults) > 0 {
		s.Tables = append(s.Tables, faultTable(r.Faults))
	}
	return s
}

func gapTable(gaps []Gap) lab.Table {
	t := lab.Table{
		Title: "From kill -9 of the leader to the first acknowledgement of a write that began after it, both clusters in turns:",
		Rows:  [][]string{{"side", "kills", "median", "90%", "99%", "worst"}},
	}
	var order []string
	bySide := map[string][]time.Duration{}
	for _, g := range gaps {
		if bySide[g.Side] == nil {
			order = append(order, g.Side)
		}
		bySide[g.Side] = append(bySide[g.Side], g.Gap)
	}
	for _, name := range order {
		d := bySide[name]
		row := []string{name, strconv.Itoa(len(d))}
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			row = append(row, whole(lab.Quantile(d, q)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func faultTable(faults []Fault) lab.Table {
	t := lab.Table{
		Title: fmt.Sprintf("A responder fails under writes and reads; a write may wait for %v at most (Fail %v, Lease %v):", bound, failTime, leaseTime),
		Rows:  [][]string{{"failure", "what it is", "times", "longest write", "holds a time", "besides", "slowest", "reads", "99% before", "99% after", "late", "longest read"}},
		Notes: []string{fmt.Sprintf("*Longest write*: of those that waited for the responder. *Holds a time*: the most times that writes waited for one that failed, for over %v. *Besides*: how\n"+
			"often, in all, writes took as long while the leader's roster did not name it, and *slowest* the longest: what else runs on the machine, above all what\n"+
			"else syncs its disk. With nothing else there are none.", slowWrite),
			"Reads are those at the other nodes, of keys that nobody writes. A read is late if it takes more than 2 ms longer than 99% of reads did\n" +
				"before; what else runs on the machine makes some late, too. In virtual time there are none: `weftbench responders`."},
	}
	for _, f := range failures() {
		sum, times := Fault{}, 0
		for _, x := range faults {
			if x.Failure != f.Name {
				continue
			}
			times++
			sum.Held, sum.Holds, sum.Longest = max(sum.Held, x.Held), max(sum.Holds, x.Holds), max(sum.Longest, x.Longest)
			sum.Besides, sum.Slowest = sum.Besides+x.Besides, max(sum.Slowest, x.Slowest)
			sum.Before, sum.After = max(sum.Before, x.Before), max(sum.After, x.After)
			sum.Reads, sum.Late = sum.Reads+x.Reads, sum.Late+x.Late
		}
		if times > 0 {
			t.Rows = append(t.Rows, []string{f.Name, f.About, strconv.Itoa(times), whole(sum.Held), strconv.Itoa(sum.Holds), strconv.Itoa(sum.Besides), whole(sum.Slowest), strconv.Itoa(sum.Reads),
				lab.Millis(sum.Before), lab.Millis(sum.After), strconv.Itoa(sum.Late), lab.Millis(sum.Longest)})
		}
	}
	return t
}

// whole returns a time in milliseconds.
func whole(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
