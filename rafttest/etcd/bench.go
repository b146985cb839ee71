// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/shim"
	"github.com/weftraft/weft/rafttest/etcd/bench"
)

// benchOptions are the flags of the benchmark.
type benchOptions struct {
	bench.Config
	out, rows, data string
	quick           bool
	budget          time.Duration
}

func benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure etcd as released beside etcd on Weft",
		Long: "bench builds etcd " + etcdVersion + " on upstream's library and on Weft, and puts the same load on clusters of both in turns:\n" +
			"as released, on Weft with coding off, and on Weft with coding. With --rows a run that breaks off, or whose time is\n" +
			"over, is continued by the next one.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.Members, "members", []int{3, 5}, "sizes of clusters, 1 to 9")
	f.Int64SliceVar(&o.Links, "links", []int64{100e6, 1e9, 0}, "bits a second that a member sends, and receives, at most (0: no bound)")
	f.IntSliceVar(&o.Sizes, "sizes", []int{1 << 10, 4 << 10, 64 << 10, 256 << 10, 1 << 20}, "bytes of a value, 1 to 1048576")
	f.IntSliceVar(&o.Clients, "clients", []int{1, 16}, "numbers of clients, 1 to 1000")
	f.IntVar(&o.Rounds, "rounds", lab.LeastRounds, fmt.Sprintf("how often each load is put on each side, in turns; 1 or more, with --out %d or more", lab.LeastRounds))
	f.DurationVar(&o.Warm, "warm", time.Second, "for which a side takes a load before it is measured, 100ms to 1h")
	f.DurationVar(&o.Time, "time", 1500*time.Millisecond, "of one measurement, 100ms or more")
	f.Float64Var(&o.Others, "others", 0.3, "share of the processors, 0 to 1, above which a measurement is made again as others used them")
	f.IntVar(&o.Coded, "coding", 4096, "size from which payloads are coded on the side that codes")
	f.StringVar(&o.Network, "network", "", lab.Namespaces+" or "+lab.Relay+" (default: namespaces where the machine allows them)")
	f.StringVar(&o.out, "out", "", "write the report, in Markdown, into this file after each row (default: to standard output at the end)")
	f.StringVar(&o.rows, "rows", "", "keep rows in this file, and do not measure again those that it has")
	f.StringVar(&o.data, "data", "", "directory for the members' data (default: a temporary one)")
	f.DurationVar(&o.budget, "stop-after", 0, "begin no more rows after so long (0: go on to the end)")
	f.BoolVar(&o.quick, "quick", false, "three members, two links, two sizes, 16 clients, one short round (about a minute)")
	return cmd
}

func (o *benchOptions) run(ctx context.Context, out io.Writer) (err error) {
	if o.quick {
		o.Members, o.Links, o.Sizes, o.Clients, o.Rounds, o.Time = []int{3}, []int64{100e6, 0}, []int{1 << 10, 64 << 10}, []int{16}, 1, time.Second
	}
	o.Progress = func(line string) { progress("%s", line) }
	if err := o.Validate(); err != nil {
		return err
	}
	if err := lab.Publishable(o.out, o.Rounds); err != nil {
		return err
	}
	if err := o.chooseNetwork(); err != nil {
		return err
	}
	if err := o.build(ctx); err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp(o.data, "bench-etcd-"); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	at, err := o.Circumstances(o.Network)
	if err != nil {
		return err
	}
	store, err := bench.OpenStore(o.rows, at)
	if err != nil {
		return fmt.Errorf("--rows: %w", err)
	}
	return o.measure(ctx, store, out)
}

// measure measures the rows that the store lacks, and reports all rows.
func (o *benchOptions) measure(ctx context.Context, store *bench.Store, out io.Writer) error {
	report := func() error {
		if o.out == "" {
			return nil
		}
		return store.Section(o.Config).Write(out, o.out, false)
	}
	if err := report(); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	var until time.Time
	if o.budget > 0 {
		until = time.Now().Add(o.budget)
	}
	wanted := func(l bench.Load) bool { return !store.Has(l) }
	done := func(rows []*bench.Row) error { return errors.Join(store.Add(rows...), report()) }
	err := bench.Run(ctx, o.Config, wanted, done, until)
	if o.out == "" {
		err = errors.Join(err, store.Section(o.Config).Write(out, "", false))
	}
	if errors.Is(err, bench.ErrStopped) && o.rows != "" {
		err = fmt.Errorf("%w; run this again to go on", err)
	}
	return err
}

// chooseNetwork finds a kind of network that the machine allows.
func (o *benchOptions) chooseNetwork() error {
	n, err := lab.NewNetwork(lab.NetworkConfig{Hosts: 1, Rate: 100e6, Kind: o.Network})
	if err != nil {
		return err
	}
	o.Network = n.Kind
	progress("network: %s", n.Kind)
	if n.Why != nil {
		progress("  no namespaces: %v", n.Why)
	}
	return n.Close()
}

// build builds the sides' programs.
func (o *benchOptions) build(ctx context.Context) error {
	w, err := newWorkdir("")
	if err != nil {
		return err
	}
	if err := w.prepare(ctx, false); err != nil {
		return err
	}
	programs := map[string]string{}
	for _, core := range []string{coreUpstream, coreWeft} {
		progress("etcd %s on %s", etcdVersion, core)
		if programs[core], err = w.buildServer(ctx, core, "etcd-"+core); err != nil {
			return err
		}
	}
	o.Sides = sides(programs[coreUpstream], programs[coreWeft], o.Coded)
	return nil
}

// sides returns the compared ways to run etcd.
func sides(upstream, weft string, coding int) []bench.Side {
	on := fmt.Sprintf("%s=%d", shim.CodingVariable, coding)
	return []bench.Side{
		{Name: "etcd", About: "etcd " + etcdVersion + " as released.", Program: upstream},
		{Name: "Weft", About: "the same sources on Weft, coding off.", Program: weft, Env: []string{shim.CodingVariable + "=off"}},
		{Name: "coded", About: "the same program as before, with `" + on + "`.", Program: weft, Env: []string{on}, Codes: true},
	}
}
