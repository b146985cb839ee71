// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ycsb

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Report puts the rows into a document.
func (b *Bench) Report(rows []Row) *lab.Section {
	s := &lab.Section{
		Verb: "ycsb", Page: true, Title: "Data: YCSB on kvdemo, etcd on Weft, and etcd", Rounds: b.Rounds, Data: rows,
		Intro: fmt.Sprintf("Made by `make bench-ycsb`, which runs `weftbench ycsb`: clusters of %d nodes, each a process with a log of its own that is synced\n"+
			"before a write is acknowledged: kvdemo, driven through the protocol of Redis; released etcd; and the same sources of etcd on Weft, with\n"+
			"payloads of %s and more coded, as at kvdemo. All of it, and the client, share one machine with %d processors (%s).\n"+
			"YCSB's own client has %d threads, spread over all nodes; reads are linearizable. A record is one field. A cluster of each side begins\n"+
			"without data in each of %d rounds, in turns; numbers are medians of the rounds, and ratios have their least and greatest. On the LAN\n"+
			"nodes are connected directly; on the WAN what nodes send each other is delayed by this program: by relays for kvdemo, and by HTTP\n"+
			"proxies, which take more of the processors, for both sides of etcd. Clients are beside the nodes.",
			b.Nodes, lab.Bytes(b.CodeFrom), runtime.NumCPU(), runtime.GOARCH, b.Clients, b.Rounds),
	}
	for _, delay := range b.Delays {
		for i, value := range b.Values {
			t := b.table(rows, delay, value)
			if i == 0 {
				t.Heading = "## " + place(delay)
			}
			s.Tables = append(s.Tables, t)
		}
	}
	failed := int64(0)
	for _, r := range rows {
		failed += r.Failed
	}
	if len(s.Tables) > 0 {
		last := &s.Tables[len(s.Tables)-1]
		last.Notes = append(last.Notes, fmt.Sprintf("Operations that failed: %d.", failed))
	}
	return s
}

func (b *Bench) table(rows []Row, delay time.Duration, value int) lab.Table {
	head := []string{"workload"}
	for _, name := range sideNames {
		head = append(head, name+" /s")
	}
	head = append(head, "kvdemo, times etcd", "etcd on Weft, times etcd")
	for _, what := range []string{"reads", "writes"} {
		for _, name := range sideNames {
			head = append(head, fmt.Sprintf("%s p50, p99 ms: %s", what, name))
		}
	}
	t := lab.Table{Title: fmt.Sprintf("%d records of %s.", b.records(value), lab.Bytes(value)), Rows: [][]string{head}}
	for _, w := range Workloads {
		of := func(side string) []Row {
			return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool {
				return r.Side != side || r.Delay != delay || r.Value != value || r.Workload != w.Name
			})
		}
		line := []string{w.Name + ": " + w.About}
		base := lab.RoundsOf(of(sideEtcd), perSecond)
		for _, name := range sideNames {
			line = append(line, fmt.Sprintf("%.0f", lab.RoundsOf(of(name), perSecond).Median()))
		}
		for _, name := range sideNames[:2] {
			line = append(line, lab.RoundsOf(of(name), perSecond).Ratio(base).Text("%.2f"))
		}
		for _, q := range [][2]func(Row) float64{
			{func(r Row) float64 { return r.P50 }, func(r Row) float64 { return r.P99 }},
			{func(r Row) float64 { return r.WriteP50 }, func(r Row) float64 { return r.WriteP99 }},
		} {
			for _, name := range sideNames {
				line = append(line, lab.Percentiles(of(name), q[0], q[1]))
			}
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

func perSecond(r Row) float64 { return r.PerSecond }
