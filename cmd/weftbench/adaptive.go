// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
)

func newAdaptive() *cobra.Command {
	var o adaptive.Options
	var out outFlags
	cmd := &cobra.Command{
		Use:   "adaptive",
		Short: "Compare the adaptive policy with fixed levels, in virtual time",
		Long: "adaptive simulates a leader and its followers on 19 networks, four of which have processors that\n" +
			"take time for messages and for coding, with payloads of 8 B to 4 MB, in closed and open loops,\n" +
			"and compares for each the adaptive policy, the published chooser, full copies and every other\n" +
			"level with the level that was best in hindsight. Then it stops a follower under load, and\n" +
			"changes the network. The cluster is a small model of the protocol;\n" +
			"with --cores it is real cores, on fewer cells. The same flags find the same.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := within("nodes", 3, 11, o.Nodes...); err != nil {
				return err
			}
			report, err := adaptive.Run(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return out.write(cmd, report.Section(), nil)
		},
	}
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntSliceVar(&o.Nodes, "nodes", []int{3, 5, 7, 9}, "sizes of groups, 3 to 11")
	flags.BoolVar(&o.Cores, "cores", false, "real cores instead of the model (slow)")
	flags.BoolVar(&o.Quick, "quick", false, "fewer cells and shorter runs")
	flags.Uint64Var(&o.Seed, "seed", 1, "of networks and clients")
	return cmd
}
