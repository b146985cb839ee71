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
		"The sides are driven in turn, in each of %d rounds, each time without data; numbers are medians of the rounds.\n\n",
		cfg.Nodes, runtime.NumCPU(), runtime.GOARCH, version("redis-server", "--version"), cfg.Nodes, cfg.Rounds)
	b.WriteString("What they do is not the same. A write that kvdemo acknowledged survives the loss of a node, and reads are linearizable at\n" +
		"every node; redis-server acknowledges what one disk has, and a disk lost is data lost. redis-benchmark drives the leader of\n" +
		"kvdemo. Where kvdemo has the smaller number, it loses; *times* is kvdemo's number divided by that of the other side.\n\n")
	redis, etcd := &tally{}, &tally{}
	benchmarkTable(&b, cfg, rows, redis)
	ycsbTable(&b, cfg, rows, redis, etcd)
	failed := int64(0)
	for _, r := range rows {
		failed += r.Failed
	}
	fmt.Fprintf(&b, "\nkvdemo is slower than redis-server in %d of %d rows", redis.losses, redis.rows)
	if etcd.rows > 0 {
		fmt.Fprintf(&b, ", and than etcd in %d of %d", etcd.losses, etcd.rows)
	}
	fmt.Fprintf(&b, ". Operations that failed: %d.\n", failed)
	return b.String()
}

// tally counts the rows in which kvdemo and another side were measured.
type tally struct{ rows, losses int }

// times returns kvdemo's number divided by the other, as text.
func (t *tally) times(ours, theirs []Row) string {
	if len(ours) == 0 || len(theirs) == 0 {
		return "-"
	}
	ratio := median(ours, perSecond) / median(theirs, perSecond)
	t.rows++
	if ratio < 1 {
		t.losses++
	}
	return fmt.Sprintf("%.2f", ratio)
}

// benchmarkTable writes the rows of redis-benchmark.
func benchmarkTable(b *strings.Builder, cfg Config, rows []Row, redis *tally) {
	fmt.Fprintf(b, "## redis-benchmark\n\n`-d 100 -r 100000`, and %d requests for one client.\n\n", cfg.Requests)
	b.WriteString("| test | clients | pipeline | kvdemo /s | redis-server /s | times | kvdemo p50, p99 ms | redis-server p50, p99 ms |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range cellsOf(rows, "redis-benchmark") {
		ours, theirs := c.of(rows, SideKvdemo), c.of(rows, SideRedis)
		fmt.Fprintf(b, "| %s | %d | %d | %s | %s | %s | %s | %s |\n", c.test, c.clients, c.pipeline,
			rate(ours), rate(theirs), redis.times(ours, theirs), latency(ours, p50, p99), latency(theirs, p50, p99))
	}
}

// ycsbTable writes the rows of YCSB.
func ycsbTable(b *strings.Builder, cfg Config, rows []Row, redis, etcd *tally) {
	cells := cellsOf(rows, "YCSB")
	if len(cells) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## YCSB\n\nYCSB 0.17.0: its client, its core workloads, its records of 10 fields of 100 bytes, its statistics; %d records, %d threads.\n"+
		"YCSB's binding for Redis is on no registry, so a binding of weftbench's own keeps YCSB's documented layout with the same client,\n"+
		"Jedis 2.9.0: a record is a hash, and one sorted set has all keys, for scans. YCSB has no binding for etcd; weftbench's own, with\n"+
		"jetcd, keeps each field as a key. etcd is the release's program, in a cluster of %d. The threads are spread over the nodes of\n"+
		"kvdemo and etcd; reads of both are linearizable. A record is read and scanned whole, and an update writes one field.\n\n",
		cfg.YCSB.Records, cfg.YCSB.Clients, cfg.Nodes)
	b.WriteString("| workload | kvdemo /s | redis-server /s | etcd /s | times redis-server | times etcd | reads p50, p99 ms: kvdemo | redis-server | etcd | writes p50, p99 ms: kvdemo | redis-server | etcd |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range cells {
		k, r, e := c.of(rows, SideKvdemo), c.of(rows, SideRedis), c.of(rows, SideEtcd)
		name := c.test
		for _, w := range workloads {
			if w.name == c.test {
				name += ": " + w.about
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s", name, rate(k), rate(r), rate(e), redis.times(k, r), etcd.times(k, e))
		for _, of := range [][2]func(Row) float64{{p50, p99}, {writeP50, writeP99}} {
			for _, side := range [][]Row{k, r, e} {
				fmt.Fprintf(b, " | %s", latency(side, of[0], of[1]))
			}
		}
		b.WriteString(" |\n")
	}
}

// rate returns operations a second, as text.
func rate(rows []Row) string {
	if len(rows) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", median(rows, perSecond))
}

// latency returns two percentiles, as text.
func latency(rows []Row, half, most func(Row) float64) string {
	if len(rows) == 0 || median(rows, most) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f, %.2f", median(rows, half), median(rows, most))
}

func perSecond(r Row) float64 { return r.PerSecond }
func writeP50(r Row) float64  { return r.WriteP50 }
func writeP99(r Row) float64  { return r.WriteP99 }
func p50(r Row) float64       { return r.P50 }
func p99(r Row) float64       { return r.P99 }

// version returns the first words of what a program says of itself.
func version(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) < 3 {
		return program + " of an unknown version"
	}
	return strings.Join(words[:3], " ")
}

// cellsOf returns the cells of a tool in the order in which they were measured.
func cellsOf(rows []Row, tool string) (cells []cell) {
	for _, r := range rows {
		if r.Tool != tool {
			continue
		}
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
