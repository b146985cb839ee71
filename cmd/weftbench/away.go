// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/awaybench"
	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
)

func newAway() *cobra.Command {
	var (
		cfg awaybench.Config
		out outFlags
	)
	cmd := &cobra.Command{
		Use:   "away",
		Short: "Measure what the loss and the return of a follower cost, in virtual time",
		Long: "away kills a follower under load, restarts it after some time, and measures what clients of\n" +
			"the leader see of that, with full copies and with coded entries.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Sides = []virtual.Side{virtual.FullCopies(), virtual.Ours()}
			cfg.Progress = cmd.ErrOrStderr()
			if err := errors.Join(within("voters", 3, maxVoters, cfg.Voters...), within("size", 8, maxSize, cfg.Size), within("load", 0.01, maxLoad, cfg.Load),
				within("away", time.Second, time.Minute, cfg.Away), within("delay", time.Microsecond, time.Second, cfg.Delay)); err != nil {
				return err
			}
			rows, err := awaybench.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return awaybench.Report(cfg, rows).Write(cmd.OutOrStdout(), out.out, out.json)
		},
	}
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Voters, "voters", []int{3, 5, 7}, "sizes of the groups, 3 to 15")
	flags.IntVar(&cfg.Size, "size", 64<<10, "bytes of a payload, 8 to 67108864")
	flags.Float64Var(&cfg.Load, "load", 0.5, "the share of what full copies can do that clients ask for, 0.01 to 4")
	flags.DurationVar(&cfg.Away, "away", 5*time.Second, "how long the follower is away, in virtual time, 1s to 1m")
	flags.DurationVar(&cfg.Delay, "delay", 500*time.Microsecond, "of a message, in one direction, 1µs to 1s")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "feeds the runs")
	return cmd
}
