// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/compartments"
	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/internal/lab"
)

func newCosts() *cobra.Command {
	var (
		cfg  costs.Config
		out  outFlags
		data string
		code string
	)
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "Fit what work takes of a processor to real processes",
		Long: "costs runs three Hosts and three gateways, each a process of its own, under loads that differ in one thing at a time, and fits\n" +
			"what a frame, a message, an entry, a command, a call and a byte take of a processor to the processor time of\n" +
			"the processes. Other work on the machine does little harm: time on the clock does not count.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if code != "" && out.out == "" {
				return errors.New("--code: want --out too: the page has the costs of the code")
			}
			if err := errors.Join(lab.Publishable(out.out, cfg.Rounds), within("rounds", 1, 100, cfg.Rounds), within("time", 50*time.Millisecond, time.Minute, cfg.Time), within("sizes", 3, 1<<20, cfg.Sizes...), within("clients", 1, 1024, cfg.Clients...)); err != nil {
				return err
			}
			if cfg.Self, err = os.Executable(); err != nil {
				return err
			}
			return inDir(data, func(dir string) error {
				cfg.Dir, cfg.Progress = dir, cmd.ErrOrStderr()
				samples, err := costs.Measure(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				f := costs.Fit(costs.Sum(samples))
				fmt.Fprint(cfg.Progress, f.Costs.Source())
				beside, err := compartments.BesideReal(samples, f.Costs)
				if err != nil {
					return err
				}
				s := costs.Report(cfg, samples, f)
				s.Tables = append(s.Tables, beside)
				if err := s.Write(cmd.OutOrStdout(), out.out, out.json); err != nil || code == "" {
					return err
				}
				return os.WriteFile(code, []byte(f.Costs.Source()), 0o644)
			})
		},
	}
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&cfg.Rounds, "rounds", 5, "of all loads, 1 to 100; with --out 5 or more")
	flags.DurationVar(&cfg.Time, "time", 500*time.Millisecond, "of each load, 50ms to 1m")
	flags.IntSliceVar(&cfg.Sizes, "sizes", []int{16, 1 << 10, 16 << 10}, "bytes of a command, 3 to 1048576")
	flags.IntSliceVar(&cfg.Clients, "clients", []int{16, 128, 512}, "numbers of clients, 1 to 1024")
	flags.StringVar(&code, "code", "", "with --out: put the costs into this file too, cmd/weftbench/internal/costs/fitted.go")
	flags.StringVar(&data, "data", "", "directory for the nodes' data (default: a temporary one)")
	return cmd
}
