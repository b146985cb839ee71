// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
	"github.com/weftraft/weft/internal/lab"
)

// table is one of the tables of a simulated group.
type table interface {
	Run(ctx context.Context) (*lab.Section, error)
}

func newVirtual() *cobra.Command {
	var out outFlags
	tables := []*cobra.Command{newBytes(), newGossip(), newFailover(), newAway()}
	cmd := &cobra.Command{
		Use:   "virtual",
		Short: "Measure groups of cores over a simulated network: bytes, gossip, failover, away",
		Long: "virtual runs groups of real cores over a simulated network, in virtual time, with full copies and with\n" +
			"coded entries. Each table has a command with flags; without one all four run with the flags' defaults.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, t := range tables {
				t.SetContext(cmd.Context())
				if err := errors.Join(t.Flags().Set("out", out.out), t.RunE(t, nil)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.AddCommand(tables...)
	cmd.Flags().StringVar(&out.out, "out", "", "put the reports, in Markdown, into this file (default: standard output)")
	cmd.PreRunE = func(*cobra.Command, []string) error { return out.check() }
	return cmd
}

// groupFlags are those that tables have in common.
type groupFlags struct {
	*virtual.Group
	out outFlags
}

func (f *groupFlags) add(cmd *cobra.Command, voters []int) {
	f.out.add(cmd)
	cmd.Args = cobra.NoArgs
	flags := cmd.Flags()
	flags.IntSliceVar(&f.Voters, "voters", voters, "sizes of the groups, 3 to 15")
	flags.Uint64Var(&f.Seed, "seed", 1, "feeds the runs")
}

// addSize adds the flags of tables with one size of payloads.
func (f *groupFlags) addSize(cmd *cobra.Command, delay time.Duration) {
	flags := cmd.Flags()
	flags.IntVar(&f.Size, "size", 64<<10, "bytes of a payload, 9 to 67108864")
	flags.DurationVar(&f.Delay, "delay", delay, "of a message, in one direction, 1µs to 1s")
}

// addLoad adds the flag of tables with one load.
func (f *groupFlags) addLoad(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.Load, "load", 0.5, "the share of what full copies can do that clients ask for, 0.01 to 4")
}

func (f *groupFlags) check() error {
	return errors.Join(within("voters", 3, maxVoters, f.Voters...), within("size", 9, maxSize, f.Size), within("delay", time.Microsecond, time.Second, f.Delay))
}

func (f *groupFlags) run(cmd *cobra.Command, t table, sides []virtual.Side) error {
	f.Sides, f.Progress = sides, cmd.ErrOrStderr()
	s, err := t.Run(cmd.Context())
	return f.out.write(cmd, s, err)
}

func newBytes() *cobra.Command {
	cfg := virtual.Bytes{Models: virtual.Papers()}
	f := groupFlags{Group: &cfg.Group}
	var quick bool
	cmd := &cobra.Command{
		Use:   "bytes",
		Short: "Count bytes sent for a byte of payload, in virtual time",
		Long: "bytes runs groups of real cores over a simulated network, with no to f members failed, and\n" +
			"counts what the leader sends, and what all send, for a byte of committed payload.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick {
				cfg.Bytes, cfg.MinCalls, cfg.MaxCalls = cfg.Bytes/4, cfg.MinCalls/4, cfg.MaxCalls/4
			}
			if err := errors.Join(within("voters", 3, maxVoters, cfg.Voters...), within("sizes", 8, maxSize, cfg.Sizes...), within("learners", 0, 100, cfg.Learners),
				within("bytes", 0, 1<<40, cfg.Bytes), within("min", 1, 1<<30, cfg.MinCalls), within("max", 1, 1<<30, cfg.MaxCalls)); err != nil {
				return err
			}
			return f.run(cmd, &cfg, virtual.Sides())
		},
	}
	f.add(cmd, []int{3, 5, 7, 9})
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Sizes, "sizes", []int{4 << 10, 64 << 10, 1 << 20}, "bytes of a payload, 8 to 67108864")
	flags.IntVar(&cfg.Bytes, "bytes", 128<<20, "payload that a cell commits, within the bounds of --min and --max")
	flags.IntVar(&cfg.MinCalls, "min", 200, "proposals of a cell, at least; 1 or more")
	flags.IntVar(&cfg.MaxCalls, "max", 2000, "proposals of a cell, at most; 1 or more")
	flags.IntVar(&cfg.Learners, "learners", 0, "learners beside the voters of each group, to 100")
	flags.BoolVar(&quick, "quick", false, "a quarter of the proposals")
	return cmd
}

