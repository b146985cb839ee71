// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package mutate puts small bugs into the module's sources, one at a time and
// without touching the files (go test -overlay), and runs tests, to show that the
// tests find the bug.
package mutate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Mutant is a bug, and the tests that should find the bug.
type Mutant struct {
	// What says what is wrong.
	What string
	// File is where, by its path in the module.
	File string
	// Edits are pairs: a text that occurs once in the file, and the text in its place.
	Edits [][2]string
	// More is edits of further files.
	More []Change
	// Tests is the directory, within the module, of the package whose tests find the mutant.
	Tests string
	// Stages are flags for these tests: a run for each, in this order, until a run fails.
	Stages [][]string
	// Verdict reads, from the output of the failed run with its flags, which test or seed
	// found the mutant.
	Verdict func(output string, flags []string) Finding
}

// Change is edits of one file.
type Change struct {
	File  string
	Edits [][2]string
}

func (m Mutant) changes() []Change {
	return append([]Change{{File: m.File, Edits: m.Edits}}, m.More...)
}

// Finding says what found a mutant.
type Finding struct {
	By     string        // the test, schedule or seed
	Detail string        // more about it
	Took   time.Duration // of processors, by the tests
	Err    error         // not found, or not tested
}

func (f Finding) String() string {
	if f.Err != nil {
		return "NOT FOUND: " + f.Err.Error()
	}
	return f.By
}

var (
	errSurvived = errors.New("all tests pass")
	errAbsent   = errors.New("the text to replace does not occur exactly once")
	errSame     = errors.New("the edit changes nothing")
	errUntested = errors.New("the tests did not run")
)

// Root returns the directory of the module.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/weftraft/weft").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Apply returns the mutated file.
func (c Change) Apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, c.File))
	if err != nil {
		return nil, err
	}
	for _, e := range c.Edits {
		if bytes.Count(text, []byte(e[0])) != 1 {
			return nil, fmt.Errorf("%s: %q: %w", c.File, e[0], errAbsent)
		}
		if e[0] == e[1] {
			return nil, fmt.Errorf("%s: %q: %w", c.File, e[0], errSame)
		}
		text = bytes.Replace(text, []byte(e[0]), []byte(e[1]), 1)
	}
	return text, nil
}

// Check reports mutants that cannot be put into the sources, or do not compile there, without
// running any.
func Check(ctx context.Context, mutants []Mutant) error {
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	packages, err := newChecker(ctx, root, mutants)
	if err != nil {
		return err
	}
	var errs []error
	seen := map[string]bool{}
	for _, m := range mutants {
		if err := packages.check(m); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.What, err))
		}
		if seen[m.What] {
			errs = append(errs, fmt.Errorf("%s: it is there twice", m.What))
		}
		seen[m.What] = true
	}
	return errors.Join(errs...)
}

// test builds the tests with the mutant and runs them.
func (m Mutant) test(ctx context.Context, root, scratch string, number int) (f Finding) {
	binary, err := m.build(ctx, root, scratch, number)
	if err != nil {
		return Finding{Err: err}
	}
	defer func() { _ = os.Remove(binary) }() // the whole directory goes in the end
	took := time.Duration(0)
	defer func() { f.Took = took }()
	for _, flags := range m.Stages {
		cmd := exec.CommandContext(ctx, binary, flags...)
		cmd.Dir = filepath.Join(root, m.Tests)
		out, err := cmd.CombinedOutput()
		if p := cmd.ProcessState; p != nil {
			took += p.UserTime() + p.SystemTime()
		}
		switch {
		case ctx.Err() != nil:
			return Finding{Err: ctx.Err()}
		case err != nil && untested(string(out)):
			return Finding{Err: fmt.Errorf("%w: %s", errUntested, out)}
		case err != nil:
			return m.Verdict(string(out), flags)
		}
	}
	return Finding{Err: errSurvived}
}

// untested reports whether a run failed because the tests do not have its flags, which would look like a find.
func untested(out string) bool { return strings.Contains(out, "\nUsage of ") }

// build compiles the tests against the mutated files.
func (m Mutant) build(ctx context.Context, root, scratch string, number int) (string, error) {
	name := func(suffix string) string { return filepath.Join(scratch, fmt.Sprintf("%d%s", number, suffix)) }
	replace := map[string]string{}
	for i, c := range m.changes() {
		text, err := c.Apply(root)
		if err != nil {
			return "", err
		}
		file := name(fmt.Sprintf("-%d.go", i))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, c.File)] = file
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(name(".json"), overlay, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", name(".json"), "-o", name(".test"), ".")
	cmd.Dir = filepath.Join(root, m.Tests)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0") // a C compiler's linker takes half as long again
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not compile: %w: %s", err, out)
	}
	return name(".test"), nil
}
