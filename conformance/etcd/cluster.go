// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/conformance/etcd/live"
)

// firstPort is where a live cluster begins to look for ports: below what systems
// give to outgoing connections, and not where another run looks.
func firstPort() int { return 21000 + os.Getpid()%10*1000 }

// liveTimeout is far above the minute that a run takes.
const liveTimeout = 8 * time.Minute

// liveCluster runs etcd processes on one core under faults.
func liveCluster(ctx context.Context, w *workdir, o options) []row {
	return []row{played(ctx, w, o, "live cluster under kill -9", live.Run, 0, o.core)}
}

// mixedCluster does the same with members on both cores. At each start a member
// changes its core and keeps its disk.
func mixedCluster(ctx context.Context, w *workdir, o options) []row {
	if o.core == coreUpstream {
		return nil
	}
	return []row{played(ctx, w, o, "live cluster, members change cores", live.Run, 0, coreWeft, coreUpstream)}
}

// largest is the size of the largest values where coding is on.
const largest = 64 << 10

// codedCluster runs the faults with coding on.
func codedCluster(ctx context.Context, w *workdir, o options) []row {
	if o.core == coreUpstream {
		return nil
	}
	return []row{played(ctx, w, o, "live cluster"+codedFrom(o), live.Run, largest, coreCoded)}
}

// rollingCluster upgrades a cluster from upstream's library to coding and back.
func rollingCluster(ctx context.Context, w *workdir, o options) []row {
	if o.core == coreUpstream {
		return nil
	}
	return []row{played(ctx, w, o, "rolling upgrade and downgrade"+codedFrom(o), live.Roll, largest, coreUpstream, coreCoded)}
}

// scenario is what is done to a live cluster.
type scenario func(context.Context, live.Options) (live.Report, error)

func played(ctx context.Context, w *workdir, o options, name string, play scenario, largest int, cores ...string) row {
	r := row{Name: name, Core: strings.Join(cores, "+")}
	start := time.Now()
	var binaries, env []string
	for _, core := range cores {
		env = append(env, w.env(core)...)
		binary, err := w.buildServer(ctx, core, "etcd-"+library(core))
		if err != nil {
			r.err = err
			return r
		}
		binaries = append(binaries, binary)
	}
	report, err := runLive(ctx, w, play, live.Options{Seed: o.seed, Largest: largest, Binaries: binaries, Env: env, Coded: slices.Contains(cores, coreCoded)}, r.Core)
	r.Took, r.err = time.Since(start), err
	if err == nil {
		r.Notes = []string{report.String()}
	}
	return r
}

func runLive(ctx context.Context, w *workdir, play scenario, o live.Options, name string) (live.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	o.Dir, o.FirstPort = w.path("live", name), firstPort()
	o.Progress = func(line string) { progress("  %s", line) }
	report, err := play(ctx, o)
	if err != nil {
		err = fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	return report, err
}

// brokenRule makes the leader commit what it holds itself, whoever else does.
var brokenRule = struct{ file, old, new string }{
	file: "raft/commit.go",
	old:  "l.electorate.committable()",
	new:  "l.electorate.members.Progress[l.id].Match",
}

// breakRule returns the source in a file with the rule broken.
func breakRule(file string) (string, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(src), brokenRule.old); n != 1 {
		return "", fmt.Errorf("%s: %q occurs %d times, want once", file, brokenRule.old, n)
	}
	return strings.Replace(string(src), brokenRule.old, brokenRule.new, 1), nil
}

var errSurvived = errors.New("a core with a broken commit rule passed: the live cluster would not see it")

// mutant builds etcd on a Weft that breaks the commit rule, and returns an
// error unless the live cluster sees it.
func mutant(ctx context.Context, w *workdir, seed uint64) error {
	file := filepath.Join(w.weft, filepath.FromSlash(brokenRule.file))
	broken, err := breakRule(file)
	if err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: w.path("mutant.go")}})
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(w.path("mutant.go"), []byte(broken), 0o600), os.WriteFile(w.path("mutant.json"), overlay, 0o600)); err != nil {
		return err
	}
	binary, err := w.buildServer(ctx, coreWeft, "etcd-mutant", "-overlay="+w.path("mutant.json"))
	if err != nil {
		return err
	}
	_, err = runLive(ctx, w, live.Run, live.Options{Seed: seed, Binaries: []string{binary}}, "mutant")
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return errSurvived
	case !errors.Is(err, live.ErrUnsafe):
		return fmt.Errorf("the mutant failed, but nothing was seen to be lost: %w", err)
	}
	fmt.Printf("the broken commit rule was found: %v\n", err)
	return nil
}
