// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants shows that the tests of coded replication find bugs. It puts
// small bugs into the sources, one at a time and without touching the files (go
// test -overlay), runs the directed schedules of rafttest and then its seeds on
// each, and prints which found it. It fails if a bug is not found, or can no
// longer be put in.
//
// Run it at the root of the module: go run ./rafttest/mutants
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"sync"
	"text/tabwriter"
	"time"
)

func main() {
	workers := flag.Int("workers", runtime.NumCPU(), "how many mutants to build and run at a time")
	only := flag.String("only", "", "run only mutants whose description matches this regular expression")
	quick := flag.Bool("quick", false, "run only mutants that a directed schedule finds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *workers, *only, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, workers int, only string, quick bool) error {
	filter, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the system's temporary directory is cleaned anyway
	var chosen []mutant
	for _, m := range table {
		if filter.MatchString(m.what) && (m.by != "" || !quick) {
			chosen = append(chosen, m)
		}
	}
	results := make([]result, len(chosen))
	start := time.Now()
	var group sync.WaitGroup
	next := make(chan int)
	for range workers {
		group.Go(func() {
			for i := range next {
				results[i] = chosen[i].test(ctx, root, scratch, i)
				fmt.Fprintf(os.Stderr, "%2d of %d: %s: %s\n", i+1, len(chosen), chosen[i].what, results[i])
			}
		})
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	group.Wait()
	missed := report(chosen, results)
	fmt.Printf("\n%d mutants in %v\n", len(chosen), time.Since(start).Round(time.Second))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d were not found as they should be, or are no longer to be put in", missed, len(chosen))
	}
	return nil
}

// report prints the table and returns how many mutants were not found.
func report(mutants []mutant, results []result) (missed int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MUTANT\tFILE\tFOUND BY\tINVARIANT\tTESTS TOOK")
	for i, r := range results {
		if r.err != nil {
			missed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1fs\n", mutants[i].what, mutants[i].file, r, r.invariant, r.took.Seconds())
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants: printing the table:", err)
	}
	return missed
}
