// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/papers"
)

func newPapers() *cobra.Command {
	var (
		bench       papers.Bench
		figure, out string
		net         string
		list        bool
	)
	cmd := &cobra.Command{
		Use:   "papers",
		Short: "Run the figures of Crossword, FlexRaft, Bodega and Compartmentalized Consensus",
		Long: "papers has a row for each figure and table with results of four papers: what the paper printed, and what\n" +
			"Weft prints in the same setting, beside the sides of the paper, or why the row is not run. Rows run in\n" +
			"virtual time, and print the same every time; with --net real the rows that time this machine run instead.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := papers.Find(figure)
			if err != nil {
				return err
			}
			if net != "sim" && net != "real" {
				return fmt.Errorf("--net: %q, want sim or real", net)
			}
			if out != "" && (figure != "" || net == "real" || list) {
				return fmt.Errorf("--out: the pages have all rows in virtual time; leave --figure, --list and --net real out")
			}
			if list {
				for _, r := range rows {
					fmt.Fprintf(cmd.OutOrStdout(), "%-18s %-20s %s\n", r.ID(), r.Status(), r.Title)
				}
				return nil
			}
			bench.Ctx, bench.Progress = cmd.Context(), cmd.ErrOrStderr()
			if out != "" {
				if _, err := os.Stat(out); err != nil {
					return fmt.Errorf("--out: %w", err)
				}
			}
			measured, err := papers.Run(&bench, rows, net == "real")
			if err != nil {
				return err
			}
			if out != "" {
				return papers.Write(out, measured, bench.Seed)
			}
			for _, m := range measured {
				if m.Result != nil || figure != "" {
					fmt.Fprintln(cmd.OutOrStdout(), m.Text(m.Result))
				}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&figure, "figure", "", "a row, such as crossword/6c, or a paper (default: all)")
	flags.BoolVar(&list, "list", false, "list the rows, and run nothing")
	flags.StringVar(&net, "net", "sim", "sim: virtual time; real: the rows that time this machine")
	flags.StringVar(&out, "out", "", "write papers.md, data/papers.md and the pictures into this directory")
	flags.Uint64Var(&bench.Seed, "seed", 1, "feeds the runs")
	return cmd
}
