// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/bytesbench"
	"github.com/weftraft/weft/cmd/weftbench/internal/virtual"
)

// outFlags say where a report goes.
type outFlags struct {
	out  string
	json bool
}

func (f *outFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.out, "out", "", "put the report, in Markdown, into this file (default: standard output)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print what was measured as JSON")
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.check() }
}

// check finds out that a report cannot be written before there is one.
func (f *outFlags) check() error {
	if f.out == "" {
		return nil
	}
	file, err := os.OpenFile(f.out, os.O_RDWR, 0)
	if err == nil {
		return file.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Dir(f.out))
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

func newBytes() *cobra.Command {
	var (
		cfg   bytesbench.Config
		out   outFlags
		quick bool
	)
	cmd := &cobra.Command{
		Use:   "bytes",
		Short: "Count bytes sent for a byte of payload, in virtual time",
		Long: "bytes runs groups of real cores over a simulated network, with no to f members failed, and\n" +
			"counts what the leader sends, and what all send, for a byte of committed payload.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick {
				cfg.Bytes, cfg.MinCalls, cfg.MaxCalls = cfg.Bytes/4, cfg.MinCalls/4, cfg.MaxCalls/4
			}
			cfg.Sides, cfg.Models = virtual.Sides(), bytesbench.Papers()
			cfg.Progress = cmd.ErrOrStderr()
			cells, err := bytesbench.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return bytesbench.Report(cells).Write(cmd.OutOrStdout(), out.out, out.json)
		},
	}
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&cfg.Voters, "voters", []int{3, 5, 7, 9}, "sizes of the groups, 3 to 15")
	flags.IntSliceVar(&cfg.Sizes, "sizes", []int{4 << 10, 64 << 10, 1 << 20}, "bytes of a payload, 8 to 67108864")
	flags.IntVar(&cfg.Bytes, "bytes", 128<<20, "payload that a cell commits, within the bounds of --min and --max")
	flags.IntVar(&cfg.MinCalls, "min", 200, "proposals of a cell, at least; 1 or more")
	flags.IntVar(&cfg.MaxCalls, "max", 2000, "proposals of a cell, at most; 1 or more")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "feeds the runs")
	flags.BoolVar(&quick, "quick", false, "a quarter of the proposals")
	return cmd
}
