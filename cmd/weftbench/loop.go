// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/weftbench/internal/loop"
)

// newLoop takes flags of "kvdemo serve", under the same names, so that both programs can
// be started alike.
func newLoop() *cobra.Command {
	var (
		cfg     loop.Config
		peers   string
		withEOF bool
	)
	cmd := &cobra.Command{
		Use:   "loop",
		Short: "Run one node of the minimal loop on go.etcd.io/raft",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Peers, err = nodes.ParsePeers("peers", peers); err != nil {
				return err
			}
			if cfg.Peers[cfg.ID] == "" {
				return fmt.Errorf("--id: %d, want a member named in --peers", cfg.ID)
			}
			ctx := cmd.Context()
			if withEOF {
				ctx = nodes.UntilEOF(ctx, cmd.InOrStdin())
			}
			return loop.Run(ctx, cfg)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&cfg.ID, "id", 0, "this node, one of --peers")
	flags.Uint64("cluster", 1, "number of the cluster; not compared")
	flags.StringVar(&peers, "peers", "", "all members, id=host:port,...")
	flags.StringVar(&cfg.Listen, "listen", "", "where to listen for the others (default: this node's address in --peers)")
	flags.StringVar(&cfg.ClientListen, "client-listen", "", "where to listen for clients")
	flags.StringVar(&cfg.Data, "data", "", "directory of this node's data")
	flags.StringVar((*string)(&cfg.Disk), "stuck-disk", "", "a file that has the disk of --data hang or be slow, as that of kvdemo serve")
	flags.DurationVar(&cfg.Tick, "tick", 50*time.Millisecond, "the unit of the next two")
	flags.IntVar(&cfg.HeartbeatTicks, "heartbeat-ticks", 1, "ticks between heartbeats")
	flags.IntVar(&cfg.ElectionTicks, "election-ticks", 10, "ticks of silence before an election")
	flags.BoolVar(&withEOF, "exit-with-stdin", false, "stop when standard input ends")
	return cmd
}
