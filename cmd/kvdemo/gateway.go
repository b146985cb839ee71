// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/node"
)

func newGateway() *cobra.Command {
	var f entranceFlags
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Serve clients without data: batch their writes, and ask nodes the rest",
		Long: "gateway serves clients of a cluster and has no data. It takes the work of connections and calls\n" +
			"off the nodes: writes of all its clients go to the leader in batches, and a node that follows\n" +
			"sends the results and answers reads. Any number of gateways may come and go; give each an id\n" +
			"that no node has, and the same one again after a restart. Clients name gateways in --endpoints\n" +
			"like nodes. Verbs for operators want a node.",
		Example: "  kvdemo gateway --id 101 --peers 1=10.0.0.1:7200,2=10.0.0.2:7200,3=10.0.0.3:7200 \\\n" +
			"    --listen 10.0.0.9:7200 --client-listen 10.0.0.9:7300 \\\n" +
			"    --tls-cert node-101.pem --tls-key node-101-key.pem --tls-ca ca.pem",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.read(cmd.ErrOrStderr())
			if err := errors.Join(err, cfg.ValidateGateway()); err != nil {
				return fmt.Errorf("%w; %w", err, errUsage)
			}
			signal.Ignore(syscall.SIGHUP)
			return node.RunGateway(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.Uint64Var(&f.cfg.ID, "id", 0, "this gateway's id, 1 or more, which no node has")
	flags.Uint64Var(&f.cfg.Cluster, "cluster", 1, "id of the cluster, that of the nodes")
	flags.StringVar(&f.peers, "peers", "", "nodes of the cluster, id=host:port,...; the others are learned from these")
	flags.StringVar(&f.cfg.Listen, "listen", "", "where to listen for nodes")
	flags.StringVar(&f.cfg.Advertise, "advertise", "", "where nodes reach the gateway (default: --listen)")
	flags.StringVar(&f.cfg.Zone, "zone", "", "where this gateway stands, such as a data centre, in at most 64 bytes: its results come from a node there, if one is no leader (default: not said)")
	flags.StringVar(&f.cfg.HTTPListen, "http-listen", "", "where to serve /metrics, /livez and /readyz over HTTP (default: nowhere)")
	addTLS(cmd, &f.cfg.TLS, "nodes and clients need certificates of the same authority then", false)
	flags.DurationVar(&f.cfg.Tick, "tick", 50*time.Millisecond, fmt.Sprintf("the gateway's clock, %v to %v, as at the nodes", node.MinTick, node.MaxTick))
	flags.IntVar(&f.cfg.ElectionTicks, "election-ticks", 10, fmt.Sprintf("ticks of silence after which a home is left, 2 to %d, as at the nodes", node.MaxElectionTicks))
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	return cmd
}
