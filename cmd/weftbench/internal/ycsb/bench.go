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

	"github.com/redis/go-redis/v9"

	"github.com/weftraft/weft/cmd/weftbench/internal/cluster"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/ports"
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

// Validate returns an error that names every mistake, or nil.
func (b *Bench) Validate() error {
	var errs []error
	within := func(name string, most int, values ...int) {
		for _, v := range values {
			if v < 1 || v > most {
				errs = append(errs, fmt.Errorf("--%s: %d, want 1 to %d", name, v, most))
			}
		}
	}
	within("nodes", 9, b.Nodes)
	within("rounds", 1000, b.Rounds)
	within("records", 10_000_000, b.Records)
	within("clients", 10_000, b.Clients)
	within("values", 1<<20, b.Values...)
	if len(b.Values) == 0 || len(b.Delays) == 0 {
		errs = append(errs, errors.New("--values, --delays: want one or more"))
	}
	for _, d := range b.Delays {
		if d < 0 || d > time.Second {
			errs = append(errs, fmt.Errorf("--delays: %v, want 0s to 1s", d))
		}
	}
	if b.Time < time.Second {
		errs = append(errs, fmt.Errorf("--time: %v, want 1s or more", b.Time))
	}
	return errors.Join(errs...)
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

// side is a cluster that runs.
type side struct {
	Target
	stop func() error
}

// Run measures all rows.
func (b *Bench) Run(ctx context.Context) (rows []Row, err error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
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
	if err = errors.Join(err, s.stop()); err != nil {
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

func (b *Bench) start(ctx context.Context, name string, delay time.Duration) (*side, error) {
	b.clusters++
	dir := filepath.Join(b.Dir, fmt.Sprintf("cluster-%d", b.clusters))
	var links func(from, to int) time.Duration
	if delay > 0 {
		links = func(int, int) time.Duration { return delay }
	}
	switch name {
	case sideKvdemo:
		return b.startKvdemo(ctx, dir, links)
	case sideOnWeft:
		return b.startEtcd(ctx, name, dir, b.EtcdOnWeft, links, fmt.Sprintf("%s=%d", shim.CodingVariable, b.CodeFrom))
	}
	return b.startEtcd(ctx, name, dir, b.Etcd, links)
}

// startKvdemo starts a cluster, which has done its first write.
func (b *Bench) startKvdemo(ctx context.Context, dir string, links func(int, int) time.Duration) (*side, error) {
	addresses, err := ports.Free(b.Nodes)
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Config{
		Name: sideKvdemo, Nodes: b.Nodes, Dir: dir, Links: links,
		Serve: lab.Serve{
			Program: []string{b.Kvdemo, "serve"}, Args: []string{"--coding-threshold", fmt.Sprint(b.CodeFrom)},
			NodeArgs: func(id int) []string { return []string{"--resp", addresses[id-1]} },
		},
	})
	if err != nil {
		return nil, err
	}
	s := &side{Target{"RedisBinding", addresses}, func() error { return errors.Join(c.Stop(), c.Close()) }}
	client := redis.NewClient(&redis.Options{Addr: addresses[0], MaxRetries: -1})
	err = c.Cluster.Wait(ctx, "a first write", func(ctx context.Context) error { return client.Set(ctx, "ready", 1, 0).Err() })
	if err = errors.Join(err, client.Close()); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// quota is the bytes that a member of etcd stores: each version of a record counts.
const quota = 16 << 30

func (b *Bench) startEtcd(ctx context.Context, name, dir, program string, links func(int, int) time.Duration, env ...string) (*side, error) {
	c, err := cluster.StartEtcd(ctx, cluster.EtcdConfig{
		Name: name, Nodes: b.Nodes, Dir: dir, Links: links,
		Etcd: lab.Etcd{
			Program: program, Args: []string{"--log-level", "error", "--quota-backend-bytes", fmt.Sprint(quota)},
			Env: func(int) []string { return env },
		},
	})
	if err != nil {
		return nil, err
	}
	if _, _, err := c.Lead(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &side{Target{"EtcdBinding", c.Clients()}, func() (err error) {
		for _, n := range c.Nodes {
			err = errors.Join(err, n.Terminate(time.Minute))
		}
		return errors.Join(err, c.Close())
	}}, nil
}
