// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/readsbench"
)

func newReads() *cobra.Command {
	var (
		cfg   readsbench.Config
		out   outFlags
		quick bool
		real  realFlags
	)
	cmd := &cobra.Command{
		Use:   "reads",
		Short: "Compare ways to serve linearizable reads, in virtual time",
		Long: "reads runs five nodes in three networks, with clients near each, and compares ReadIndex, leader\n" +
			"leases, quorum reads, Quorum Leases, Bodega as published and Weft's roster leases: ops a second\n" +
			"by the share of writes, latency by site, messages for a read, what a write in flight does to\n" +
			"reads of its key, numbers of responders, and the tuner under a load that moves. Nodes are real\n" +
			"cores. All answers are checked for being linearizable. With --real it runs kvdemo processes\n" +
			"instead, on links with delays, and measures what a read takes of processors.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if real.on {
				return real.run(cmd, out)
			}
			if err := errors.Join(within("time", 300*time.Millisecond, time.Minute, cfg.Time), within("clients", 1, 1000, cfg.Clients),
				within("value", 1, maxSize, cfg.Value), within("keys", 1, 1<<20, cfg.Keys...), within("writes", 0, 1, cfg.Writes...)); err != nil {
				return err
			}
			if quick {
				cfg.Quick()
			}
			cfg.Progress = cmd.ErrOrStderr()
			s, err := readsbench.Run(cmd.Context(), cfg)
			return out.write(cmd, s, err)
		},
	}
	out.add(cmd)
	real.add(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&cfg.Time, "time", 3*time.Second, "of a cell, in virtual time, 300ms to 1m; a tenth where links are short")
	flags.IntVar(&cfg.Clients, "clients", 10, "near each node, 1 to 1000")
	flags.IntVar(&cfg.Value, "value", 128, "bytes of a value, 1 to 67108864")
	flags.IntSliceVar(&cfg.Keys, "keys", []int{1000, 10}, "numbers of keys, 1 to 1048576")
	flags.Float64SliceVar(&cfg.Writes, "writes", []float64{0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5}, "shares of writes, 0 to 1")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "feeds the runs")
	flags.BoolVar(&quick, "quick", false, "fewer cells and shorter runs (a few seconds)")
	return cmd
}

func newScaleReads() *cobra.Command {
	var (
		cfg   readsbench.ScaleConfig
		out   outFlags
		quick bool
	)
	cmd := &cobra.Command{
		Use:   "scale-reads",
		Short: "Measure how reads scale with replicas and learners, in virtual time",
		Long: "scale-reads keeps the processors of 1 to 20 nodes busy with reads, and measures how many are\n" +
			"served, and what each node adds to the work of the leader. What a read and a message take of a\n" +
			"processor is given; nodes are real cores.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(within("nodes", 1, 40, cfg.Nodes...), within("voters", 1, maxVoters, cfg.Voters), within("clients", 1, 1000, cfg.Clients),
				within("read", time.Microsecond, time.Second, cfg.Read), within("message", time.Microsecond, time.Second, cfg.Message),
				within("write-rate", 0, 100_000, cfg.Writes), within("time", 10*time.Millisecond, time.Minute, cfg.Time)); err != nil {
				return err
			}
			if quick {
				cfg.Nodes, cfg.Time = []int{3, 7}, cfg.Time/4
			}
			cfg.Progress = cmd.ErrOrStderr()
			rows, err := cfg.Scale(cmd.Context())
			return out.write(cmd, readsbench.ScaleReport(cfg, rows), err)
		},
	}
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Nodes, "nodes", []int{2, 3, 5, 7, 10, 15, 20}, "numbers of nodes beside 1, to 40")
	flags.IntVar(&cfg.Voters, "voters", 5, "how many nodes vote at most, 1 to 15; the rest are learners")
	flags.IntVar(&cfg.Clients, "clients", 16, "near each node, 1 to 1000")
	flags.DurationVar(&cfg.Read, "read", 20*time.Microsecond, "what a read takes of a processor, 1µs to 1s")
	flags.DurationVar(&cfg.Message, "message", 5*time.Microsecond, "what a message takes of one, sent or received, 1µs to 1s")
	flags.IntVar(&cfg.Writes, "write-rate", 50, "writes a second, to 100000")
	flags.DurationVar(&cfg.Time, "time", 200*time.Millisecond, "of a row, in virtual time, 10ms to 1m")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "feeds the runs")
	flags.BoolVar(&quick, "quick", false, "few nodes, and short runs")
	return cmd
}

func newResponders() *cobra.Command {
	var (
		cfg readsbench.FailConfig
		out outFlags
	)
	cmd := &cobra.Command{
		Use:   "responders",
		Short: "Measure how long a responder that fails holds writes up, in virtual time",
		Long: "responders has a responder of roster leases die, stand still, become slow, deaf or mute, or lose\n" +
			"its disk, under load, and measures how long writes wait for it, and which reads at the other\n" +
			"nodes are late.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(within("voters", 3, maxVoters, cfg.Voters...), within("round-trip", time.Millisecond, time.Second, cfg.Trip),
				within("fail", 10*time.Millisecond, time.Minute, cfg.Fail), within("lease", 10*time.Millisecond, time.Minute, cfg.Lease),
				within("seeds", 1, 1<<20, cfg.Seeds)); err != nil {
				return err
			}
			cfg.Progress = cmd.ErrOrStderr()
			rows, err := cfg.Failing(cmd.Context())
			return out.write(cmd, readsbench.FailReport(cfg, rows), err)
		},
	}
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Voters, "voters", []int{3, 5, 7}, "sizes of the groups, 3 to 15")
	flags.DurationVar(&cfg.Trip, "round-trip", 20*time.Millisecond, "between two nodes, 1ms to 1s")
	flags.DurationVar(&cfg.Fail, "fail", 500*time.Millisecond, "how long a responder may keep a write waiting, 10ms to 1m")
	flags.DurationVar(&cfg.Lease, "lease", time.Second, "how long a lease lasts, 10ms to 1m")
	flags.IntVar(&cfg.Seeds, "seeds", 10, "failures of a kind, 1 or more")
	flags.Uint64Var(&cfg.First, "first", 1, "the first seed")
	return cmd
}
