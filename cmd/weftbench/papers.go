// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/papers"
	"github.com/weftraft/weft/internal/lab"
)

func newPapers() *cobra.Command {
	var (
		bench       papers.Bench
		nodes       programs
		figure, out string
		net, data   string
		list        bool
	)
	cmd := &cobra.Command{
		Use:   "papers",
		Short: "Run the figures of Crossword, FlexRaft, Bodega and Compartmentalized Consensus",
		Long: "papers has a row for each figure and table with results of four papers: what the paper printed, and what\n" +
			"Weft prints in the same setting, beside the sides of the paper, or why the row is not run. Rows run in\n" +
			"virtual time, and print the same every time; with --net real the rows that can run on this machine do,\n" +
			"most of them as processes of kvdemo on links of 100 Mbit/s, beside a simulation of the same.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := papers.Find(figure)
			if err != nil {
				return err
			}
			if net != "sim" && net != "real" {
				return fmt.Errorf("--net: %q, want sim or real", net)
			}
			if out != "" && (figure != "" && net == "sim" || list || bench.Short) {
				return fmt.Errorf("--out: the pages have all rows, each run whole; leave --figure (but with --net real), --list and --quick out")
			}
			if bench.Short {
				bench.Rounds = 1
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
			var measured []papers.Measured
			if net == "real" {
				if err := lab.Publishable(out, bench.Rounds); err != nil {
					return err
				}
				beside := slices.ContainsFunc(rows, func(r papers.Row) bool { return r.Real != nil && strings.Contains(r.Sides, "ZooKeeper") })
				if _, err := os.Stat(bench.ZooKeeper); beside && bench.ZooKeeper != "" && err != nil {
					return fmt.Errorf("--zookeeper: %w: apt-get install zookeeper brings it, and --zookeeper \"\" leaves its rows out", err)
				}
				measured, err = runReal(&bench, &nodes, data, out, rows)
			} else if measured, err = papers.Run(&bench, rows, false); err == nil && out != "" {
				err = papers.Write(out, measured, bench.Seed)
			}
			if err != nil || out != "" {
				return err
			}
			for _, m := range measured {
				if m.Result != nil || figure != "" {
					fmt.Fprintln(cmd.OutOrStdout(), m.Text(m.Result))
				}
			}
			return nil
		},
	}
	nodes.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&figure, "figure", "", "a row, such as crossword/6c, or a paper (default: all)")
	flags.BoolVar(&list, "list", false, "list the rows, and run nothing")
	flags.StringVar(&net, "net", "sim", "sim: virtual time; real: the rows that can run on this machine")
	flags.StringVar(&out, "out", "", "write papers.md, data/papers.md and the pictures into this directory; with --net real, the rows that run into data/papers-real.md")
	flags.StringVar(&bench.Etcd, "etcd", ".cache/etcd-released/etcd", "with --net real: the program of etcd that make etcd-released built")
	flags.StringVar(&bench.ZooKeeper, "zookeeper", "/usr/share/java/zookeeper.jar", "with --net real: the jar of Debian's package zookeeper")
	flags.BoolVar(&bench.Short, "quick", false, "a fraction of each run, one round, to look at")
	flags.IntVar(&bench.Rounds, "rounds", lab.LeastRounds, "with --net real: how often each load is measured for each side, in turn")
	flags.StringVar(&data, "data", "", "with --net real: directory for the nodes' data (default: a temporary one)")
	flags.Uint64Var(&bench.Seed, "seed", 1, "feeds the runs")
	return cmd
}

// runReal runs rows as processes. Each row is on the page when it has run: the next one may fail, an hour later.
func runReal(bench *papers.Bench, nodes *programs, data, out string, rows []papers.Row) (measured []papers.Measured, err error) {
	err = nodes.inData(data, func(kvdemo, dir string) error {
		bench.Kvdemo, bench.Dir = kvdemo, dir
		for _, r := range rows {
			m, err := papers.Run(bench, []papers.Row{r}, true)
			if err == nil && out != "" {
				err = papers.WriteReal(out, m)
			}
			if err != nil {
				return err
			}
			measured = append(measured, m...)
		}
		return nil
	})
	return measured, err
}
