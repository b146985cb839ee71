// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weftraft/weft/cmd/weftbench/internal/ycsb"
	"github.com/weftraft/weft/internal/lab"
)

func newYCSB() *cobra.Command {
	var (
		bench benchFlags
		b     ycsb.Bench
		quick bool
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
			if err := errors.Join(within("nodes", 1, 9, b.Nodes), within("rounds", 1, 1000, b.Rounds), within("values", 1, 1<<20, b.Values...), within("delays", 0, time.Second, b.Delays...), checkYCSB(&b.Client),
				lab.Publishable(bench.report.out, b.Rounds)); err != nil {
				return err
			}
			return bench.run(cmd, func(kvdemo, dir string) (*lab.Section, error) {
				b.Kvdemo, b.Dir, b.Progress = kvdemo, dir, cmd.ErrOrStderr()
				rows, err := b.Run(cmd.Context())
				return b.Report(rows), err
			})
		},
	}
	bench.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&b.Nodes, "nodes", 3, "of each cluster, 1 to 9")
	flags.IntVar(&b.Rounds, "rounds", lab.LeastRounds, "how often each side is measured")
	flags.IntSliceVar(&b.Values, "values", []int{1 << 10, 64 << 10}, "bytes of a record")
	flags.DurationSliceVar(&b.Delays, "delays", []time.Duration{0, 15 * time.Millisecond}, "between two nodes, in one direction: a network each; 0s is a LAN")
	flags.IntVar(&b.CodeFrom, "coding-threshold", 4096, "bytes from which Weft codes")
	addYCSB(flags, &b.Client)
	flags.StringVar(&b.Etcd, "etcd", ".cache/etcd-released/etcd", "the program of etcd that make etcd-released built")
	flags.StringVar(&b.EtcdOnWeft, "etcd-on-weft", ".cache/etcd-on-weft/etcd", "the program of etcd that make etcd-on-weft built")
	flags.BoolVar(&quick, "quick", false, "one short round")
	return cmd
}

// addYCSB adds the flags of YCSB's client.
func addYCSB(flags *pflag.FlagSet, y *ycsb.Client) {
	flags.IntVar(&y.Records, "records", 10_000, "records of 1 KB; of larger ones there are fewer, down to 1000")
	flags.IntVar(&y.Clients, "clients", 32, "threads of YCSB's client")
	flags.DurationVar(&y.Time, "time", 10*time.Second, "of one workload of YCSB, in whole seconds")
	flags.StringVar(&y.Dir, "ycsb", ".cache/ycsb", "what make ycsb made; weftbench redis leaves YCSB out if it is empty")
}

func checkYCSB(y *ycsb.Client) error {
	return errors.Join(within("records", 1, 10_000_000, y.Records), within("clients", 1, 10_000, y.Clients), within("time", time.Second, time.Hour, y.Time))
}
