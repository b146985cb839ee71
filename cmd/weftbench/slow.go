// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostbench"
	"github.com/weftraft/weft/cmd/weftbench/internal/slowbench"
	"github.com/weftraft/weft/internal/lab"
)

// slowFlags are those of "weftbench slow".
type slowFlags struct {
	benchFlags
	cfg   slowbench.Config
	sides []string
	size  sizes
	quick bool
	etcd  string
}

func newSlow() *cobra.Command {
	f := slowFlags{size: sizes{16 << 10}}
	cmd := &cobra.Command{
		Use:   "slow",
		Short: "Make nodes slow, and compare what clients of the others see",
		Long: "slow starts clusters of real processes, has a fault strike the leader, a follower, or as many followers\n" +
			"as may fail, and measures what clients of the other nodes see: kvdemo (weft), with coded entries (coded),\n" +
			"with roster leases (leases), a minimal loop on upstream's library (loop), and etcd as released (etcd).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.add(cmd)
	flags, cfg := cmd.Flags(), &f.cfg
	flags.StringSliceVar(&f.sides, "sides", []string{"weft", "coded", "leases", "loop"}, "what to compare; upstream is kvdemo on upstream's library, and etcd is --etcd")
	flags.StringVar(&f.etcd, "etcd", ".cache/etcd-released/etcd", "the program of etcd that make etcd-released built, for the side etcd")
	flags.StringSliceVar(&cfg.Faults, "faults", slowbench.Names(), "what happens to nodes")
	flags.StringSliceVar(&cfg.Who, "who", slowbench.Whom, "to whom; minority is as many followers as may fail, and more than one")
	flags.IntSliceVar(&cfg.Nodes, "nodes", []int{3, 5}, "sizes of clusters, 3 to 9")
	flags.IntVar(&cfg.Rounds, "rounds", lab.LeastRounds, "how often each row is measured for each side, in turns; 1 to 1000")
	flags.IntVar(&cfg.Clients, "clients", 8, "of the healthy nodes, 1 to 1000")
	flags.Var(&f.size, "size", "bytes of a value, such as 16KiB; 1 to 4MiB")
	flags.IntVar(&cfg.Reads, "reads", 50, "percentage of calls that are linearizable reads, 0 to 100")
	flags.DurationVar(&cfg.Healthy, "healthy", time.Second, "how long is measured before a fault, 100ms to 1h")
	flags.DurationVar(&cfg.For, "for", 6*time.Second, "how long a leader's fault lasts, more than two election timeouts, to 1h; a follower's half as long")
	flags.DurationVar(&cfg.Link, "link", 2*time.Millisecond, "what each message takes longer, in one direction, 100µs to 1s")
	flags.DurationVar(&cfg.Sync, "sync", 4*time.Millisecond, "what each sync of a disk takes longer, 100µs to 1s")
	flags.DurationVar(&cfg.Tick, "tick", 50*time.Millisecond, "of the nodes, 10ms to 1s; an election timeout is 10 of them")
	flags.BoolVar(&f.quick, "quick", false, "one short round of weft and loop, three nodes: about 90 seconds")
	return cmd
}

func (f *slowFlags) check() error {
	c, least := f.cfg, 100*time.Microsecond
	errs := []error{
		within("nodes", 3, 9, c.Nodes...), within("rounds", 1, 1000, c.Rounds), within("clients", 1, 1000, c.Clients), within("size", 1, 4<<20, c.Size),
		within("reads", 0, 100, c.Reads), within("healthy", 100*time.Millisecond, time.Hour, c.Healthy), within("link", least, time.Second, c.Link),
		within("sync", least, time.Second, c.Sync), within("tick", 10*time.Millisecond, time.Second, c.Tick),
		within("for", 2*slowbench.ElectionTicks*c.Tick+time.Millisecond, time.Hour, c.For), lab.Publishable(f.report.out, c.Rounds),
	}
	for _, name := range c.Faults {
		errs = append(errs, oneOf("faults", name, slowbench.Names()...))
	}
	for _, who := range c.Who {
		errs = append(errs, oneOf("who", who, slowbench.Whom...))
	}
	return errors.Join(errs...)
}

func (f *slowFlags) run(cmd *cobra.Command) error {
	if f.quick {
		f.cfg.Nodes, f.cfg.Rounds, f.cfg.Healthy, f.cfg.For = []int{3}, 1, 500*time.Millisecond, 2*time.Second
		if !cmd.Flags().Changed("sides") {
			f.sides = []string{"weft", "loop"}
		}
	}
	if len(f.size) != 1 {
		return fmt.Errorf("--size: %v, want one size", &f.size)
	}
	f.cfg.Size = f.size[0]
	if err := f.check(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return f.benchFlags.run(cmd, func(kvdemo, dir string) (*lab.Section, error) {
		if err := f.choose(kvdemo, self); err != nil {
			return nil, err
		}
		f.cfg.Dir, f.cfg.Progress = dir, cmd.ErrOrStderr()
		runs, err := slowbench.Measure(cmd.Context(), f.cfg)
		return slowbench.Report(f.cfg, runs), err
	})
}

// choose finds the sides.
func (f *slowFlags) choose(kvdemo, self string) error {
	const name = "etcd"
	chosen, err := choose(append(hostSides(kvdemo, self), hostbench.Side{Name: name, About: "etcd as released"}), f.sides)
	if err != nil {
		return err
	}
	for _, side := range chosen {
		s := slowbench.Side{Side: side}
		if side.Name == name {
			if s.Etcd, err = filepath.Abs(f.etcd); err != nil {
				return err
			}
			if _, err := os.Stat(s.Etcd); err != nil {
				return fmt.Errorf("--etcd: %w", err)
			}
		}
		f.cfg.Sides = append(f.cfg.Sides, s)
	}
	return nil
}
