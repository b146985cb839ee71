// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"sync"
	"text/tabwriter"
	"time"
)

// Main is the main function of a command: it parses its flags, tests the mutants
// that are chosen then, and prints a table. The process ends with status 1 if one is not found, or can no longer be
// put in.
func Main(mutants func() ([]Mutant, error)) {
	workers := flag.Int("workers", runtime.NumCPU(), "how many mutants to build and run at a time")
	only := flag.String("only", "", "test only mutants whose description matches this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chosen, err := mutants()
	if err == nil {
		err = run(ctx, chosen, *workers, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, mutants []Mutant, workers int, only string) error {
	if workers < 1 {
		return fmt.Errorf("-workers: %d, want at least 1", workers)
	}
	filter, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	var chosen []Mutant
	for _, m := range mutants {
		if filter.MatchString(m.What) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("-only: no mutant matches %q", only)
	}
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the system's temporary directory is cleaned anyway
	start := time.Now()
	findings := make([]Finding, len(chosen))
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				findings[i] = chosen[i].test(ctx, root, scratch, i)
				fmt.Fprintf(os.Stderr, "%2d of %d: %s: %s\n", i+1, len(chosen), chosen[i].What, findings[i])
			}
		})
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	group.Wait()
	missed, err := report(os.Stdout, chosen, findings)
	if err != nil {
		return err
	}
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
func report(to io.Writer, mutants []Mutant, findings []Finding) (missed int, err error) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MUTANT\tFILE\tFOUND BY\tMORE\tTESTS TOOK")
	for i, f := range findings {
		if f.Err != nil {
			missed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1fs\n", mutants[i].What, mutants[i].File, f, f.Detail, f.Took.Seconds())
	}
	return missed, w.Flush()
}
