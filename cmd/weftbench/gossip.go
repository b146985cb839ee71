// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/gossipbench"
	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
)

func newGossip() *cobra.Command {
	var (
		cfg gossipbench.Config
		out outFlags
	)
	cmd := &cobra.Command{
		Use:   "gossip",
		Short: "Measure when followers have what they know to be committed, in virtual time",
		Long: "gossip measures, for each follower and entry, how long it waits for the payload of what it\n" +
			"knows to be committed, and how stale it is: for eager and deferred gossip, idle and under load.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Sides = virtual.GossipSides()
			cfg.Progress = cmd.ErrOrStderr()
			if err := errors.Join(within("voters", 3, maxVoters, cfg.Voters), within("size", 9, maxSize, cfg.Size), within("loads", 0, maxLoad, cfg.Loads...),
				within("time", time.Millisecond, 20*time.Second, cfg.Time), within("delay", time.Microsecond, time.Second, cfg.Delay)); err != nil {
				return err
			}
			rows, err := gossipbench.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return gossipbench.Report(cfg, rows).Write(cmd.OutOrStdout(), out.out, out.json)
		},
	}
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&cfg.Voters, "voters", 5, "size of the group, 3 to 15")
	flags.IntVar(&cfg.Size, "size", 64<<10, "bytes of a payload, 9 to 67108864")
	flags.Float64SliceVar(&cfg.Loads, "loads", []float64{0, 0.3, 0.7, 0.95, 2}, "shares of what full copies can do, to 4 (0: idle)")
	flags.DurationVar(&cfg.Time, "time", 2*time.Second, "of a row, in virtual time, 1ms to 20s")
	flags.DurationVar(&cfg.Delay, "delay", time.Millisecond, "of a message, in one direction, 1µs to 1s")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "feeds the runs")
	return cmd
}
