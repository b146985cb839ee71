// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package redisbench

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/weftraft/weft/cmd/weftbench/internal/ycsb"
	"github.com/weftraft/weft/internal/lab"
)

// cell is what one row of the report is about.
type cell struct {
	tool, test        string
	clients, pipeline int
}

// Report puts the rows into a document.
func Report(cfg Config, rows []Row) *lab.Section {
	s := &lab.Section{
		Verb: "redis", Page: true, Title: "Data: kvdemo beside redis-server", Rounds: cfg.Rounds, Data: rows,
		Intro: fmt.Sprintf("Made by `make bench-redis`, which runs `weftbench redis`: a cluster of %d nodes of kvdemo (`serve --resp`), each a process with\n"+
			"a log of its own that is synced before a write is acknowledged, beside one redis-server with `appendfsync always`. All of it,\n"+
			"and the clients, share one machine with %d processors (%s, %s); each write of kvdemo is therefore done %d times on them.\n"+
			"The sides are driven in turn, in each of %d rounds, each time without data; numbers are medians of the rounds.\n\n"+
			"What they do is not the same. A write that kvdemo acknowledged survives the loss of a node, and reads are linearizable at\n"+
			"every node; redis-server acknowledges what one disk has, and a disk lost is data lost. redis-benchmark drives the leader of\n"+
			"kvdemo. Where kvdemo has the smaller number, it loses; *times* is kvdemo's number divided by that of the other side, with the\n"+
			"least and the greatest of the rounds.",
			cfg.Nodes, runtime.NumCPU(), runtime.GOARCH, version("redis-server", "--version"), cfg.Nodes, cfg.Rounds),
	}
	redis, etcd := &tally{}, &tally{}
	s.Tables = append(s.Tables, benchmarkTable(cfg, rows, redis))
	if cells := cellsOf(rows, "YCSB"); len(cells) > 0 {
		s.Tables = append(s.Tables, ycsbTable(cfg, rows, cells, redis, etcd))
	}
	failed := int64(0)
	for _, r := range rows {
		failed += r.Failed
	}
	note := fmt.Sprintf("kvdemo is slower than redis-server in %d of %d rows", redis.losses, redis.rows)
	if etcd.rows > 0 {
		note += fmt.Sprintf(", and than etcd in %d of %d", etcd.losses, etcd.rows)
	}
	last := &s.Tables[len(s.Tables)-1]
	last.Notes = append(last.Notes, fmt.Sprintf("%s. Operations that failed: %d.", note, failed))
	return s
}

// tally counts the rows in which kvdemo and another side were measured.
type tally struct{ rows, losses int }

// times returns kvdemo's number divided by the other, as text.
func (t *tally) times(ours, theirs []Row) string {
	ratio := lab.RoundsOf(ours, perSecond).Ratio(lab.RoundsOf(theirs, perSecond))
	if len(ratio) == 0 {
		return "-"
	}
	t.rows++
	if ratio.Median() < 1 {
		t.losses++
	}
	return ratio.Text("%.2f")
}

// benchmarkTable has the rows of redis-benchmark.
func benchmarkTable(cfg Config, rows []Row, redis *tally) lab.Table {
	t := lab.Table{
		Heading: "## redis-benchmark", Title: fmt.Sprintf("`-d 100 -r 100000`, and %d requests for one client.", cfg.Requests),
		Rows: [][]string{{"test", "clients", "pipeline", "kvdemo /s", "redis-server /s", "times", "kvdemo p50, p99 ms", "redis-server p50, p99 ms"}},
	}
	for _, c := range cellsOf(rows, "redis-benchmark") {
		ours, theirs := c.of(rows, sideKvdemo), c.of(rows, sideRedis)
		t.Rows = append(t.Rows, []string{c.test, strconv.Itoa(c.clients), strconv.Itoa(c.pipeline),
			rate(ours), rate(theirs), redis.times(ours, theirs), lab.Percentiles(ours, p50, p99), lab.Percentiles(theirs, p50, p99)})
	}
	return t
}

// ycsbTable has the rows of YCSB.
func ycsbTable(cfg Config, rows []Row, cells []cell, redis, etcd *tally) lab.Table {
	t := lab.Table{
		Heading: "## YCSB",
		Title: fmt.Sprintf("YCSB 0.17.0: its client, its core workloads, its records of 10 fields of 100 bytes, its statistics; %d records, %d threads.\n"+
			"YCSB's binding for Redis is on no registry, so a binding of weftbench's own keeps YCSB's documented layout with the same client,\n"+
			"Jedis 2.9.0: a record is a hash, and one sorted set has all keys, for scans. YCSB has no binding for etcd; weftbench's own, with\n"+
			"jetcd, keeps each field as a key. etcd is the release's program, in a cluster of %d. The threads are spread over the nodes of\n"+
			"kvdemo and etcd; reads of both are linearizable. A record is read and scanned whole, and an update writes one field.",
			cfg.YCSB.Records, cfg.YCSB.Clients, cfg.Nodes),
		Rows: [][]string{{"workload", "kvdemo /s", "redis-server /s", "etcd /s", "times redis-server", "times etcd",
			"reads p50, p99 ms: kvdemo", "redis-server", "etcd", "writes p50, p99 ms: kvdemo", "redis-server", "etcd"}},
	}
	for _, c := range cells {
		k, r, e := c.of(rows, sideKvdemo), c.of(rows, sideRedis), c.of(rows, sideEtcd)
		name := c.test
		for _, w := range ycsb.Workloads {
			if w.Name == c.test {
				name += ": " + w.About
			}
		}
		line := []string{name, rate(k), rate(r), rate(e), redis.times(k, r), etcd.times(k, e)}
		for _, of := range [][2]func(Row) float64{{p50, p99}, {writeP50, writeP99}} {
			for _, side := range [][]Row{k, r, e} {
				line = append(line, lab.Percentiles(side, of[0], of[1]))
			}
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// rate returns operations a second, as text.
func rate(rows []Row) string {
	if len(rows) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", lab.RoundsOf(rows, perSecond).Median())
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

// of returns a side's rows of a cell, by round.
func (c cell) of(rows []Row, side string) (found []Row) {
	for _, r := range rows {
		if r.Side == side && (cell{r.Tool, r.Test, r.Clients, r.Pipeline}) == c {
			found = append(found, r)
		}
	}
	return found
}
