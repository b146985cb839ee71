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
		Args:  oneDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := warn(cmd, args[0])
			if err != nil {
				return err
			}
			files, err := shim.SwapImports(args[0], write)
			for _, f := range files {
				fmt.Fprintln(cmd.OutOrStdout(), f)
			}
			if err == nil && write && host != nil && host.Vendored {
				fmt.Fprintln(cmd.ErrOrStderr(), "raftswap: the host has a vendor directory: after go mod tidy, run go mod vendor")
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the files; without it they are only listed")
	return cmd
}
