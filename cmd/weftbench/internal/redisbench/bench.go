// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package redisbench measures kvdemo beside redis-server, through the protocol of Redis:
// with redis-benchmark, and with YCSB's own client and workloads, which drive a cluster of
// etcd as well. All are real processes on this machine, driven in turn in each round.
package redisbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/weftbench/internal/ycsb"
	"github.com/weftraft/weft/internal/lab"
)

// Config says what to measure.
type Config struct {
	Kvdemo string // the program
	Nodes  int    // of the cluster
	Rounds int    // each measures both sides once
	// Requests of one run of redis-benchmark with one client; those with more clients
	// or a pipeline get some times as many.
	Requests int
	YCSB     ycsb.Client
	Etcd     string // the program of a release of etcd; empty: etcd is left out
	Dir      string // for data
	Progress io.Writer
}

// The sides.
const (
	sideKvdemo = "kvdemo"
	sideRedis  = "redis-server"
	sideEtcd   = "etcd"
)

// Row is one measurement.
type Row struct {
	Side  string
	Round int
	Tool  string // redis-benchmark or YCSB
	Test  string // a command, or a workload
	// Clients and Pipeline are how many connections there are, and how many commands
	// each sends at once.
	Clients, Pipeline int
	PerSecond         float64
	// P50 and P99 are milliseconds: with YCSB of reads or scans. Writes have their own.
	P50, P99, WriteP50, WriteP99 float64
	Failed                       int64
}

// Run measures all rows.
func Run(ctx context.Context, cfg Config) (rows []Row, err error) {
	for _, tool := range []string{"redis-benchmark", "redis-server"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s is not installed: apt-get install redis-tools redis-server", tool)
		}
	}
	if err := cfg.YCSB.Check(); err != nil {
		return nil, err
	}
	sides := []string{sideKvdemo, sideRedis}
	if cfg.Etcd != "" && cfg.YCSB.Dir != "" {
		if _, err := exec.LookPath(cfg.Etcd); err != nil {
			return nil, fmt.Errorf("--etcd %s: %w: run make etcd-released, or leave etcd out with --etcd \"\"", cfg.Etcd, err)
		}
		sides = append(sides, sideEtcd)
	}
	err = lab.Turns(cfg.Rounds, len(sides), func(round, i int) error {
		running, err := start(ctx, cfg, sides[i])
		if err != nil {
			return fmt.Errorf("%s: %w", sides[i], err)
		}
		s := &side{sides[i], running}
		got, err := s.measure(ctx, cfg, round)
		rows = append(rows, got...)
		return errors.Join(err, s.Stop())
	})
	return rows, err
}

// side is what is measured.
type side struct {
	name string
	*ycsb.Side
}

