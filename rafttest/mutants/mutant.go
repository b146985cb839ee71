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

// mutant is a bug that is put into one file: texts that occur once each are
// replaced.
type mutant struct {
	what string
	file string
	// edits are pairs: a text, and what takes its place.
	edits [][2]string
	// by is the directed schedule that must find it, a file of
	// rafttest/testdata/coded; or a test of the file's own package, if it begins
	// with "Test"; or seeds of TestCoded, if it is empty.
	by string
	// within bounds the seeds.
	within int
}

// result is what the tests said about a mutant.
type result struct {
	by        string // the schedule, test or seed that found it
	invariant string
	took      time.Duration
	err       error // not found, or not tested
}

func (r result) String() string {
	if r.err != nil {
		return "NOT FOUND: " + r.err.Error()
	}
	return r.by
}

var (
	errSurvived = errors.New("all tests pass")
	errAbsent   = errors.New("the text to replace does not occur exactly once")
)

// moduleRoot returns the directory of the module.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/weftraft/weft").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// apply returns the mutated file.
func (m mutant) apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	for _, e := range m.edits {
		if bytes.Count(text, []byte(e[0])) != 1 {
			return nil, fmt.Errorf("%s: %q: %w", m.file, e[0], errAbsent)
		}
		text = bytes.Replace(text, []byte(e[0]), []byte(e[1]), 1)
	}
	return text, nil
}

// tests returns the package whose tests must find the mutant, and the flags
// with which to run them.
func (m mutant) tests() (pkg string, flags []string) {
	switch {
	case strings.HasPrefix(m.by, "Test"):
		return "./" + filepath.Dir(m.file), []string{"-test.run=^" + m.by + "$"}
	case m.by != "":
		return "./rafttest", []string{"-test.run=^TestScripts$/^" + m.by + "$"}
	}
	return "./rafttest", []string{"-test.run=^TestCoded$", fmt.Sprintf("-coded-seeds=%d", m.within), "-coded-stop=1"}
}

// test builds the tests with the mutant and runs them.
func (m mutant) test(ctx context.Context, root, scratch string, number int) (r result) {
	pkg, flags := m.tests()
	binary, err := m.build(ctx, root, scratch, pkg, number)
	if err != nil {
		return result{err: err}
	}
	defer func() { _ = os.Remove(binary) }() // the whole directory goes in the end
	start := time.Now()
	cmd := exec.CommandContext(ctx, binary, append(flags, "-test.timeout=20m")...)
	cmd.Dir = filepath.Join(root, pkg)
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	switch {
	case ctx.Err() != nil:
		return result{err: ctx.Err()}
	case err == nil:
		return result{err: errSurvived, took: took}
	}
	r = m.verdict(string(out))
	r.took = took
	return r
}

// build compiles the tests of a package against the mutated file.
func (m mutant) build(ctx context.Context, root, scratch, pkg string, number int) (string, error) {
	text, err := m.apply(root)
	if err != nil {
		return "", err
	}
	name := func(suffix string) string { return filepath.Join(scratch, fmt.Sprintf("%d%s", number, suffix)) }
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.file): name(".go")}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(name(".go"), text, 0o600), os.WriteFile(name(".json"), overlay, 0o600)); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", name(".json"), "-o", name(".test"), pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not compile: %w: %s", err, out)
	}
	return name(".test"), nil
}

var (
	foundSeed = regexp.MustCompile(`seed (\d+): ([a-z ]+) does not hold`)
	violation = regexp.MustCompile(`VIOLATION (.*)`)
)

// verdict reads from the output of a failed run what found the mutant.
func (m mutant) verdict(out string) result {
	r := result{by: m.by, invariant: "the text differs"}
	if f := foundSeed.FindStringSubmatch(out); f != nil {
		r.by, r.invariant = fmt.Sprintf("seed %s of %d", f[1], m.within), f[2]
	} else if f := violation.FindStringSubmatch(out); f != nil {
		r.invariant = f[1][:min(len(f[1]), 60)]
	}
	switch {
	case strings.Contains(out, "test timed out") && m.by == "":
		r.err = errors.New("the tests take too long")
	case strings.Contains(out, "test timed out"):
		r.invariant = "it hangs"
	case strings.Contains(out, "no tests to run"):
		r.err = errors.New("there is no such test")
	}
	return r
}
