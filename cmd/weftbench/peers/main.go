// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/internal/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{Use: "peers", Short: "Measure Weft beside other Raft libraries for Go", SilenceUsage: true}
	root.AddCommand(serveCommand(), benchCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		os.Exit(1) // cobra has printed it
	}
}

// serveCommand takes flags of "kvdemo serve", as far as [lab.Serve] sets them.
func serveCommand() *cobra.Command {
	var s settings
	var name, members, orders string
	cmd := &cobra.Command{
		Use: "serve", Short: "Run one node", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			i := slices.IndexFunc(sides, func(s side) bool { return s.name == name })
			if i < 0 {
				return fmt.Errorf("--side: %q, want one of %s", name, names())
			}
			if s.Peers, err = nodes.ParsePeers("peers", members); err != nil {
				return err
			}
			if s.Peers[s.ID] == "" {
				return fmt.Errorf("--id: %d, want a member named in --peers", s.ID)
			}
			return serve(nodes.UntilEOF(cmd.Context(), cmd.InOrStdin()), sides[i], s, orders)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "side", "weft", "the library: "+names())
	f.Uint64Var(&s.ID, "id", 0, "this node, one of --peers")
	f.Uint64Var(&s.Cluster, "cluster", 1, "number of the cluster")
	f.StringVar(&members, "peers", "", "all members, id=host:port,...")
	f.StringVar(&orders, "client-listen", "", "where to listen for orders, over HTTP")
	f.StringVar(&s.Data, "data", "", "directory of this node's data")
	f.DurationVar(&s.Tick, "tick", 50*time.Millisecond, "of the clock: a heartbeat each, an election after ten")
	f.Bool("exit-with-stdin", true, "stop when standard input ends, always")
	return cmd
}

func names() string {
	var all []string
	for _, s := range sides {
		all = append(all, s.name)
	}
	return strings.Join(all, ", ")
}

func benchCommand() *cobra.Command {
	var c bench
	var out, data string
	var asJSON, quick bool
	cmd := &cobra.Command{
		Use: "bench", Short: "Put the same load on all sides, in turns", Args: cobra.NoArgs,
		Long: "bench starts a cluster of processes of each library, and puts the same loads on them in turns: by clients behind\n" +
			"gRPC, and by clients in the leader's process. Before the next load every acknowledged command must be applied at all nodes.",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if quick {
				c.Rounds, c.Time, c.Nodes = 1, 500*time.Millisecond, []int{3}
				c.Inside, c.Outside = []string{"1024x64"}, []string{"65536x16"}
			}
			if err := lab.Publishable(out, c.Rounds); err != nil {
				return err
			}
			if data == "" {
				if data, err = os.MkdirTemp("", "peers-"); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
			}
			c.dir, c.progress = data, cmd.ErrOrStderr()
			r, err := c.run(cmd.Context())
			if err != nil {
				return err
			}
			return r.section().Write(cmd.OutOrStdout(), out, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.Sides, "sides", strings.Split(names(), ", "), "what to compare; the first is what the others are compared with")
	f.IntSliceVar(&c.Nodes, "nodes", []int{3, 5}, "sizes of clusters, 1 to 9")
	f.StringSliceVar(&c.Outside, "outside", []string{
		"16x1", "16x16", "16x64", "1024x1", "1024x16", "1024x64", "65536x1", "65536x16", "65536x64", "1048576x1", "1048576x16",
	}, "loads by gRPC: bytes of a value, x, and clients; all clients call the leader")
	f.StringSliceVar(&c.Inside, "inside", []string{
		"16x1", "16x64", "16x512", "16x4096", "1024x1", "1024x64", "1024x512", "1024x4096",
	}, "loads in the leader's process")
	f.IntVar(&c.Rounds, "rounds", lab.LeastRounds, fmt.Sprintf("how often each load is put on each side; 1 or more, with --out %d or more", lab.LeastRounds))
	f.DurationVar(&c.Time, "time", 1500*time.Millisecond, "of one measurement, 100ms or more")
	f.StringVar(&out, "out", "", "put the report, in Markdown, into this file (default: standard output)")
	f.StringVar(&data, "data", "", "directory for the nodes' data (default: a temporary one)")
	f.BoolVar(&asJSON, "json", false, "print what was measured as JSON")
	f.BoolVar(&quick, "quick", false, "one short round of two loads, three nodes: under a minute")
	return cmd
}
