// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/ycsb"
	"github.com/weftraft/weft/internal/lab"
)

func newYCSB() *cobra.Command {
	var (
		nodes programs
		b     ycsb.Bench
		quick bool
		data  string
		out   outFlags
	)
	cmd := &cobra.Command{
		Use:   "ycsb",
		Short: "Compare kvdemo and etcd on Weft with released etcd, by YCSB",
		Long: "ycsb drives clusters of kvdemo, of etcd on Weft and of released etcd, in turns, with YCSB's own client\n" +
			"and its workloads A to F: on a LAN and with delays between nodes, with small and large values. It needs\n" +
			"Java, what make ycsb fetches, and what make etcd-released and make etcd-on-weft build.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick {
				b.Rounds, b.Client.Time, b.Records = 1, 3*time.Second, 1000
			}
			if err := lab.Publishable(out.out, b.Rounds); err != nil {
				return err
			}
			return nodes.inData(data, func(kvdemo, dir string) error {
				b.Kvdemo, b.Dir, b.Progress = kvdemo, dir, cmd.ErrOrStderr()
				rows, err := b.Run(cmd.Context())
				if err != nil {
					return err
				}
				return b.Report(rows).Write(cmd.OutOrStdout(), out.out, out.json)
			})
		},
	}
	nodes.add(cmd)
	out.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&b.Nodes, "nodes", 3, "of each cluster, 1 to 9")
	flags.IntVar(&b.Rounds, "rounds", lab.LeastRounds, "how often each side is measured")
	flags.IntSliceVar(&b.Values, "values", []int{1 << 10, 64 << 10}, "bytes of a record")
	flags.DurationSliceVar(&b.Delays, "delays", []time.Duration{0, 15 * time.Millisecond}, "between two nodes, in one direction: a network each; 0s is a LAN")
	flags.IntVar(&b.CodeFrom, "coding-threshold", 4096, "bytes from which Weft codes")
	flags.IntVar(&b.Records, "records", 10_000, "records of 1 KB; there are as much fewer of larger ones, down to 1000")
	flags.IntVar(&b.Clients, "clients", 32, "threads of YCSB's client")
	flags.DurationVar(&b.Client.Time, "time", 10*time.Second, "of one workload, in whole seconds")
	flags.StringVar(&b.Client.Dir, "ycsb", ".cache/ycsb", "what make ycsb made")
	flags.StringVar(&b.Etcd, "etcd", ".cache/etcd-released/etcd", "the program of etcd that make etcd-released built")
	flags.StringVar(&b.EtcdOnWeft, "etcd-on-weft", ".cache/etcd-on-weft/etcd", "the program of etcd that make etcd-on-weft built")
	flags.BoolVar(&quick, "quick", false, "one short round")
	flags.StringVar(&data, "data", "", "directory for the data (default: a temporary one)")
	return cmd
}
