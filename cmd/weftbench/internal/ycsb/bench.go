// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ycsb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/shim"
)

// Bench says what to measure: clusters of kvdemo, of etcd on Weft, and of released etcd, in turns.
type Bench struct {
	Client            // Value is set for each run, and Records are those of 1 KB
	Kvdemo     string // the programs
	EtcdOnWeft string
	Etcd       string
	Nodes      int
	Rounds     int
	Values     []int           // bytes of records
	Delays     []time.Duration // between two nodes, in one direction; 0: a LAN
	CodeFrom   int             // bytes from which Weft codes
	Dir        string          // for data
	Progress   io.Writer
	clusters   int
}

// The sides.
const (
	sideKvdemo = "kvdemo"
	sideOnWeft = "etcd on Weft"
	sideEtcd   = "etcd"
)

var sideNames = []string{sideKvdemo, sideOnWeft, sideEtcd}

// Row is one measurement.
type Row struct {
	Side  string
	Delay time.Duration
	Value int
	Result
}

// Run measures all rows.
func (b *Bench) Run(ctx context.Context) (rows []Row, err error) {
	if b.Client.Dir == "" {
		return nil, errors.New("--ycsb: want what make ycsb made")
	}
	if err := b.Check(); err != nil {
		return nil, err
	}
	for flag, program := range map[string]string{"etcd": b.Etcd, "etcd-on-weft": b.EtcdOnWeft} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("--%s %s: %w: run make etcd-released etcd-on-weft", flag, program, err)
		}
	}
	for _, delay := range b.Delays {
		for _, value := range b.Values {
			err := lab.Turns(b.Rounds, len(sideNames), func(round, i int) error {
				got, err := b.measure(ctx, sideNames[i], round, delay, value)
				rows = append(rows, got...)
				return err
			})
			if err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

// records is the number of records of a run: there are fewer of those above 1 KB, though not below fewest.
func (b *Bench) records(value int) int {
	const fewest = 1000
	return max(b.Records<<10/max(value, 1<<10), min(b.Records, fewest))
}

// measure measures a side once, without data at first.
func (b *Bench) measure(ctx context.Context, name string, round int, delay time.Duration, value int) (rows []Row, err error) {
	s, err := b.start(ctx, name, delay)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c := b.Client
	c.Value, c.Records = value, b.records(value)
	got, err := c.Run(ctx, s.Target, func(workload string) {
		fmt.Fprintf(b.Progress, "%s, %s, round %d of %d: %s, workload %s\n", place(delay), lab.Bytes(value), round+1, b.Rounds, name, workload)
	})
	for _, r := range got {
		rows = append(rows, Row{name, delay, value, r})
	}
	if err = errors.Join(err, s.Stop()); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return rows, err
}

// place is a delay in words.
func place(delay time.Duration) string {
	if delay == 0 {
		return "LAN"
	}
	return fmt.Sprintf("WAN, %v one way", delay)
}

// quota is the bytes that a member of etcd stores: each version of a record counts.
const quota = 16 << 30

func (b *Bench) start(ctx context.Context, name string, delay time.Duration) (*Side, error) {
	b.clusters++
	dir := filepath.Join(b.Dir, fmt.Sprintf("cluster-%d", b.clusters))
	var links func(from, to int) time.Duration
	if delay > 0 {
		links = func(int, int) time.Duration { return delay }
	}
	if name == sideKvdemo {
		return StartKvdemo(ctx, b.Kvdemo, cluster.Config{Name: name, Nodes: b.Nodes, Dir: dir, Links: links, Serve: lab.Serve{Args: []string{"--coding-threshold", fmt.Sprint(b.CodeFrom)}}})
	}
	etcd := lab.Etcd{Program: b.Etcd, Args: []string{"--log-level", "error", "--quota-backend-bytes", fmt.Sprint(quota)}}
	if name == sideOnWeft {
		etcd.Program, etcd.Env = b.EtcdOnWeft, func(int) []string { return []string{fmt.Sprintf("%s=%d", shim.CodingVariable, b.CodeFrom)} }
	}
	return StartEtcd(ctx, cluster.EtcdConfig{Name: name, Nodes: b.Nodes, Dir: dir, Links: links, Etcd: etcd})
}
