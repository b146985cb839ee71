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
	return []row{live1(ctx, w, o, "live cluster under kill -9", o.core)}
}

// mixedCluster does the same with members on both cores. At each start a member
// changes its core and keeps its disk.
func mixedCluster(ctx context.Context, w *workdir, o options) []row {
	if o.core == coreUpstream {
		return nil
	}
	return []row{live1(ctx, w, o, "live cluster, members change cores", coreWeft, coreUpstream)}
}

func live1(ctx context.Context, w *workdir, o options, name string, cores ...string) row {
	r := row{Name: name, Core: strings.Join(cores, "+")}
	start := time.Now()
	var binaries []string
	for _, core := range cores {
		binary, err := w.buildServer(ctx, core, "etcd-"+core)
		if err != nil {
			r.err = err
			return r
		}
		binaries = append(binaries, binary)
	}
	report, err := runLive(ctx, w, o.seed, r.Core, binaries)
	r.Took, r.err = time.Since(start), err
	if err == nil {
		r.Notes = []string{report.String()}
	}
	return r
}

func runLive(ctx context.Context, w *workdir, seed uint64, name string, binaries []string) (live.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	report, err := live.Run(ctx, live.Options{
		Binaries:  binaries,
		Dir:       w.path("live", name),
		FirstPort: firstPort(),
		Seed:      seed,
		Progress:  func(line string) { progress("  %s", line) },
	})
	if err != nil {
		err = fmt.Errorf("seed %d: %w", seed, err)
	}
	return report, err
}

// brokenRule makes the leader commit what it holds itself, whoever else does.
var brokenRule = struct{ file, old, new string }{
	file: "raft/commit.go",
	old:  "k := l.members.Committed()",
	new:  "k := l.members.Progress[l.id].Match",
}

var errSurvived = errors.New("a core with a broken commit rule passed: the live cluster would not see it")

// mutant builds etcd on a Weft that breaks the commit rule, and returns an
// error unless the live cluster sees it.
func mutant(ctx context.Context, w *workdir, seed uint64) error {
	file := filepath.Join(w.weft, filepath.FromSlash(brokenRule.file))
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(src), brokenRule.old); n != 1 {
		return fmt.Errorf("%s: %q occurs %d times, want once", file, brokenRule.old, n)
	}
	broken := strings.Replace(string(src), brokenRule.old, brokenRule.new, 1)
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
	_, err = runLive(ctx, w, seed, "mutant", []string{binary})
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
