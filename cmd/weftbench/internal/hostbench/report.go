// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostbench

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Section returns the measurements as a section of a document. The last side is the yardstick
// of the other sides.
func (r *report) Section() *lab.Section {
	s := &lab.Section{
		Verb: "host", Page: true, Title: "Data: Host beside a minimal loop", Intro: r.intro(), Data: r,
		Rounds: r.Config.leastRounds(), Tables: []lab.Table{r.loads()},
	}
	if len(r.Gaps) > 0 {
		s.Tables = append(s.Tables, r.failover())
	}
	if len(r.Disks) > 0 {
		s.Tables = append(s.Tables, r.disk())
	}
	return s
}

func (r *report) base() string { return r.Config.Sides[len(r.Config.Sides)-1].Name }

func (r *report) intro() string {
	c := r.Config
	var sides []string
	for _, s := range c.Sides {
		sides = append(sides, fmt.Sprintf("- **%s**: %s.", s.Name, s.About))
	}
	return fmt.Sprintf("Written by `make bench-host` on %s: three nodes a side, each a process of its own, all on one machine with the\n"+
		"clients (%s, %d CPUs, %s on %s/%s). Every write is synced to a majority's logs before it is acknowledged.\n"+
		"The sides take turns: %d rounds of %v for the rows of 1 KB and 64 KB, %d for the others, another side first each time. Look at\n"+
		"the ratios; the absolute figures are of a small virtual machine whose processors all nodes and clients share.\n\n%s\n%s",
		r.Start.UTC().Format(time.DateOnly), lab.CPUModel(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		c.Rounds, c.Time, c.rounds(row{}), strings.Join(sides, "\n"), fmt.Sprintf(`
The minimal loop (`+"`cmd/weftbench/internal/loop`"+`) is what that library's README asks its user to write, and no more: one
loop over Ready, a log file synced once per Ready, messages over one connection per peer. It has the same gRPC service
and the same Pebble state. It neither bounds its memory, nor knows what became of a write that got no answer, nor changes
members; its doc.go lists what it lacks.

**CPU/call** is the CPU time of all three server processes, until they rest again, divided by the calls answered; the
clients' is not in it. **vs %s** is the ratio of that, median over the rounds, and between which two ratios the middle half of
the rounds lies. Clients are closed-loop unless a rate is named: each waits for its answer before it asks again, and they are
spread over all three nodes, so two thirds of the calls reach a follower first; one that is alone asks the leader in one round and
a follower in the next two, on all sides alike.`, r.base()))
}

// loads is the table of what each load cost.
func (r *report) loads() lab.Table {
	t := lab.Table{
		Heading: "## Writes and reads",
		Rows:    [][]string{{"value", "clients", "side", "calls/s", "p50 ms", "p99 ms", "CPU/call µs", "vs " + r.base(), "middle half"}},
	}
	var behind, failed []string
	for cells := range slices.Chunk(r.Cells, len(r.Config.Sides)) {
		base := cells[len(cells)-1]
		for _, c := range cells {
			ratio, half := "-", "-"
			if c != base {
				all := c.PerCall.Ratio(base.PerCall)
				low, high := all.Middle()
				ratio, half = fmt.Sprintf("%.2f", all.Median()), fmt.Sprintf("%.2f to %.2f", low, high)
				if x := all.Median(); x > 1.1 {
					behind = append(behind, fmt.Sprintf("%s at %s (%.2f)", c.Side, c.Row, x))
				}
			}
			if c.Failed > 0 {
				failed = append(failed, fmt.Sprintf("%d of %s at %s (%v)", c.Failed, c.Side, c.Row, c.err))
			}
			t.Rows = append(t.Rows, []string{
				lab.Bytes(c.Row.Size), c.Row.load(), c.Side, fmt.Sprintf("%.0f", c.PerSecond()), fmt.Sprintf("%.2f", c.P50), fmt.Sprintf("%.2f", c.P99),
				fmt.Sprintf("%.0f", c.CPUPerCall()), ratio, half,
			})
		}
	}
	if len(behind) == 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("No side used more than 1.1 times the CPU of %s.", r.base()))
	} else {
		t.Notes = append(t.Notes, fmt.Sprintf("More than 1.1 times the CPU of %s: %s.", r.base(), strings.Join(behind, ", ")))
	}
	if len(failed) > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Calls that failed: %s.", strings.Join(failed, ", ")))
	}
	if r.Config.Rounds > 1 {
		t.Notes = append(t.Notes, r.spread())
	}
	return t
}

// spread says how far the rounds lie apart.
func (r *report) spread() string {
	worst, where := 1.0, "all"
	for _, c := range r.Cells {
		if s := slices.Max(c.PerCall) / slices.Min(c.PerCall); s > worst {
			worst, where = s, fmt.Sprintf("%s at %s", c.Side, c.Row)
		}
	}
	return fmt.Sprintf("The rounds of one cell lie at most %.2f times apart in CPU/call (%s).", worst, where)
}

func (r *report) failover() lab.Table {
	timeout := time.Duration(r.Config.ElectionTicks) * r.Config.Tick
	t := lab.Table{
		Heading: "## The leader killed",
		Title: fmt.Sprintf("The longest time without an answered write, from the moment the leader's process got SIGKILL, with 16 clients and an\n"+
			"election timeout of %v (a follower waits that long if its connection to the leader broke, as it does here; the loop's waits up to twice that):", timeout),
		Rows: [][]string{{"side", "median ms", "times the timeout", "least", "most", "kills"}},
	}
	for _, g := range r.Gaps {
		whole := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
		t.Rows = append(t.Rows, []string{
			g.Side, whole(g.Median()), fmt.Sprintf("%.2f", g.Median().Seconds()/timeout.Seconds()),
			whole(g.All[0]), whole(g.All[len(g.All)-1]), strconv.Itoa(len(g.All)),
		})
	}
	return t
}

func (r *report) disk() lab.Table {
	t := lab.Table{
		Heading: "## Bytes written to disk",
		Title: fmt.Sprintf("Per byte of payload and replica, for %s of values of %s written by 16 clients to a new cluster, up to its orderly\n"+
			"stop. The log is what its writer counts; the total is what the kernel counts for the process.",
			lab.Bytes(int(r.Disks[0].Payload)), lab.Bytes(r.Config.DiskSize)),
		Rows: [][]string{{"side", "log", "log and state"}},
	}
	for _, d := range r.Disks {
		t.Rows = append(t.Rows, []string{d.Side, fmt.Sprintf("%.2f", d.Log), fmt.Sprintf("%.2f", d.Total)})
	}
	return t
}

// String names a row.
func (r row) String() string { return lab.Bytes(r.Size) + " x " + r.load() }

func (r row) load() string {
	s := strconv.Itoa(r.Clients)
	if r.Reads > 0 {
		s += ", reads"
	}
	if r.Rate > 0 {
		s += fmt.Sprintf(", open-loop %.0f/s", r.Rate)
	}
	return s
}
