// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command raftswap brings Weft to hosts that are written for upstream's Raft
// library.
//
//	raftswap shim DIR      write a module that is upstream by name and Weft by content
//	raftswap imports DIR   show (or, with -w, make) the import swap in a host's sources
//
// docs/adopt.md says which hosts each way is for. Both commands read the go.mod of the
// host around DIR, and warn if the host's version of the library has another API than Weft.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/internal/shim"
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

// warn says on standard error what stands in the way of Weft in the host whose
// module dir is in, and returns the host; nil if there is none.
func warn(cmd *cobra.Command, dir string) (*shim.Host, error) {
	host, err := shim.FindHost(dir)
	if note := host.Note(); note != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "raftswap: %s\n", note)
	}
	return host, err
}

// oneDirectory wants one argument, and shows which.
func oneDirectory(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments, want one: %s", len(args), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
	return nil
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
