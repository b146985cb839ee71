// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
)

// nodeFlags are those of all nodes of benchmarks.
type nodeFlags struct {
	cfg     hostnode.Config
	peers   string
	withEOF bool
}

func (f *nodeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Uint64Var(&f.cfg.ID, "id", 0, "this node, one of --peers")
	flags.Uint64Var(&f.cfg.Cluster, "cluster", 1, "number of the cluster")
	flags.StringVar(&f.peers, "peers", "", "all members, id=host:port,...")
	flags.StringVar(&f.cfg.ClientListen, "client-listen", "", "where to listen for orders")
	flags.StringVar(&f.cfg.Data, "data", "", "directory of this node's data")
	flags.BoolVar(&f.withEOF, "exit-with-stdin", false, "stop when standard input ends")
}

// parse reads the flags, and returns the context of the node's run.
func (f *nodeFlags) parse(cmd *cobra.Command) (ctx context.Context, err error) {
	if f.cfg.Peers, err = nodes.ParsePeers("peers", f.peers); err != nil {
		return nil, err
	}
	if f.cfg.Peers[f.cfg.ID] == "" {
		return nil, fmt.Errorf("--id: %d, want a member named in --peers", f.cfg.ID)
	}
	if ctx = cmd.Context(); f.withEOF {
		ctx = nodes.UntilEOF(ctx, cmd.InOrStdin())
	}
	return ctx, nil
}

// newHostNode is a node of "weftbench reads --real" and of "weftbench costs".
func newHostNode() *cobra.Command {
	var (
		node    nodeFlags
		members string
	)
	cmd := &cobra.Command{
		Use:    "hostnode",
		Short:  "Run one node of those whose reads and costs are measured",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, err := node.parse(cmd)
			if err == nil && members != "" {
				node.cfg.Members, err = nodes.ParsePeers("gateway-of", members)
			}
			if err != nil {
				return err
			}
			return hostnode.Run(ctx, node.cfg)
		},
	}
	node.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&node.cfg.Leases, "leases", false, "roster leases, with all voters as responders")
	flags.IntVar(&node.cfg.BatchBytes, "batch-bytes", 0, "bytes of commands that share an entry (default: 256 KiB)")
	flags.BoolVar(&node.cfg.Shorten, "shorten", false, "shorten the log, as nodes do whose state is durable; the node cannot start again")
	flags.StringVar(&members, "gateway-of", "", "be a gateway of these members, id=host:port,...")
	return cmd
}
