// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package redisbench

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// cell is what one row of the report is about.
type cell struct {
	tool, test        string
	clients, pipeline int
}

// Markdown returns the report.
func Markdown(cfg Config, rows []Row) string {
	var b strings.Builder
	b.WriteString("# kvdemo beside redis-server\n\n")
	fmt.Fprintf(&b, "Made by `make bench-redis`, which runs `weftbench redis`: a cluster of %d nodes of kvdemo (`serve --resp`), each a process with\n"+
		"a log of its own that is synced before a write is acknowledged, beside one redis-server with `appendfsync always`. All of it,\n"+
		"and the clients, share one machine with %d processors (%s, %s); each write of kvdemo is therefore done %d times on them.\n"+
		"Both sides are driven in turn, in each of %d rounds, each time without data; numbers are medians of the rounds.\n\n",
		cfg.Nodes, runtime.NumCPU(), runtime.GOARCH, version("redis-server", "--version"), cfg.Nodes, cfg.Rounds)
	b.WriteString("What they do is not the same. A write that kvdemo acknowledged survives the loss of a node, and reads are linearizable at\n" +
		"every node; redis-server acknowledges what one disk has, and a disk lost is data lost. redis-benchmark drives the leader of\n" +
		"kvdemo. Where kvdemo has the smaller number, it loses; *times* is kvdemo's number divided by that of redis-server.\n\n")
	b.WriteString("| tool | test | clients | pipeline | kvdemo /s | redis-server /s | times | kvdemo p50, p99 ms | redis-server p50, p99 ms |\n|---|---|---|---|---|---|---|---|---|\n")
	losses, cells := 0, 0
	for _, c := range cellsOf(rows) {
		ours, theirs := c.of(rows, SideKvdemo), c.of(rows, SideRedis)
		if len(ours) == 0 || len(theirs) == 0 {
			continue
		}
		per := func(r Row) float64 { return r.PerSecond }
		ratio := median(ours, per) / median(theirs, per)
		cells++
		if ratio < 1 {
			losses++
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %.0f | %.0f | %.2f | %.2f, %.2f | %.2f, %.2f |\n", c.tool, c.test, c.clients, c.pipeline,
			median(ours, per), median(theirs, per), ratio,
			median(ours, p50), median(ours, p99), median(theirs, p50), median(theirs, p99))
	}
	fmt.Fprintf(&b, "\nkvdemo is slower in %d of %d rows.", losses, cells)
	failed := int64(0)
	for _, r := range rows {
		failed += r.Failed
	}
	fmt.Fprintf(&b, " Operations that failed: %d.\n\n", failed)
	fmt.Fprintf(&b, "The rows of YCSB are its workloads A, B, C and F (half reads and half updates; 95%% reads; reads only; half reads and half\n"+
		"read-modify-writes, each a GET and a SET), by a client that is part of weftbench, on go-redis, because YCSB's own binding for\n"+
		"Redis keeps records as hashes, which kvdemo has not: %d records of %d bytes, drawn by Zipf's law with the exponent 0.99, seed %d; the clients of kvdemo are\n"+
		"spread over its nodes. redis-benchmark ran with `-d 100 -r 100000` and %d requests for one client.\n",
		cfg.YCSB.Records, cfg.YCSB.Size, cfg.YCSB.Seed, cfg.Requests)
	return b.String()
}

func p50(r Row) float64 { return r.P50 }
func p99(r Row) float64 { return r.P99 }

// version returns the first words of what a program says of itself.
func version(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) < 3 {
		return program + " of an unknown version"
	}
	return strings.Join(words[:3], " ")
}

// cellsOf returns the cells in the order in which they were measured.
func cellsOf(rows []Row) (cells []cell) {
	for _, r := range rows {
		if c := (cell{r.Tool, r.Test, r.Clients, r.Pipeline}); !slices.Contains(cells, c) {
			cells = append(cells, c)
		}
	}
	return cells
}

// of returns a side's rows of a cell.
func (c cell) of(rows []Row, side string) (found []Row) {
	for _, r := range rows {
		if r.Side == side && (cell{r.Tool, r.Test, r.Clients, r.Pipeline}) == c {
			found = append(found, r)
		}
	}
	return found
}

// median returns the median of a number of rows, of which there is one at least.
func median(rows []Row, of func(Row) float64) float64 {
	var values []float64
	for _, r := range rows {
		values = append(values, of(r))
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}
