// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostbench"
	"github.com/weftraft/weft/cmd/weftbench/internal/loop"
	"github.com/weftraft/weft/internal/lab"
)

// hostFlags are those of "weftbench host".
type hostFlags struct {
	benchFlags
	cfg   hostbench.Config
	sides []string
	quick bool
}

func newHost() *cobra.Command {
	var f hostFlags
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Compare Host on both cores with a minimal loop",
		Long: "host starts three clusters of three processes each and drives them in turn: kvdemo on\n" +
			"Weft's core (weft), kvdemo on upstream's library (upstream), and a minimal loop on\n" +
			"upstream's library (loop); or, with --sides, kvdemo with coded entries (coded) or roster leases (leases). It measures time, CPU, disk bytes, and the gap after the leader\n" +
			"is killed. Logs are synced before anything is acknowledged, on all sides.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.sides, "sides", []string{"weft", "upstream", "loop"}, "what to compare")
	flags.IntSliceVar(&f.cfg.Clients, "clients", []int{1, 16, 64}, "numbers of clients")
	f.cfg.Sizes = []int{16, 1 << 10, 64 << 10, 1 << 20}
	flags.Var((*sizes)(&f.cfg.Sizes), "sizes", "bytes of a value, such as 512 or 1KiB")
	flags.IntVar(&f.cfg.Rounds, "rounds", 12, "how often rows of 1 and 64 KiB are measured for each side, in turn; others half as often")
	flags.DurationVar(&f.cfg.Time, "time", time.Second, "of one measurement")
	flags.Float64Var(&f.cfg.Rate, "rate", 200, "calls a second of an open-loop row (0: none)")
	flags.BoolVar(&f.cfg.Reads, "reads", true, "measure linearizable reads as well")
	flags.IntVar(&f.cfg.Kills, "kills", 9, "leaders killed for each side")
	flags.IntVar(&f.cfg.DiskBytes, "disk-bytes", 256<<20, "payload to measure disk bytes with (0: do not)")
	flags.IntVar(&f.cfg.DiskSize, "disk-size", 64<<10, "bytes of a value there")
	flags.DurationVar(&f.cfg.Tick, "tick", 50*time.Millisecond, "of the nodes")
	flags.IntVar(&f.cfg.HeartbeatTicks, "heartbeat-ticks", 1, "of the nodes")
	flags.IntVar(&f.cfg.ElectionTicks, "election-ticks", 10, "of the nodes: the election timeout")
	flags.BoolVar(&f.quick, "quick", false, "one short round, few kills: about 90 seconds")
	return cmd
}

func (f *hostFlags) run(cmd *cobra.Command) error {
	if f.quick {
		f.cfg.Rounds, f.cfg.Time, f.cfg.Kills = 1, 700*time.Millisecond, 3
		f.cfg.DiskBytes = 64 << 20
	}
	if err := f.check(); err != nil {
		return err
	}
	return f.benchFlags.run(cmd, func(kvdemo, dir string) (_ *lab.Section, err error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		if f.cfg.Sides, err = choose(hostSides(kvdemo, self), f.sides); err != nil {
			return nil, err
		}
		f.cfg.Dir, f.cfg.Progress = dir, cmd.ErrOrStderr()
		return hostbench.Run(cmd.Context(), f.cfg)
	})
}

func (f *hostFlags) check() error {
	c := f.cfg
	return errors.Join(
		within("clients", 1, 1000, c.Clients...), within("sizes", 1, 4<<20, c.Sizes...), within("rounds", 1, 1000, c.Rounds), within("time", 100*time.Millisecond, time.Hour, c.Time),
		within("kills", 0, 10_000, c.Kills), within("rate", 0, 1e6, c.Rate), within("disk-bytes", 0, 1<<40, c.DiskBytes), within("disk-size", 1, 4<<20, c.DiskSize),
		within("tick", time.Millisecond, 10*time.Second, c.Tick), within("heartbeat-ticks", 1, 1000, c.HeartbeatTicks), within("election-ticks", c.HeartbeatTicks+1, 100_000, c.ElectionTicks),
		c.Publishable(f.report.out))
}

// hostSides are the implementations that there are.
func hostSides(kvdemo, self string) []hostbench.Side {
	return []hostbench.Side{
		{Name: "weft", About: "kvdemo: Host on Weft's core", Serve: []string{kvdemo, "serve"}, Args: []string{"--core", "weft", "--coding", "never"}},
		{Name: "coded", About: "kvdemo: Host on Weft's core, large entries coded", Serve: []string{kvdemo, "serve"}, Args: []string{"--core", "weft", "--coding", "on"}},
		{Name: "leases", About: "kvdemo: Host on Weft's core, all nodes responders of roster leases", Serve: []string{kvdemo, "serve"}, Args: []string{"--core", "weft", "--coding", "never", "--leases"}, Responders: true},
		{Name: "upstream", About: "kvdemo: Host on go.etcd.io/raft", Serve: []string{kvdemo, "serve"}, Args: []string{"--core", "upstream"}},
		{Name: "loop", About: "a minimal loop on go.etcd.io/raft", Serve: []string{self, "loop"}, Dialer: loop.Dialer},
	}
}

// choose returns the sides of some names.
func choose(all []hostbench.Side, names []string) (chosen []hostbench.Side, err error) {
	var known []string
	for _, s := range all {
		known = append(known, s.Name)
	}
	for n, name := range names {
		i := slices.Index(known, name)
		switch {
		case i < 0:
			return nil, fmt.Errorf("--sides: %q, want some of %s", strings.Join(names, ","), strings.Join(known, ", "))
		case slices.Contains(names[:n], name):
			return nil, fmt.Errorf("--sides: %q, want %s once", strings.Join(names, ","), name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
