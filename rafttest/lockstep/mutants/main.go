// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants shows that the lockstep tests find bugs. It puts one-line
// bugs into the raft package, one at a time and without touching its files (go
// test -overlay), runs the tests on each, and prints which test found it, by
// which seed. It fails if a bug is not found, or can no longer be put in.
//
// Run it in rafttest/lockstep: go run ./mutants
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
	only := flag.String("only", "", "run only mutants whose area or description matches this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *workers, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, workers int, only string) error {
	filter, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	source, err := sourceDir(ctx)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the system's temporary directory is cleaned anyway
	chosen := choose(filter)
	results := make([]result, len(chosen))
	start := time.Now()
	var group sync.WaitGroup
	next := make(chan int)
	for range workers {
		group.Go(func() {
			for i := range next {
				results[i] = chosen[i].test(ctx, source, scratch, i)
				fmt.Fprintf(os.Stderr, "%2d of %d: %s: %s (%s)\n", i+1, len(chosen), chosen[i].area, chosen[i].what, results[i])
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
		return fmt.Errorf("%d of %d were not found, or are no longer to be put in", missed, len(chosen))
	}
	return nil
}

func choose(filter *regexp.Regexp) []mutant {
	var chosen []mutant
	for _, m := range table {
		if filter.MatchString(m.area + ": " + m.what) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// report prints the table and returns how many mutants were not found.
func report(mutants []mutant, results []result) (missed int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AREA\tMUTANT\tFILE\tFOUND BY\tSEED\tTESTS TOOK")
	for i, r := range results {
		m := mutants[i]
		by := r.by
		if r.err != nil {
			by = "NOT FOUND: " + r.err.Error()
			missed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.1fs\n", m.area, m.what, m.file, by, r.seed, r.took.Seconds())
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants: printing the table:", err)
	}
	return missed
}