// start starts a side without data.
func start(ctx context.Context, cfg Config, name string) (s *ycsb.Side, err error) {
	dir := filepath.Join(cfg.Dir, fmt.Sprintf("%s-%d", name, time.Now().UnixNano()))
	switch name {
	case sideKvdemo:
		return ycsb.StartKvdemo(ctx, cfg.Kvdemo, cluster.Config{Name: name, Nodes: cfg.Nodes, Dir: dir})
	case sideEtcd: // with etcd's own settings
		return ycsb.StartEtcd(ctx, cluster.EtcdConfig{Name: name, Nodes: cfg.Nodes, Dir: dir, Etcd: lab.Etcd{Program: cfg.Etcd, Args: []string{"--log-level", "error"}}})
	}
	c, err := lab.StartCluster(ctx, lab.ClusterConfig{Name: name, Program: redisServer{}, Nodes: 1, Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := ycsb.Ready(ctx, c, c.Clients()[0]); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &ycsb.Side{Target: ycsb.Target{Binding: ycsb.Redis, Addresses: c.Clients()}, Stop: func() error { return c.Terminate(time.Minute) }}, nil
}

// redisServer is one redis-server, which leads.
type redisServer struct{}

// Command implements [lab.Program]: each write is synced before the answer.
func (redisServer) Command(c *lab.Cluster, n *lab.Node) []string {
	_, port, _ := strings.Cut(n.Client, ":")
	return []string{
		"redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", c.Dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
		"--daemonize", "no",
	}
}

// Status implements [lab.Program].
func (redisServer) Status(context.Context, *lab.Node) (lab.Status, error) {
	return lab.Status{ID: 1, Leader: 1}, nil
}

// Transfer implements [lab.Program].
func (redisServer) Transfer(context.Context, *lab.Node, *lab.Node) error { return nil }

// shapes are numbers of clients, and of commands that each sends at once, with the
// factor for the number of requests.
var shapes = []struct{ clients, pipeline, factor int }{{1, 1, 1}, {50, 1, 10}, {50, 16, 40}}

// measure measures a side once.
func (s *side) measure(ctx context.Context, cfg Config, round int) (rows []Row, err error) {
	if s.name != sideEtcd {
		if rows, err = s.benchmark(ctx, cfg, round); err != nil {
			return rows, err
		}
	}
	if cfg.YCSB.Dir == "" {
		return rows, nil
	}
	got, err := cfg.YCSB.Run(ctx, s.Target, func(workload string) {
		fmt.Fprintf(cfg.Progress, "round %d of %d: %s, YCSB workload %s\n", round+1, cfg.Rounds, s.name, workload)
	})
	for _, r := range got {
		rows = append(rows, Row{
			Side: s.name, Round: round, Tool: "YCSB", Test: r.Workload, Clients: cfg.YCSB.Clients, Pipeline: 1,
			PerSecond: r.PerSecond, P50: r.P50, P99: r.P99, WriteP50: r.WriteP50, WriteP99: r.WriteP99, Failed: r.Failed,
		})
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	return rows, err
}

// benchmark runs redis-benchmark.
func (s *side) benchmark(ctx context.Context, cfg Config, round int) (rows []Row, err error) {
	for _, shape := range shapes {
		fmt.Fprintf(cfg.Progress, "round %d of %d: %s, redis-benchmark, %d clients, pipelines of %d\n", round+1, cfg.Rounds, s.name, shape.clients, shape.pipeline)
		host, port, _ := strings.Cut(s.Addresses[0], ":")
		out, err := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-t", "set,get,incr,mset", "-d", "100", "-r", "100000", "--csv",
			"-n", strconv.Itoa(cfg.Requests*shape.factor), "-c", strconv.Itoa(shape.clients), "-P", strconv.Itoa(shape.pipeline)).CombinedOutput()
		if err != nil {
			return rows, fmt.Errorf("redis-benchmark at %s: %w: %s", s.name, err, out)
		}
		tests, err := parseCSV(string(out))
		if err != nil {
			return rows, fmt.Errorf("redis-benchmark at %s: %w", s.name, err)
		}
		for _, r := range tests {
			r.Side, r.Round, r.Clients, r.Pipeline = s.name, round, shape.clients, shape.pipeline
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// parseCSV reads what redis-benchmark prints with --csv.
func parseCSV(text string) (rows []Row, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, `"`) || strings.HasPrefix(line, `"test"`) {
			continue
		}
		// Names have no quotes; some have commas in parentheses.
		cells := strings.Split(strings.Trim(line, `"`), `","`)
		if len(cells) < 7 {
			return nil, fmt.Errorf("%q, want a test with its numbers", line)
		}
		numbers := make([]float64, len(cells))
		for i, cell := range cells[1:] {
			if numbers[i+1], err = strconv.ParseFloat(cell, 64); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
		}
		// test, rps, average, least, p50, p95, p99, most
		rows = append(rows, Row{Tool: "redis-benchmark", Test: cells[0], PerSecond: numbers[1], P50: numbers[4], P99: numbers[6]})
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("it printed no numbers: %q", text[:min(len(text), 500)])
	}
	return rows, nil
}
