// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/codingbench"
	"github.com/weftraft/weft/internal/lab"
)

func newCoding() *cobra.Command {
	var (
		nodes programs
		cfg   codingbench.Config
		out   outFlags
		data  string
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
				cfg.Nodes, cfg.Clients, cfg.Rounds, cfg.Time = cfg.Nodes[:1], []int{16}, 1, 700*time.Millisecond
			}
			if err := lab.Publishable(out.out, cfg.Rounds); err != nil {
				return err
			}
			return nodes.inData(data, func(kvdemo, dir string) error {
				cfg.Kvdemo, cfg.Dir, cfg.Progress = kvdemo, dir, cmd.ErrOrStderr()
				cells, err := codingbench.Run(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				return codingbench.Report(cfg, cells).Write(cmd.OutOrStdout(), out.out, out.json)
			})
		},
	}
	nodes.add(cmd)
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Nodes, "nodes", []int{3, 5}, "sizes of clusters, 3 to 9")
	flags.IntSliceVar(&cfg.Egress, "egress", []int{0, 125e6, 12.5e6}, "bytes a second that a node sends at most, 1024 or more (0: no bound)")
	cfg.Sizes = []int{128, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20}
	flags.Var((*sizes)(&cfg.Sizes), "sizes", "bytes of a value, such as 512 or 1KiB, to 4MiB")
	flags.IntSliceVar(&cfg.Clients, "clients", []int{1, 16, 64}, "numbers of clients, 1 to 1000")
	flags.IntVar(&cfg.Rounds, "rounds", lab.LeastRounds, "how often each load is measured for each side, in turn; 1 or more")
	flags.DurationVar(&cfg.Time, "time", 1300*time.Millisecond, "of one measurement, 100ms or more")
	flags.BoolVar(&quick, "quick", false, "one short round of one size of cluster")
	flags.StringVar(&data, "data", "", "directory for the nodes' data (default: a temporary one)")
	return cmd
}
