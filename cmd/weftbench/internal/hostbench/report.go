// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostbench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// WriteJSON writes what was measured to a file.
func (r *Report) WriteJSON(path string) error {
	data, err := json.MarshalIndent(struct {
		Cells []*Cell `json:"cells"`
		Gaps  []*Gaps `json:"gaps"`
		Disks []*Disk `json:"disks"`
	}{r.Cells, r.Gaps, r.Disks}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Markdown returns the report as a document. The last side is what the others
// are compared with.
func (r *Report) Markdown() string {
	var b strings.Builder
	r.head(&b)
	r.loads(&b)
	r.spread(&b)
	r.failover(&b)
	r.disk(&b)
	return b.String()
}

func (r *Report) base() string { return r.Config.Sides[len(r.Config.Sides)-1].Name }

func (r *Report) head(b *strings.Builder) {
	c := r.Config
	fmt.Fprintf(b, "# Benchmarks: Host beside a minimal loop\n\n")
	fmt.Fprintf(b, "Written by `make bench-host` on %s: three nodes a side, each a process of its own, all on one machine with the\n", r.Start.UTC().Format(time.DateOnly))
	fmt.Fprintf(b, "clients (%s, %d CPUs, %s on %s/%s). Every write is synced to a majority's logs before it is acknowledged.\n",
		cpuModel(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(b, "The sides take turns: %d rounds of %v for the rows of 1 KB and 64 KB, %d for the others, another side first each time. Look at\n", c.Rounds, c.Time, (c.Rounds+1)/2)
	fmt.Fprintf(b, "the ratios; the absolute figures are of a small virtual machine whose processors all nodes and clients share.\n\n")
	for _, s := range c.Sides {
		fmt.Fprintf(b, "- **%s**: %s.\n", s.Name, s.About)
	}
	fmt.Fprintf(b, `
The minimal loop (`+"`cmd/weftbench/internal/loop`"+`) is what that library's README asks its user to write, and no more: one
loop over Ready, a log file synced once per Ready, messages over one connection per peer. It has the same gRPC service
and the same Pebble state. It neither bounds its memory, nor knows what became of a write that got no answer, nor changes
members; its doc.go lists what it lacks.

**CPU/call** is the CPU time of all three server processes, until they rest again, divided by the calls answered; the
clients' is not in it. **vs %s** is the ratio of that, median over the rounds, and between which two ratios the middle half of
the rounds lies. Clients are closed-loop unless a rate is named: each waits for its answer before it asks again, and they are
spread over all three nodes, so two thirds of the calls reach a follower first; one that is alone asks the leader in one round and
a follower in the next two, on all sides alike.
`, r.base())
}

// loads is the table of what each load cost.
func (r *Report) loads(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Writes and reads\n\n")
	fmt.Fprintf(b, "| value | clients | side | calls/s | p50 ms | p99 ms | CPU/call µs | vs %s | middle half |\n|---|---|---|---|---|---|---|---|---|\n", r.base())
	var behind []string
	for _, rowCells := range r.byRow() {
		base := rowCells[len(rowCells)-1]
		for _, c := range rowCells {
			ratio, half := "-", "-"
			if c != base {
				all := ratios(c, base)
				x := median(all)
				ratio, half = fmt.Sprintf("%.2f", x), middleHalf(all)
				if x > 1.1 {
					behind = append(behind, fmt.Sprintf("%s at %s (%.2f)", c.Side, c.Row, x))
				}
			}
			fmt.Fprintf(b, "| %s | %s | %s | %.0f | %.2f | %.2f | %.0f | %s | %s |\n",
				bytesName(c.Row.Size), c.Row.load(), c.Side, c.PerSecond(), c.P50, c.P99, c.CPUPerCall(), ratio, half)
		}
	}
	if len(behind) == 0 {
		fmt.Fprintf(b, "\nNo side used more than 1.1 times the CPU of %s.\n", r.base())
	} else {
		fmt.Fprintf(b, "\nMore than 1.1 times the CPU of %s: %s.\n", r.base(), strings.Join(behind, ", "))
	}
	if failed := r.failures(); failed != "" {
		fmt.Fprintf(b, "\nCalls that failed: %s.\n", failed)
	}
}

func (r *Report) failures() string {
	var all []string
	for _, c := range r.Cells {
		if c.Failed > 0 {
			all = append(all, fmt.Sprintf("%d of %s at %s (%v)", c.Failed, c.Side, c.Row, c.err))
		}
	}
	return strings.Join(all, ", ")
}

// byRow returns the cells of each row, in the order of the sides.
func (r *Report) byRow() (rows [][]*Cell) {
	for chunk := range slices.Chunk(r.Cells, len(r.Config.Sides)) {
		rows = append(rows, chunk)
	}
	return rows
}

// ratios is how one cell's CPU compares with another's, round by round. Noise that
// comes and goes hits both sides of a round.
func ratios(c, base *Cell) (all []float64) {
	for i := range c.PerCall {
		all = append(all, c.PerCall[i]/base.PerCall[i])
	}
	return all
}

// middleHalf names the ratios that a quarter of the rounds lie below and above.
func middleHalf(all []float64) string {
	all = slices.Sorted(slices.Values(all))
	n := len(all) - 1
	return fmt.Sprintf("%.2f to %.2f", all[(n+2)/4], all[n-(n+2)/4])
}

func median[T float64 | time.Duration](all []T) T {
	all = slices.Clone(all)
	slices.Sort(all)
	n := len(all)
	if n == 0 {
		return 0
	}
	return (all[(n-1)/2] + all[n/2]) / 2
}

// spread says how far the rounds lie apart.
func (r *Report) spread(b *strings.Builder) {
	if r.Config.Rounds < 2 {
		return
	}
	worst, where := 1.0, ""
	for _, c := range r.Cells {
		if s := slices.Max(c.PerCall) / slices.Min(c.PerCall); s > worst {
			worst, where = s, fmt.Sprintf("%s at %s", c.Side, c.Row)
		}
	}
	fmt.Fprintf(b, "\nThe rounds of one cell lie at most %.2f times apart in CPU/call (%s).\n", worst, where)
}

func (r *Report) failover(b *strings.Builder) {
	if len(r.Gaps) == 0 {
		return
	}
	timeout := time.Duration(r.Config.ElectionTicks) * r.Config.Tick
	fmt.Fprintf(b, "\n## The leader killed\n\nThe longest time without an answered write, from the moment the leader's process got SIGKILL, with 16 clients and an\n")
	fmt.Fprintf(b, "election timeout of %v (a follower waits that long if its connection to the leader broke, as it does here; the loop's waits up to twice that):\n\n| side | median | times the timeout | least | most | kills |\n|---|---|---|---|---|---|\n", timeout)
	for _, g := range r.Gaps {
		fmt.Fprintf(b, "| %s | %v | %.2f | %v | %v | %d |\n", g.Side, g.Median().Round(time.Millisecond), g.Median().Seconds()/timeout.Seconds(),
			g.All[0].Round(time.Millisecond), g.All[len(g.All)-1].Round(time.Millisecond), len(g.All))
	}
}

func (r *Report) disk(b *strings.Builder) {
	if len(r.Disks) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Bytes written to disk\n\nPer byte of payload and replica, for %s of values of %s written by 16 clients to a new cluster, up to its orderly\n",
		bytesName(int(r.Disks[0].Payload)), bytesName(r.Config.DiskSize))
	fmt.Fprintf(b, "stop. The log is what its writer counts; the total is what the kernel counts for the process.\n\n| side | log | log and state |\n|---|---|---|\n")
	for _, d := range r.Disks {
		fmt.Fprintf(b, "| %s | %.2f | %.2f |\n", d.Side, d.Log, d.Total)
	}
}

// String names a row.
func (r Row) String() string { return bytesName(r.Size) + " x " + r.load() }

func (r Row) load() string {
	s := fmt.Sprint(r.Clients)
	if r.Reads > 0 {
		s += ", reads"
	}
	if r.Rate > 0 {
		s += fmt.Sprintf(", open-loop %.0f/s", r.Rate)
	}
	return s
}

func bytesName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// cpuModel names the processor, as well as the system does.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer func() { _ = f.Close() }() // only read
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}
