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
			if err := errors.Join(atLeast("voters", 3, cfg.Voters...), atLeast("size", 8, cfg.Size), atLeast("load", 0.01, cfg.Load),
				atLeast("away", time.Second, cfg.Away), atLeast("delay", time.Microsecond, cfg.Delay)); err != nil {
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
	flags.IntSliceVar(&cfg.Voters, "voters", []int{3, 5, 7}, "sizes of the groups")
	flags.IntVar(&cfg.Size, "size", 64<<10, "bytes of a payload")
	flags.Float64Var(&cfg.Load, "load", 0.5, "the share of what full copies can do that clients ask for")
	flags.DurationVar(&cfg.Away, "away", 5*time.Second, "how long the follower is away, in virtual time")
	flags.DurationVar(&cfg.Delay, "delay", 500*time.Microsecond, "of a message, in one direction")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "feeds the runs")
	return cmd
}
