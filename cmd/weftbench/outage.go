// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/outagebench"
	"github.com/weftraft/weft/internal/lab"
)

func newOutage() *cobra.Command {
	var (
		bench benchFlags
		cfg   outagebench.Config
	)
	size := sizes{64 << 10}
	cmd := &cobra.Command{
		Use:   "outage",
		Short: "Kill a follower of real processes under load, and bring it back",
		Long: "outage starts clusters of kvdemo processes, with coding off and on, kills a follower under load, starts\n" +
			"it again after a while, and measures what clients of the leader see until it has caught up.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(size) != 1 {
				return errors.New("--size: want one number of bytes, such as 64KiB")
			}
			cfg.Size = size[0]
			if err := errors.Join(within("nodes", 3, 9, cfg.Nodes...), within("egress", 1e6, 1e12, cfg.Egress), within("size", 1<<10, 4<<20, cfg.Size), within("load", 0, 1, cfg.Load...), within("rounds", 1, 1000, cfg.Rounds),
				within("away", time.Second, time.Hour, cfg.Away), within("before", time.Second, time.Hour, cfg.Before), within("retain", 0, 1<<50, cfg.Retain), lab.Publishable(bench.report.out, cfg.Rounds)); err != nil {
				return err
			}
			return bench.run(cmd, func(kvdemo, dir string) (*lab.Section, error) {
				cfg.Kvdemo, cfg.Dir, cfg.Progress = kvdemo, dir, cmd.ErrOrStderr()
				rows, err := outagebench.Run(cmd.Context(), cfg)
				return outagebench.Report(cfg, rows), err
			})
		},
	}
	bench.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Nodes, "nodes", []int{3}, "sizes of clusters, 3 to 9")
	flags.IntVar(&cfg.Egress, "egress", 12.5e6, "bytes a second that a node sends at most, 1000000 or more")
	flags.Var(&size, "size", "bytes of a value, such as 64KiB; 1KiB to 4MiB")
	flags.Float64SliceVar(&cfg.Load, "load", []float64{0.5}, "the share of what full copies can do that clients ask for, to 1 (0: a closed loop)")
	flags.IntVar(&cfg.Rounds, "rounds", lab.LeastRounds, "how often each load is put on each side, in turns; 1 to 1000")
	flags.DurationVar(&cfg.Away, "away", time.Minute, "how long the follower is away, 1s to 1h")
	flags.DurationVar(&cfg.Before, "before", 15*time.Second, "how long is measured with all nodes, 1s to 1h")
	flags.IntVar(&cfg.Retain, "retain", 0, "bytes of log that nodes keep; who missed more gets a snapshot (0: all that it can miss)")
	return cmd
}