func newGossip() *cobra.Command {
	var cfg virtual.Gossip
	f := groupFlags{Group: &cfg.Group}
	cmd := &cobra.Command{
		Use:   "gossip",
		Short: "Measure when followers have what they know to be committed, in virtual time",
		Long: "gossip measures, for each follower and entry, how long it waits for the payload of what it\n" +
			"knows to be committed, and how stale it is: for eager and deferred gossip, idle and under load.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(f.check(), within("loads", 0, maxLoad, cfg.Loads...), within("time", time.Millisecond, 20*time.Second, cfg.Time),
				within("learners", 0, 100, cfg.Learners)); err != nil {
				return err
			}
			return f.run(cmd, &cfg, virtual.GossipSides())
		},
	}
	f.add(cmd, []int{5})
	f.addSize(cmd, time.Millisecond)
	flags := cmd.Flags()
	flags.Float64SliceVar(&cfg.Loads, "loads", []float64{0, 0.3, 0.7, 0.95, 2}, "shares of what full copies can do, to 4 (0: idle)")
	flags.DurationVar(&cfg.Time, "time", 2*time.Second, "of a row, in virtual time, 1ms to 20s")
	flags.IntVar(&cfg.Learners, "learners", 0, "learners beside the voters, to 100; the figures are the voters'")
	return cmd
}

func newFailover() *cobra.Command {
	var cfg virtual.Failover
	f := groupFlags{Group: &cfg.Group}
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Measure how long nothing commits after the leader is lost, in virtual time",
		Long: "failover kills leaders under load, at the same instants with full copies and with coded\n" +
			"entries, and measures how long it takes until something commits again. With --leases it does\n" +
			"so with roster leases off and on instead.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(f.check(), within("load", 0.01, maxLoad, cfg.Load), within("seeds", 1, 1<<20, cfg.Seeds)); err != nil {
				return err
			}
			sides := virtual.Sides()
			if cfg.Leases {
				sides = virtual.LeaseSides()
			}
			return f.run(cmd, &cfg, sides)
		},
	}
	f.add(cmd, []int{3, 5, 7})
	f.addSize(cmd, time.Millisecond)
	f.addLoad(cmd)
	flags := cmd.Flags()
	flags.IntVar(&cfg.Seeds, "seeds", 200, "leaders killed on each side, the first with --seed; 1 or more")
	flags.BoolVar(&cfg.Leases, "leases", false, "compare roster leases off and on")
	return cmd
}

func newAway() *cobra.Command {
	var cfg virtual.Away
	f := groupFlags{Group: &cfg.Group}
	cmd := &cobra.Command{
		Use:   "away",
		Short: "Measure what the loss and the return of a follower cost, in virtual time",
		Long: "away kills a follower under load, restarts it after some time, and measures what clients of\n" +
			"the leader see of that, with full copies and with coded entries.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(f.check(), within("load", 0.01, maxLoad, cfg.Load), within("away", time.Second, time.Minute, cfg.Away)); err != nil {
				return err
			}
			return f.run(cmd, &cfg, []virtual.Side{virtual.FullCopies(), virtual.Ours()})
		},
	}
	f.add(cmd, []int{3, 5, 7})
	f.addSize(cmd, 500*time.Microsecond)
	f.addLoad(cmd)
	cmd.Flags().DurationVar(&cfg.Away, "away", 5*time.Second, "how long the follower is away, in virtual time, 1s to 1m")
	return cmd
}
