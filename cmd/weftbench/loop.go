// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/loop"
)

// newLoop takes flags of "kvdemo serve", under the same names, so that both programs can
// be started alike. It does not compare --cluster.
func newLoop() *cobra.Command {
	var (
		node nodeFlags
		cfg  loop.Config
	)
	cmd := &cobra.Command{
		Use:   "loop",
		Short: "Run one node of the minimal loop on go.etcd.io/raft",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, err := node.parse(cmd)
			if err != nil {
				return err
			}
			cfg.ID, cfg.Peers, cfg.ClientListen, cfg.Data = node.cfg.ID, node.cfg.Peers, node.cfg.ClientListen, node.cfg.Data
			return loop.Run(ctx, cfg)
		},
	}
	node.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&cfg.Listen, "listen", "", "where to listen for the others (default: this node's address in --peers)")
	flags.StringVar((*string)(&cfg.Disk), "stuck-disk", "", "a file that has the disk of --data hang or be slow, as that of kvdemo serve")
	flags.DurationVar(&cfg.Tick, "tick", 50*time.Millisecond, "the unit of the next two")
	flags.IntVar(&cfg.HeartbeatTicks, "heartbeat-ticks", 1, "ticks between heartbeats")
	flags.IntVar(&cfg.ElectionTicks, "election-ticks", 10, "ticks of silence before an election")
	return cmd
}
