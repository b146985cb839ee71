// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/failoverbench"
	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
)

func newFailover() *cobra.Command {
	var (
		cfg failoverbench.Config
		out outFlags
	)
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Measure how long nothing commits after the leader is lost, in virtual time",
		Long: "failover kills leaders under load, at the same instants with full copies and with coded\n" +
			"entries, and measures how long it takes until something commits again.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Sides = virtual.Sides()
			cfg.Progress = cmd.ErrOrStderr()
			if err := errors.Join(atLeast("voters", 3, cfg.Voters...), atLeast("size", 8, cfg.Size),
				atLeast("load", 0.01, cfg.Load), atLeast("seeds", 1, cfg.Seeds), atLeast("delay", time.Microsecond, cfg.Delay)); err != nil {
				return err
			}
			rows, err := failoverbench.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return failoverbench.Report(cfg, rows).Write(cmd.OutOrStdout(), out.out, out.json)
		},
	}
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Voters, "voters", []int{3, 5, 7}, "sizes of the groups")
	flags.IntVar(&cfg.Size, "size", 64<<10, "bytes of a payload")
	flags.Float64Var(&cfg.Load, "load", 0.5, "the share of what full copies can do that clients ask for")
	flags.DurationVar(&cfg.Delay, "delay", time.Millisecond, "of a message, in one direction")
	flags.IntVar(&cfg.Seeds, "seeds", 200, "leaders killed on each side")
	flags.Uint64Var(&cfg.First, "first", 1, "the first seed")
	return cmd
}

// atLeast refuses values of a flag that are too small.
func atLeast[T int | float64 | time.Duration](flag string, least T, values ...T) error {
	for _, v := range values {
		if v < least {
			return fmt.Errorf("--%s: %v, want at least %v", flag, v, least)
		}
	}
	return nil
}
