// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
)

// newHostNode is a node of "weftbench reads --real" and of "weftbench costs".
func newHostNode() *cobra.Command {
	var (
		cfg     hostnode.Config
		peers   string
		members string
		withEOF bool
	)
	cmd := &cobra.Command{
		Use:    "hostnode",
		Short:  "Run one node of those whose reads and costs are measured",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Peers, err = nodes.ParsePeers("peers", peers); err != nil {
				return err
			}
			if cfg.Peers[cfg.ID] == "" {
				return fmt.Errorf("--id: %d, want a member named in --peers", cfg.ID)
			}
			if members != "" {
				if cfg.Members, err = nodes.ParsePeers("gateway-of", members); err != nil {
					return err
				}
			}
			ctx := cmd.Context()
			if withEOF {
				ctx = nodes.UntilEOF(ctx, cmd.InOrStdin())
			}
			return hostnode.Run(ctx, cfg)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&cfg.ID, "id", 0, "this node, one of --peers")
	flags.Uint64Var(&cfg.Cluster, "cluster", 1, "number of the cluster")
	flags.StringVar(&peers, "peers", "", "all members, id=host:port,...")
	flags.StringVar(&cfg.ClientListen, "client-listen", "", "where to listen for orders")
	flags.StringVar(&cfg.Data, "data", "", "directory of this node's data")
	flags.BoolVar(&cfg.Leases, "leases", false, "roster leases, with all voters as responders")
	flags.IntVar(&cfg.BatchBytes, "batch-bytes", 0, "bytes of commands that share an entry (default: 256 KiB)")
	flags.BoolVar(&cfg.Shorten, "shorten", false, "shorten the log, as nodes do whose state is durable; the node cannot start again")
	flags.StringVar(&members, "gateway-of", "", "be a gateway of these members, id=host:port,...")
	flags.BoolVar(&withEOF, "exit-with-stdin", false, "stop when standard input ends")
	return cmd
}
