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
			"entries, and measures how long it takes until something commits again. With --leases it does\n" +
			"so with roster leases off and on instead.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Sides = virtual.Sides()
			if cfg.Leases {
				cfg.Sides = virtual.LeaseSides()
			}
			cfg.Progress = cmd.ErrOrStderr()
			if err := errors.Join(within("voters", 3, maxVoters, cfg.Voters...), within("size", 8, maxSize, cfg.Size),
				within("load", 0.01, maxLoad, cfg.Load), within("seeds", 1, 1<<20, cfg.Seeds),
				within("delay", time.Microsecond, time.Second, cfg.Delay)); err != nil {
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
	flags.IntSliceVar(&cfg.Voters, "voters", []int{3, 5, 7}, "sizes of the groups, 3 to 15")
	flags.IntVar(&cfg.Size, "size", 64<<10, "bytes of a payload, 8 to 67108864")
	flags.Float64Var(&cfg.Load, "load", 0.5, "the share of what full copies can do that clients ask for, 0.01 to 4")
	flags.DurationVar(&cfg.Delay, "delay", time.Millisecond, "of a message, in one direction, 1µs to 1s")
	flags.IntVar(&cfg.Seeds, "seeds", 200, "leaders killed on each side, 1 or more")
	flags.Uint64Var(&cfg.First, "first", 1, "the first seed")
	flags.BoolVar(&cfg.Leases, "leases", false, "compare roster leases off and on")
	return cmd
}

// Bounds of what is simulated in memory.
const (
	maxVoters = 15
	maxSize   = 64 << 20
	maxLoad   = 4.0
)

// within refuses values of a flag that are too small or too large.
func within[T int | float64 | time.Duration](flag string, least, most T, values ...T) error {
	for _, v := range values {
		if least <= v && v <= most { // which NaN is not
			continue
		}
		return fmt.Errorf("--%s: %v, want %v to %v", flag, v, least, most)
	}
	return nil
}
