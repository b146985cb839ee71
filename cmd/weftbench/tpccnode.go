// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/tpcc"
)

// newTPCCNode is a node of "weftbench papers --net real --figure crossword/14".
func newTPCCNode() *cobra.Command {
	var (
		node    nodeFlags
		setting string
	)
	cmd := &cobra.Command{
		Use:    "tpccnode",
		Short:  "Run one node of those that run TPC-C",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s tpcc.Setting
			if err := json.Unmarshal([]byte(setting), &s); err != nil {
				return fmt.Errorf("--setting: %q: %w", setting, err)
			}
			ctx, err := node.parse(cmd)
			if err != nil {
				return err
			}
			return tpcc.RunNode(ctx, node.cfg, s)
		},
	}
	node.add(cmd)
	cmd.Flags().StringVar(&setting, "setting", "", "the plan, and the side, as JSON")
	return cmd
}
