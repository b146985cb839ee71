// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// mutant is a bug that is put into the raft package: in one file, a text that
// occurs once is replaced.
type mutant struct {
	area, what string
	file       string
	old, new   string
}

// result is what the tests said about a mutant.
type result struct {
	by   string // the test that failed
	seed string
	took time.Duration
	err  error // not found, or not tested
}

func (r result) String() string {
	if r.err != nil {
		return "NOT FOUND: " + r.err.Error()
	}
	return fmt.Sprintf("%s, seed %s, %.1fs", r.by, r.seed, r.took.Seconds())
}

var (
	errSurvived = errors.New("all tests pass")
	errAbsent   = errors.New("the text to replace does not occur exactly once")
)

// stages returns the tests that a mutant is run through until one fails: those
// of its own area first, to save time. Only fixed seeds are used, so that the
// outcome does not depend on luck.
func (m mutant) stages() [][]string {
	cores := []string{"-test.run=^TestLockstep$", "-first", "-fresh=0"}
	nodes := []string{"-test.run=^TestNode$", "-first", "-fresh=0"}
	rest := []string{"-test.run=^(TestMemoryStorage|TestUtil|TestConfig)$"}
	switch m.area {
	case "Node":
		return [][]string{nodes, cores, rest}
	case "MemoryStorage":
		return [][]string{rest, cores, nodes}
	default:
		return [][]string{cores, nodes, rest}
	}
}

// sourceDir returns where the raft package is.
func sourceDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/weftraft/weft/raft").Output()
	if err != nil {
		return "", fmt.Errorf("finding the raft package (run this in rafttest/lockstep): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// apply returns the mutated file.
func (m mutant) apply(source string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(source, m.file))
	if err != nil {
		return nil, err
	}
	if bytes.Count(text, []byte(m.old)) != 1 {
		return nil, fmt.Errorf("%s: %q: %w", m.file, m.old, errAbsent)
	}
	return bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

// test builds the tests with the mutant and runs them.
func (m mutant) test(ctx context.Context, source, scratch string, number int) (r result) {
	binary, err := m.build(ctx, source, scratch, number)
	if err != nil {
		return result{err: err}
	}
	defer func() { _ = os.Remove(binary) }() // the whole directory goes in the end
	start := time.Now()
	defer func() { r.took = time.Since(start) }()
	for _, stage := range m.stages() {
		out, err := exec.CommandContext(ctx, binary, append(stage, "-test.timeout=100s")...).CombinedOutput()
		if ctx.Err() != nil {
			return result{err: ctx.Err()}
		}
		if err != nil {
			return verdict(string(out), stage[0])
		}
	}
	return result{err: errSurvived}
}

// build compiles the lockstep tests against the mutated package.
func (m mutant) build(ctx context.Context, source, scratch string, number int) (string, error) {
	text, err := m.apply(source)
	if err != nil {
		return "", err
	}
	name := func(suffix string) string { return filepath.Join(scratch, fmt.Sprintf("%d%s", number, suffix)) }
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(source, m.file): name(".go")}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(name(".go"), text, 0o600), os.WriteFile(name(".json"), overlay, 0o600)); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", name(".json"), "-o", name(".test"), ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("it does not compile: %w: %s", err, out)
	}
	return name(".test"), nil
}

var (
	failedTest = regexp.MustCompile(`--- FAIL: (\w+)`)
	foundSeed  = regexp.MustCompile(`seed (\d+), call \d+: (.*)`)
)

// verdict reads from the output of a failed run what found the mutant.
func verdict(out, stage string) result {
	r := result{by: strings.Trim(strings.TrimPrefix(stage, "-test.run="), "^$"), seed: "-"}
	if f := failedTest.FindStringSubmatch(out); f != nil {
		r.by = f[1]
	}
	switch f := foundSeed.FindStringSubmatch(out); {
	case f != nil:
		r.seed = f[1]
		r.by += ": " + f[2]
	case strings.Contains(out, "test timed out"):
		r.by += ": it hangs"
	case strings.Contains(out, "panic:"):
		r.by += ": a goroutine of Node panicked"
	}
	return r
}
