// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
)

// RunProcesses runs a plan by processes of this machine: a node is "self tpccnode", with data in dir until the end.
// Nodes that have failed are killed before their ranges begin. It returns lab.ErrDisturbed if a leader changes.
func RunProcesses(ctx context.Context, self, dir string, s Setting) (o Outcome, err error) {
	if s.Plan.Nodes != replicas {
		return o, fmt.Errorf("%d nodes, want %d: each has a replica of each range", s.Plan.Nodes, replicas)
	}
	setting, err := json.Marshal(s)
	if err != nil {
		return o, err
	}
	program := hostnode.Program{Serve: lab.Serve{Program: []string{self, "tpccnode"}, Args: []string{"--setting", string(setting)}}}
	c, err := lab.StartCluster(ctx, lab.ClusterConfig{Name: "tpcc", Program: program, Nodes: s.Plan.Nodes, Dir: dir})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, c.Close(), os.RemoveAll(dir)) }()
	live := c.Nodes[:s.Plan.Nodes-s.Plan.Failed]
	for _, n := range c.Nodes[len(live):] {
		if err := n.Kill(); err != nil {
			return o, err
		}
	}
	for _, order := range []string{"lead", "settle"} {
		if _, err := each[any](ctx, live, order); err != nil {
			return o, err
		}
	}
	runs, err := each[ran](ctx, live, "run")
	if err != nil {
		return o, err
	}
	w := newLoad(s.Plan, nil)
	for _, r := range runs {
		if r.Changed {
			return o, fmt.Errorf("%w: a range has another leader", lab.ErrDisturbed)
		}
		for kind, took := range r.Took {
			w.took[kind] = append(w.took[kind], took...)
		}
	}
	o = w.measure()
	for _, r := range runs {
		sent := float64(r.Sent) / s.Plan.Time.Seconds()
		o.Wire, o.Busiest, o.CPU = o.Wire+sent, max(o.Busiest, sent/s.Plan.Rate), o.CPU+r.CPU
	}
	copies, err := each[[]copied](ctx, live, "rows")
	if err != nil {
		return o, err
	}
	ranges := make([][]*kept, s.Plan.Ranges)
	for _, node := range copies {
		for i, c := range node {
			k := &kept{memory{own: map[string][]byte{}}, c.Commands}
			if err := put(k, c.Rows); err != nil {
				return o, err
			}
			ranges[i] = append(ranges[i], k)
		}
	}
	o.Checked, err = check(w.scale, ranges)
	return o, err
}

// each gives all nodes an order, at the same time.
func each[T any](ctx context.Context, nodes []*lab.Node, order string) ([]T, error) {
	answers, errs := make([]T, len(nodes)), make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { errs[i] = lab.Ask(ctx, http.MethodPost, n, "/"+order, "", &answers[i]) })
	}
	group.Wait()
	return answers, errors.Join(errs...)
}
