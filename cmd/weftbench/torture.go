// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/torture"
)

func newTorture() *cobra.Command {
	var (
		p        programs
		cfg      torture.Config
		core     string
		coding   string
		largest  sizes
		data     string
		fullDisk bool
		notes    bool
	)
	cmd := &cobra.Command{
		Use:   "torture",
		Short: "Kill nodes under load, again and again, and compare",
		Long: "torture runs kvdemo nodes, writes known values through all of them, and kills processes with\n" +
			"SIGKILL: the leader half of the time, else a follower, two nodes or all. In the end nothing that\n" +
			"was acknowledged may be lost, nothing that was refused be there, no replica differ, and the\n" +
			"history of contended keys must be linearizable. With --full-disk it fills the nodes' disks\n" +
			"instead, which are small ones that it mounts. With --leases every node answers reads by roster\n" +
			"leases, and half of the time processes are stopped for longer than leases last (SIGSTOP). The data stays if something is wrong.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(largest) != 1 {
				return fmt.Errorf("--max-value: %v, want one size", &largest)
			}
			cfg.MaxValue = largest[0]
			if err := errors.Join(within("loops", 1, 1_000_000, cfg.Loops), within("nodes", 3, 9, cfg.Nodes), within("gateways", 0, 9, cfg.Gateways), within("max-value", 8, maxSize, cfg.MaxValue),
				oneOf("core", core, "weft", "upstream"), oneOf("coding", coding, "auto", "on", "off")); err != nil {
				return err
			}
			if cfg.Leases && core != "weft" || notes && !cfg.Leases {
				return errors.New("--leases: want --core weft, as upstream has none; --lease-notes: want --leases as well")
			}
			kvdemo, err := p.find()
			if err != nil {
				return err
			}
			dir, remove, err := tempDir(data)
			if err != nil {
				return err
			}
			cfg.Gateway = []string{kvdemo, "gateway"}
			cfg.Serve, cfg.Args = []string{kvdemo, "serve"}, []string{"--core", core, "--coding", coding}
			if cfg.Leases {
				cfg.Args = append(cfg.Args, "--leases", "--lease-notes="+strconv.FormatBool(notes))
			}
			cfg.Dir, cfg.Progress = dir, cmd.ErrOrStderr()
			fmt.Fprintf(cfg.Progress, "torture: core %s, coding %s, seed %d, values up to %v, data in %s\n", core, coding, cfg.Seed, &largest, dir)
			run := torture.Run
			if fullDisk {
				run = torture.FullDisk
			}
			sum, err := run(cmd.Context(), cfg)
			if errors.Is(err, torture.ErrSkipped) {
				fmt.Fprintln(cmd.OutOrStdout(), err)
				return remove()
			}
			if err != nil {
				return fmt.Errorf("%w; the data is in %s", err, dir)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), sum)
			return errors.Join(err, remove())
		},
	}
	p.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&cfg.Loops, "loops", 50, "how often processes are killed, 1 to 1000000")
	flags.IntVar(&cfg.Nodes, "nodes", 3, "of the cluster, 3 to 9")
	flags.IntVar(&cfg.Gateways, "gateways", 0, "through which clients write and read, too, and which are killed and stopped, 0 to 9")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "of whom is killed, when, and what is written")
	flags.StringVar(&core, "core", "weft", "the Raft library: weft or upstream")
	flags.StringVar(&coding, "coding", "auto", "send each member what it needs of large entries: on, off, or auto, which is on with --core weft")
	flags.BoolVar(&cfg.Leases, "leases", false, "run the nodes with roster leases, read at any of them, and stop processes as well")
	flags.BoolVar(&notes, "lease-notes", false, "with --leases, early accept notes as well")
	largest = sizes{8 << 20}
	flags.Var(&largest, "max-value", "size of the largest values, such as 8MiB, to 64MiB")
	flags.BoolVar(&fullDisk, "full-disk", false, "fill the nodes' disks instead of killing them (as root, on Linux)")
	flags.StringVar(&data, "data", "", "directory for the nodes' data (default: a temporary one)")
	return cmd
}
