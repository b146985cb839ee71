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

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/kvdemo/internal/logs"
	"github.com/weftraft/weft/cmd/kvdemo/internal/node"
)

func newGateway() *cobra.Command {
	var cfg node.Config
	var peers, passwordFile, logFormat, logLevel string
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
			"    --tls-cert gateway-101.pem --tls-key gateway-101-key.pem --tls-ca ca.pem",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var errs []error
			if peers != "" {
				var err error
				cfg.Peers, err = nodes.ParsePeers("peers", peers)
				errs = append(errs, err)
			}
			if passwordFile != "" {
				var err error
				cfg.RespPassword, err = readPassword(passwordFile)
				errs = append(errs, err)
			}
			log, level, err := logs.New(cmd.ErrOrStderr(), logFormat, logLevel)
			cfg.Log, cfg.LogLevel = log, level
			if err := errors.Join(append(errs, err, cfg.ValidateGateway())...); err != nil {
				return fmt.Errorf("%w; %w", err, errUsage)
			}
			signal.Ignore(syscall.SIGHUP)
			return node.RunGateway(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&cfg.ID, "id", 0, "this gateway's id, 1 or more, which no node has")
	flags.Uint64Var(&cfg.Cluster, "cluster", 1, "id of the cluster, that of the nodes")
	flags.StringVar(&peers, "peers", "", "nodes of the cluster, id=host:port,...; the others are learned from these")
	flags.StringVar(&cfg.Listen, "listen", "", "where to listen for nodes")
	flags.StringVar(&cfg.Advertise, "advertise", "", "where nodes reach the gateway (default: --listen)")
	flags.StringVar(&cfg.Zone, "zone", "", "where this gateway stands, such as a data centre: its results come from a node there, if one is no leader (default: not said)")
	flags.StringVar(&cfg.ClientListen, "client-listen", defaultClientAddress, "where to listen for clients")
	flags.StringVar(&cfg.RespListen, "resp", "", "where to listen for clients of Redis (default: nowhere); with certificates, such clients need TLS, too")
	flags.StringVar(&passwordFile, "resp-password-file", "", "file with the password that clients of --resp give (default: none is wanted)")
	flags.StringVar(&cfg.HTTPListen, "http-listen", "", "where to serve /metrics, /livez and /readyz over HTTP (default: nowhere)")
	flags.BoolVar(&cfg.Pprof, "pprof", false, "serve profiles of the process at --http-listen, too, under /debug/pprof/")
	addTraces(flags, &cfg)
	addTLS(cmd, &cfg.TLS, "nodes and clients need certificates of the same authority then", false)
	flags.BoolVar(&cfg.Unprotected, "unprotected", false, "without certificates, listen also where other machines come in: whoever does reads and writes")
	flags.DurationVar(&cfg.Tick, "tick", 50*time.Millisecond, fmt.Sprintf("the gateway's clock, %v to %v; a home that is silent for 10 ticks is left", node.MinTick, node.MaxTick))
	flags.StringVar(&logFormat, "log-format", logs.Console, "of the log on standard error: console or json")
	flags.StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	return cmd
}
