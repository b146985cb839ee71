// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/redisbench"
	"github.com/weftraft/weft/internal/lab"
)

func newRedis() *cobra.Command {
	var (
		bench benchFlags
		cfg   redisbench.Config
		quick bool
	)
	cmd := &cobra.Command{
		Use:   "redis",
		Short: "Compare kvdemo with redis-server, through the protocol of Redis",
		Long: "redis drives a cluster of kvdemo, and one redis-server with appendfsync always, in turn: with\n" +
			"redis-benchmark, and with the client and the workloads A to F of YCSB, which drive a cluster\n" +
			"of etcd as well. It needs Debian's redis-tools and redis-server; for YCSB Java, and what make\n" +
			"ycsb fetches; and for etcd what make etcd-released builds.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick {
				cfg.Rounds, cfg.Requests, cfg.YCSB.Time, cfg.YCSB.Records = 1, 200, time.Second, 1000
			}
			if err := errors.Join(within("nodes", 1, 9, cfg.Nodes), within("rounds", 1, 1000, cfg.Rounds), within("requests", 1, 10_000_000, cfg.Requests), checkYCSB(&cfg.YCSB),
				lab.Publishable(bench.report.out, cfg.Rounds)); err != nil {
				return err
			}
			return bench.run(cmd, func(kvdemo, dir string) (*lab.Section, error) {
				cfg.Kvdemo, cfg.Dir, cfg.Progress = kvdemo, dir, cmd.ErrOrStderr()
				rows, err := redisbench.Run(cmd.Context(), cfg)
				return redisbench.Report(cfg, rows), err
			})
		},
	}
	bench.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&cfg.Nodes, "nodes", 3, "of kvdemo, 1 to 9")
	flags.IntVar(&cfg.Rounds, "rounds", lab.LeastRounds, "how often both sides are measured")
	flags.IntVar(&cfg.Requests, "requests", 2000, "of redis-benchmark with one client; others get 10 or 40 times as many")
	addYCSB(flags, &cfg.YCSB)
	flags.StringVar(&cfg.Etcd, "etcd", ".cache/etcd-released/etcd", "the program of etcd that make etcd-released built; empty leaves etcd out")
	flags.BoolVar(&quick, "quick", false, "one short round")
	return cmd
}
