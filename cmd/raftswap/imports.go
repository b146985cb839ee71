// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/internal/shim"
)

func importsCommand() *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "imports DIR",
		Short: "Show, or with -w make, the import swap in the Go files under DIR",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := shim.SwapImports(args[0], write)
			for _, f := range files {
				fmt.Fprintln(cmd.OutOrStdout(), f)
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the files; without it they are only listed")
	return cmd
}
