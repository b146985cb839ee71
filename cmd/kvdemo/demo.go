// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/demo"
	"github.com/weftraft/weft/cmd/kvdemo/internal/node"
)

func newDemo() *cobra.Command {
	var cfg demo.Config
	var tuning node.Config
	var leases bool
	cmd := &cobra.Command{
		Use:   "demo [DIRECTORY]",
		Short: "Replicate a directory's files on five nodes, kill some, and verify all replicas",
		Long: "demo starts nodes as processes on this machine, loads every file of a directory (default:\n" +
			"the source tree of the Go distribution), kills the leader's process and later a follower's\n" +
			"on the way, starts both again, and compares every file on every replica with the original. In\n" +
			"the end it reads at every node, with roster leases.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tuning.Leases = leases && tuning.Core == node.CoreWeft
			if err := errors.Join(cfg.Validate(), tuning.ValidateTuning()); err != nil {
				return fmt.Errorf("%w; %w", err, errUsage)
			}
			var err error
			if cfg.Files, err = demoFiles(args); err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program to start nodes with: %w", err)
			}
			cfg.Serve = []string{self, "serve"}
			cfg.Args = []string{
				"--core", tuning.Core,
				"--coding", tuning.Coding,
				"--coding-threshold", strconv.Itoa(tuning.CodingThreshold),
				"--egress", strconv.Itoa(tuning.Egress),
				"--tick", tuning.Tick.String(),
				"--heartbeat-ticks", strconv.Itoa(tuning.HeartbeatTicks),
				"--election-ticks", strconv.Itoa(tuning.ElectionTicks),
			}
			cfg.Codes = tuning.Core == node.CoreWeft && (tuning.Coding == node.CodingAuto || tuning.Coding == node.CodingOn)
			if cfg.Leases = tuning.Leases; cfg.Leases {
				cfg.Args = append(cfg.Args, "--leases")
			}
			cfg.Progress, cfg.Result = cmd.ErrOrStderr(), cmd.OutOrStdout()
			return demo.Run(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&cfg.Limit, "limit", 0, "load at most so many files, to 1073741824 (0: all)")
	flags.IntVar(&cfg.Nodes, "nodes", 5, fmt.Sprintf("number of nodes, %d to %d", demo.MinNodes, demo.MaxNodes))
	flags.IntVar(&cfg.Loaders, "loaders", 32, fmt.Sprintf("concurrent writers, 1 to %d", demo.MaxLoaders))
	flags.StringVar(&cfg.Data, "data", "", "empty directory for the nodes' data (default: a temporary one)")
	flags.BoolVar(&cfg.Keep, "keep", false, "leave the data there at the end")
	flags.BoolVar(&cfg.JSON, "json", false, "print the result as JSON")
	flags.StringVar(&cfg.Page, "serve", "", "serve a page to watch at host:port, of any free port unless said otherwise, and go on under a light load until interrupted")
	flags.Lookup("serve").NoOptDefVal = "127.0.0.1:0"
	flags.BoolVar(&cfg.Unprotected, "unprotected", false, "let --serve be an address that other machines reach: whoever does kills nodes")
	flags.BoolVar(&leases, "leases", true, "with --core weft, run the nodes with roster leases, and show in the end where reads are served; see serve --help")
	addTuning(cmd, &tuning)
	return cmd
}

// demoFiles returns the directory to load: the one given, or the sources of the
// Go distribution.
func demoFiles(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the Go distribution (go env GOROOT): %w; name a directory: kvdemo demo DIRECTORY", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}
