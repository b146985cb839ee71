// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/killsbench"
	"github.com/weftraft/weft/internal/lab"
)

func newKills() *cobra.Command {
	var (
		bench benchFlags
		cfg   killsbench.Config
	)
	cmd := &cobra.Command{
		Use:   "kills",
		Short: "Kill leaders with leases off and on, and have responders fail",
		Long: "kills starts two clusters of kvdemo processes, one with roster leases, kills their leaders in turns, and\n" +
			"measures how long it takes until a write is acknowledged. It kills more of them under reads at all other\n" +
			"nodes, and measures which share is answered, and how fast, by each policy. Then it kills and stops responders, slows\n" +
			"them down, cuts them off in one direction and has their disks be stuck, and measures how often and how\n" +
			"long writes wait for them, and which reads are late.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(within("nodes", 3, 9, cfg.Nodes), within("kills", 0, 10_000, cfg.Kills), within("reads", 0, 10_000, cfg.Reads), within("faults", 0, 1000, cfg.Faults),
				within("tick", 10*time.Millisecond, time.Second, cfg.Tick), within("election-ticks", 5, 100, cfg.ElectionTicks), cfg.Publishable(bench.report.out)); err != nil {
				return err
			}
			return bench.run(cmd, func(kvdemo, dir string) (*lab.Section, error) {
				cfg.Kvdemo, cfg.Dir, cfg.Progress = kvdemo, dir, cmd.ErrOrStderr()
				results, err := killsbench.Run(cmd.Context(), cfg)
				return killsbench.Report(cfg, results), err
			})
		},
	}
	bench.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&cfg.Nodes, "nodes", 3, "of each cluster, 3 to 9")
	flags.IntVar(&cfg.Kills, "kills", 200, "leaders killed on each side, 0 to 10000")
	flags.IntVar(&cfg.Reads, "reads", 20, "leaders killed on each side under reads, 0 to 10000")
	flags.IntVar(&cfg.Faults, "faults", 5, "failures of responders in each way, 0 to 1000")
	flags.DurationVar(&cfg.Tick, "tick", 50*time.Millisecond, "of the nodes, 10ms to 1s")
	flags.IntVar(&cfg.ElectionTicks, "election-ticks", 10, "of the nodes: the election timeout, 5 to 100")
	return cmd
}
