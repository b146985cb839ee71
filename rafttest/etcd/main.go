// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command etcd shows that etcd runs on Weft. The command builds etcd's server with Weft in the
// place of go.etcd.io/raft/v3, without an edit, and runs etcd's own tests, and a cluster of etcd
// processes under faults.
//
//	make conformance-etcd                          # from the root of Weft
//	make conformance-etcd ETCD='--core upstream'   # the same on upstream's library
//	make etcd                                      # only build etcd, for use
//
// README.md lists the steps and explains the table.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/shim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "conformance: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	core   string
	only   string
	dir    string
	seed   uint64
	full   bool
	mutant bool
	coding int
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "etcd",
		Short:         "Run etcd's tests, and a cluster of etcd processes under faults, on Weft",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return conformance(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.core, "core", coreWeft, "the Raft library under etcd: "+coreWeft+" or "+coreUpstream)
	f.StringVar(&o.only, "only", "", "run only the steps whose name matches this regular expression")
	f.StringVar(&o.dir, "dir", "", "directory for what is generated and built (default: .cache/conformance-etcd in Weft)")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "what the clients of the live cluster do")
	f.BoolVar(&o.full, "full", false, "run all of etcd's unit and integration tests (takes longer)")
	f.BoolVar(&o.mutant, "mutant", false, "break Weft's commit rule, then the clock of leases, and expect that live clusters show it")
	f.IntVar(&o.coding, "coding", 1024, "payload bytes from which the steps with coding code")
	cmd.AddCommand(execCommand(), buildCommand(), benchCommand())
	return cmd
}

// conformance runs all steps and prints the table.
func conformance(ctx context.Context, o options) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	if o.core != coreWeft && o.core != coreUpstream {
		return fmt.Errorf("--core %s: it must be %s or %s", o.core, coreWeft, coreUpstream)
	}
	if o.coding < 1 || o.coding > ecraft.MaxPayload {
		return fmt.Errorf("--coding %d: it must be 1 to %d", o.coding, ecraft.MaxPayload)
	}
	if o.mutant && o.core != coreWeft {
		return fmt.Errorf("--mutant breaks Weft; it does not go with --core %s", o.core)
	}
	// Each step sets the variables for coding and leases.
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, shim.VariablePrefix) {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	w, err := newWorkdir(o.dir)
	if err != nil {
		return err
	}
	w.coding = o.coding
	if err := w.prepare(ctx, true); err != nil {
		return err
	}
	if o.mutant {
		return mutants(ctx, w, o.seed)
	}
	results := &results{core: o.core, dir: w.dir}
	for _, lanes := range stages(o.full) {
		rows := make([][]row, len(lanes))
		var wg sync.WaitGroup
		for i, lane := range lanes {
			wg.Go(func() { rows[i] = runLane(ctx, w, o, only, lane) })
		}
		wg.Wait()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		results.add(slices.Concat(rows...)...)
	}
	return results.report(os.Stdout)
}

// runLane runs the selected steps of a lane, one after another.
func runLane(ctx context.Context, w *workdir, o options, only *regexp.Regexp, lane []step) (rows []row) {
	for _, s := range lane {
		if ctx.Err() == nil && only.MatchString(s.name) && (!s.weft || o.core == coreWeft) {
			progress("%s", s.name)
			rows = append(rows, s.run(ctx, w, o)...)
		}
	}
	return rows
}

var began = time.Now()

// progress prints a line for the user who waits.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0fs] %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}
