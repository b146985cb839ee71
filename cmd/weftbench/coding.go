// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/codingbench"
	"github.com/weftraft/weft/internal/lab"
)

func newCoding() *cobra.Command {
	var (
		bench benchFlags
		cfg   codingbench.Config
		quick bool
	)
	cmd := &cobra.Command{
		Use:   "coding",
		Short: "Compare coded replication with full copies on real processes",
		Long: "coding starts two clusters of kvdemo processes, one with coding off and one with it on, and drives\n" +
			"them in turn: sizes of values, numbers of clients, and bounds on what a node sends.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick {
				cfg.Nodes, cfg.Clients, cfg.Rounds, cfg.Warm, cfg.Time = cfg.Nodes[:1], []int{16}, 1, 300*time.Millisecond, 700*time.Millisecond
			}
			bounds := slices.DeleteFunc(slices.Clone(cfg.Egress), func(bytes int) bool { return bytes == 0 })
			if err := errors.Join(within("nodes", 3, 9, cfg.Nodes...), within("egress", 1<<10, 1<<40, bounds...), within("sizes", 1, 4<<20, cfg.Sizes...), within("clients", 1, 1000, cfg.Clients...),
				within("rounds", 1, 1000, cfg.Rounds), within("warm", 100*time.Millisecond, time.Hour, cfg.Warm), within("time", 100*time.Millisecond, time.Hour, cfg.Time), lab.Publishable(bench.report.out, cfg.Rounds)); err != nil {
				return err
			}
			return bench.run(cmd, func(kvdemo, dir string) (*lab.Section, error) {
				cfg.Kvdemo, cfg.Dir, cfg.Progress = kvdemo, dir, cmd.ErrOrStderr()
				cells, err := codingbench.Run(cmd.Context(), cfg)
				return codingbench.Report(cfg, cells), err
			})
		},
	}
	bench.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Nodes, "nodes", []int{3, 5}, "sizes of clusters, 3 to 9")
	flags.IntSliceVar(&cfg.Egress, "egress", []int{0, 125e6, 12.5e6}, "bytes a second that a node sends at most, 1024 or more (0: no bound)")
	cfg.Sizes = []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
	flags.Var((*sizes)(&cfg.Sizes), "sizes", "bytes of a value, such as 512 or 1KiB, to 4MiB")
	flags.IntSliceVar(&cfg.Clients, "clients", []int{1, 16, 64}, "numbers of clients, 1 to 1000")
	flags.IntVar(&cfg.Rounds, "rounds", lab.LeastRounds, "how often each load is measured for each side, in turn; 1 to 1000")
	flags.DurationVar(&cfg.Warm, "warm", time.Second, "for which a side takes a load before it is measured, 100ms to 1h")
	flags.DurationVar(&cfg.Time, "time", 1300*time.Millisecond, "of one measurement, 100ms to 1h")
	flags.BoolVar(&cfg.Noise, "noise", false, "coding is off on both sides, which shows what differs by chance")
	flags.BoolVar(&quick, "quick", false, "one short round of one size of cluster")
	return cmd
}
