// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command raftswap brings Weft to hosts that are written for upstream's Raft
// library.
//
//	raftswap shim DIR      write a module that is upstream by name and Weft by content
//	raftswap imports DIR   show (or, with -w, make) the import swap in a host's sources
//
// docs/adopt.md says which of the two suits whom.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "raftswap: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "raftswap",
		Short:         "Bring Weft to hosts that are written for go.etcd.io/raft/v3",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(shimCommand(), importsCommand())
	return root
}
