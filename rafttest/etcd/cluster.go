// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/rafttest/etcd/live"
)

// liveTimeout is far above the duration of a run, about a minute.
const liveTimeout = 8 * time.Minute

// largest is the size of the largest values where coding is on.
const largest = 64 << 10

// leasedCluster runs the faults of leases: kill -9, SIGSTOP and steps of clocks.
func leasedCluster(ctx context.Context, w *workdir, o options) []row {
	return []row{rowFor("live cluster under kill -9, SIGSTOP and clock steps"+withLeases, coreLeased, func() (fmt.Stringer, error) {
		binary, err := w.buildStepped(ctx, "etcd-stepped")
		if err != nil {
			return nil, err
		}
		return runLive(ctx, w, live.Leases, w.steppedOptions(o.seed, binary), "stepped")
	})}
}

// readCosts measures the cost of linearizable reads without leases and with leases.
func readCosts(ctx context.Context, w *workdir, o options) (rows []row) {
	cores := []string{coreWeft, coreLeased}
	if o.core == coreUpstream {
		cores = []string{coreUpstream}
	}
	for _, core := range cores {
		name := "what linearizable reads cost"
		if hasLeases(core) {
			name += withLeases
		}
		rows = append(rows, rowFor(name, core, func() (fmt.Stringer, error) {
			binary, err := w.buildServer(ctx, core, "etcd-"+library(core))
			if err != nil {
				return nil, err
			}
			return runReads(ctx, w, core, binary)
		}))
	}
	return rows
}

func runReads(ctx context.Context, w *workdir, core, binary string) (live.ReadsReport, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	return live.Reads(ctx, live.Options{
		Binaries: []string{binary}, Env: w.env(core), Leased: hasLeases(core), Dir: w.path("live", "reads-"+core),
		Progress: func(line string) { progress("  %s", line) },
	})
}

func (w *workdir) steppedOptions(seed uint64, binary string) live.Options {
	return live.Options{Seed: seed, Binaries: []string{binary}, Env: w.env(coreLeased), Leased: true, Stepped: stepVariable}
}

// scenario is a sequence of faults for a live cluster.
type scenario func(context.Context, live.Options) (live.Report, error)

// rowFor is the row of a run on live clusters, with its report.
func rowFor(name, core string, run func() (fmt.Stringer, error)) row {
	r := row{Name: name, Core: core}
	start := time.Now()
	report, err := run()
	if r.Took, r.err = time.Since(start), err; err == nil {
		r.Notes = []string{report.String()}
	}
	return r
}

// played runs a scenario on members that take turns with these cores; without any, all members have
// the core of the run.
func played(name string, play scenario, cores ...string) func(context.Context, *workdir, options) []row {
	return func(ctx context.Context, w *workdir, o options) []row {
		cores, name := cores, name
		if len(cores) == 0 {
			cores = []string{o.core}
		}
		cluster := live.Options{Seed: o.seed}
		if slices.Contains(cores, coreCoded) {
			cluster.Coded, cluster.Largest = true, largest
			name += codedFrom(o)
		}
		core := strings.Join(cores, "+")
		return []row{rowFor(name, core, func() (fmt.Stringer, error) {
			for _, core := range cores {
				cluster.Env = append(cluster.Env, w.env(core)...)
				binary, err := w.buildServer(ctx, core, "etcd-"+library(core))
				if err != nil {
					return nil, err
				}
				cluster.Binaries = append(cluster.Binaries, binary)
			}
			return runLive(ctx, w, play, cluster, core)
		})}
	}
}

func runLive(ctx context.Context, w *workdir, play scenario, o live.Options, name string) (live.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	o.Dir = w.path("live", name)
	o.Progress = func(line string) { progress("  %s", line) }
	report, err := play(ctx, o)
	if err != nil {
		err = fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	return report, err
}

// brokenRule makes the leader commit up to the end of its own log, without other members.
var brokenRule = struct{ file, old, new string }{
	file: "raft/commit.go",
	old:  "l.members.Committable()",
	new:  "l.members.Progress(l.id).Match",
}

// brokenClock makes leases use the time of day.
var brokenClock = struct{ file, old, new string }{
	file: "leases/clock/clock_linux.go",
	old:  "return read(unix.CLOCK_BOOTTIME)",
	new:  "return time.Duration(time.Now().UnixNano())",
}

var errSurvived = errors.New("a broken core passed: the live cluster would not see it")

// mutants builds etcd on two broken versions of Weft, and returns an error unless a live cluster
// finds each bug: a commit rule without other members, and leases that use the time of day, which
// is set back.
func mutants(ctx context.Context, w *workdir, seed uint64) error {
	rule := filepath.Join(w.weft, filepath.FromSlash(brokenRule.file))
	src, err := replaced(rule, brokenRule.old, brokenRule.new)
	if err != nil {
		return err
	}
	binary, err := w.buildOverlaid(ctx, "etcd-mutant", map[string]string{rule: src})
	if err != nil {
		return err
	}
	if err := mutant(ctx, w, "commit rule", live.Run, live.Options{Seed: seed, Binaries: []string{binary}}); err != nil {
		return err
	}
	files, err := steppedTime()
	if err != nil {
		return err
	}
	clock := filepath.Join(w.weft, filepath.FromSlash(brokenClock.file))
	if files[clock], err = replaced(clock, brokenClock.old, brokenClock.new); err != nil {
		return err
	}
	if binary, err = w.buildOverlaid(ctx, "etcd-mutant-clock", files); err != nil {
		return err
	}
	return mutant(ctx, w, "clock of leases", live.StopResponders, w.steppedOptions(seed, binary))
}

// mutant returns an error unless a run finds the bug.
func mutant(ctx context.Context, w *workdir, what string, play scenario, o live.Options) error {
	_, err := runLive(ctx, w, play, o, "mutant")
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return fmt.Errorf("%s: %w", what, errSurvived)
	case !errors.Is(err, live.ErrUnsafe):
		return fmt.Errorf("%s: the mutant failed, but clients saw nothing wrong: %w", what, err)
	}
	fmt.Printf("the broken %s was found: %v\n", what, err)
	return nil
}
