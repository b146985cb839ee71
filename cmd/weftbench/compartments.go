// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/compartments"
	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/internal/lab"
)

func newCompartments() *cobra.Command {
	cfg := compartments.Default()
	var (
		out   outFlags
		quick bool
		real  costs.Config
		on    bool
		data  string
	)
	cmd := &cobra.Command{
		Use:   "compartments",
		Short: "Add one compartment after the other, in virtual time",
		Long: "compartments runs deployments of real replicas, from one leader with all its clients to gateways, groups and\n" +
			"readers, one compartment more at a time, with and without batches: commands a second, latency, how busy each\n" +
			"processor is, and where the bottleneck is. What work takes of processors is fitted to real processes\n" +
			"(weftbench costs).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if on {
				return runShares(cmd, real, data, out)
			}
			if err := errors.Join(within("clients", 1, 100_000, cfg.Clients...), within("readers", 0, 100, cfg.Readers...), within("value", 0, maxSize, cfg.Value),
				within("delay", time.Microsecond, time.Second, cfg.Delay), within("sync", 0, time.Second, cfg.Sync), within("time", 10*time.Millisecond, time.Minute, cfg.Time)); err != nil {
				return err
			}
			if quick {
				cfg.Clients, cfg.Readers, cfg.Time, cfg.Ways = []int{1, 100}, []int{0, 1, 4}, cfg.Time/5, cfg.Ways[:1]
			}
			cfg.Progress = cmd.ErrOrStderr()
			results, err := cfg.Run(cmd.Context())
			return out.write(cmd, compartments.Report(cfg, results), err)
		},
	}
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Clients, "clients", cfg.Clients, "numbers of clients, 1 to 100000")
	flags.IntSliceVar(&cfg.Readers, "readers", cfg.Readers, "numbers of readers, 0 to 100, beginning with 0 and 1")
	flags.IntVar(&cfg.Value, "value", cfg.Value, "bytes of a command")
	flags.DurationVar(&cfg.Delay, "delay", cfg.Delay, "of a frame, in one direction, 1µs to 1s")
	flags.DurationVar(&cfg.Sync, "sync", cfg.Sync, "until a write to a log is durable, to 1s")
	flags.DurationVar(&cfg.Time, "time", cfg.Time, "that is measured of each run, in virtual time, 10ms to 1m")
	flags.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "feeds the runs")
	flags.BoolVar(&quick, "quick", false, "few clients and readers, and short runs")
	flags.BoolVar(&on, "real", false, "real processes instead, with gateways and without; with the flags --real-... and --data alone")
	flags.IntVar(&real.Rounds, "real-rounds", lab.LeastRounds, "with --real: of all loads, 1 to 100")
	flags.DurationVar(&real.Time, "real-time", time.Second, "with --real: of each load, 50ms to 1m")
	flags.IntSliceVar(&real.Sizes, "real-sizes", []int{16, 1 << 10, 64 << 10}, "with --real: bytes of a command, 3 to 1048576")
	flags.IntSliceVar(&real.Clients, "real-clients", []int{64, 512}, "with --real: numbers of clients, 1 to 1024")
	flags.StringVar(&data, "data", "", "with --real: directory for the nodes' data (default: a temporary one)")
	return cmd
}

// runShares measures what calls cost real processes.
func runShares(cmd *cobra.Command, cfg costs.Config, data string, out outFlags) (err error) {
	if err := errors.Join(within("real-rounds", 1, 100, cfg.Rounds), within("real-time", 50*time.Millisecond, time.Minute, cfg.Time), lab.Publishable(out.out, cfg.Rounds),
		within("real-sizes", 3, 1<<20, cfg.Sizes...), within("real-clients", 1, 1024, cfg.Clients...)); err != nil {
		return err
	}
	if cfg.Self, err = os.Executable(); err != nil {
		return err
	}
	return inDir(data, func(dir string) error {
		cfg.Dir, cfg.Progress = dir, cmd.ErrOrStderr()
		shares, err := costs.Shares(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		s, err := compartments.SharesReport(cmd.Context(), cfg, shares)
		return out.write(cmd, s, err)
	})
}
