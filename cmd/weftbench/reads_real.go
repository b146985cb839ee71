// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/realreads"
	"github.com/weftraft/weft/internal/lab"
)

// realFlags are those of "weftbench reads --real".
type realFlags struct {
	programs
	on   bool
	cfg  realreads.Config
	data string
}

func (f *realFlags) add(cmd *cobra.Command) {
	f.programs.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.on, "real", false, "real processes and sockets instead of virtual time; with the flags --real-..., --data and --kvdemo alone")
	flags.DurationVar(&f.cfg.Time, "real-time", 4*time.Second, "with --real: of a measurement, 100ms to 10m")
	flags.IntVar(&f.cfg.Rounds, "real-rounds", lab.LeastRounds, "with --real: how often each row is measured, in turns with the others; 1 to 1000")
	flags.IntVar(&f.cfg.Clients, "real-clients", 4, "with --real: near each node, 1 to 100")
	flags.IntVar(&f.cfg.Readers, "real-readers", 16, "with --real: readers where processor time is measured, 2 to 1000")
	flags.IntSliceVar(&f.cfg.Sizes, "real-sizes", []int{3, 5}, "with --real: sizes of groups there, 3 to 9")
	flags.StringSliceVar(&f.cfg.Networks, "real-networks", []string{"wan", "geo"}, "with --real: wide networks with clients near each node")
	flags.StringSliceVar(&f.cfg.Policies, "real-policies", nil, "with --real: policies there, each quoted if it has a comma (default: all)")
	flags.StringVar(&f.cfg.Etcd, "etcd", "", "with --real: a server of released etcd (cd rafttest/etcd; go run . build --core upstream --out DIR), for rows of it")
	flags.StringVar(&f.cfg.ZooKeeper, "zookeeper", "", "with --real: zookeeper.jar (/usr/share/java/zookeeper.jar of Debian's package zookeeper), for rows of it")
	flags.StringVar(&f.data, "data", "", "with --real: directory for the nodes' data (default: a temporary one)")
}

// run measures with real processes.
func (f *realFlags) run(cmd *cobra.Command, out outFlags) error {
	if err := errors.Join(within("real-time", 100*time.Millisecond, 10*time.Minute, f.cfg.Time), within("real-clients", 1, 100, f.cfg.Clients),
		within("real-rounds", 1, 1000, f.cfg.Rounds), lab.Publishable(out.out, f.cfg.Rounds),
		within("real-readers", 2, 1000, f.cfg.Readers), within("real-sizes", 3, 9, f.cfg.Sizes...)); err != nil {
		return err
	}
	for _, n := range f.cfg.Networks {
		if err := oneOf("real-networks", n, "wan", "geo"); err != nil {
			return err
		}
	}
	for _, p := range f.cfg.Policies {
		if err := oneOf("real-policies", p, realreads.PolicyNames()...); err != nil {
			return err
		}
		if lacks := f.cfg.Lacks(p); lacks != "" {
			return fmt.Errorf("--real-policies: %q needs a server, want --%s FILE as well", p, lacks)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return f.inData(f.data, func(kvdemo, dir string) error {
		f.cfg.Kvdemo, f.cfg.Self, f.cfg.Dir, f.cfg.Progress = kvdemo, self, dir, cmd.ErrOrStderr()
		f.cfg.Writes, f.cfg.Keys, f.cfg.Value = 0.1, 1000, 128
		results, err := realreads.Run(cmd.Context(), f.cfg)
		return out.write(cmd, realreads.Report(f.cfg, results), err)
	})
}
