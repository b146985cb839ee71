// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

// maxReads is how many files are read at each node.
const maxReads = 500

// nodeReads is where the linearizable reads at one node were served: at the node, by its
// roster leases or its lease as the leader, or by asking the leader.
type nodeReads struct {
	Node   uint64         `json:"node"`
	Leads  bool           `json:"leads,omitempty"`
	Served map[string]int `json:"served"`
	P50    float64        `json:"p50_ms"`
	P99    float64        `json:"p99_ms"`
}

// readEverywhere names all nodes as responders, and reads files at each of them.
func (d *run) readEverywhere(ctx context.Context) error {
	if !d.cfg.Leases {
		return nil
	}
	var all []uint64
	for _, n := range d.cluster.nodes {
		all = append(all, n.id)
	}
	d.p.status("naming all nodes to answer reads")
	if err := d.cluster.NameResponders(ctx, all...); err != nil {
		return err
	}
	d.cluster.poll(ctx)
	d.p.event("all %d nodes answer linearizable reads by themselves", len(all))
	leader := d.cluster.leader()
	for _, n := range d.cluster.nodes {
		r, err := d.readAt(ctx, n)
		if err != nil {
			return err
		}
		r.Leads = n == leader
		d.reads = append(d.reads, r)
	}
	return nil
}

// readAt reads files that are small enough for one part, at one node.
func (d *run) readAt(ctx context.Context, n *node) (nodeReads, error) {
	r := nodeReads{Node: n.id, Served: map[string]int{}}
	c, err := client.New(client.Config{Endpoints: []string{n.Client}, Timeout: patience})
	if err != nil {
		return r, err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	var took lab.Histogram
	count := 0
	for _, f := range d.set.files {
		if f.size > kv.MaxInlineBytes {
			continue
		}
		if count++; count > maxReads {
			break
		}
		begin := time.Now()
		resp, err := c.Get(ctx, &kvpb.GetRequest{Key: f.key})
		if err != nil {
			return r, fmt.Errorf("read %s at node %d: %w", f.key, n.id, err)
		}
		took.Record(time.Since(begin))
		r.Served[resp.GetServed().GetBy()]++
	}
	r.P50, r.P99 = took.Millis(0.5), took.Millis(0.99)
	return r, nil
}

// readTable says where reads were served, a line for each node.
func (r report) readTable() (t lab.Table) {
	if len(r.Reads) == 0 {
		return t
	}
	t = lab.Table{Title: "linearizable reads at each node, one at a time, and what served them", Rows: [][]string{{"node", "p50 ms", "p99 ms", "served"}}}
	for _, n := range r.Reads {
		var served []string
		for _, by := range slices.Sorted(maps.Keys(n.Served)) {
			served = append(served, fmt.Sprintf("%d %s", n.Served[by], map[string]string{
				"roster": "here, by roster leases", "lease": "here, by its lease as the leader", "leader": "by asking the leader",
			}[by]))
		}
		name := fmt.Sprint("node ", n.Node)
		if n.Leads {
			name += ", leader"
		}
		t.Rows = append(t.Rows, []string{name, fmt.Sprintf("%.2f", n.P50), fmt.Sprintf("%.2f", n.P99), strings.Join(served, "; ")})
	}
	return t
}
