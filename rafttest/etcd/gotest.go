// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of a package that does not build
	Elapsed                       float64
}

// outcome is the outcome of the tests of a package.
type outcome struct {
	core    string
	passed  []string
	failed  []string
	skipped []string
	took    time.Duration
	ok      bool
	output  map[string]*bytes.Buffer // by test; "" is the package's
}

// testRun is a call of go test.
type testRun struct {
	packages []string
	run      string // a regular expression of names
	timeout  time.Duration
}

// goTest runs tests on a core and returns the outcomes by package. A package that does not build is
// an error.
func (w *workdir) goTest(ctx context.Context, core string, t testRun) (map[string]*outcome, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	// Vet has a step of its own. A count keeps the go command from answering
	// out of its cache.
	args := []string{"-json", "-vet=off", "-count=1", "-timeout=" + t.timeout.String(), "-run=" + t.run,
		"-exec=" + quote(self) + " exec " + core}
	cmd := w.goCommand(inner, core, "test", append(args, t.packages...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	outcomes, broken, readErr := collect(out)
	if readErr != nil {
		cancel() // the output is not read any more
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case readErr != nil:
		return nil, readErr
	case broken != "":
		return nil, fmt.Errorf("go test: it does not build:\n%s", broken)
	case err != nil && len(outcomes) == 0:
		return nil, fmt.Errorf("go test: %w:\n%s", err, stderr.Bytes())
	}
	// A failed test makes the go command fail too; the outcomes name the test.
	return outcomes, nil
}

// quote turns the path of this program into a single word for the go command.
func quote(path string) string {
	if strings.ContainsAny(path, " \t") {
		return "'" + path + "'"
	}
	return path
}

// collect reads the events of a run. Only tests at the top level are counted, not their subtests.
func collect(r io.Reader) (outcomes map[string]*outcome, broken string, err error) {
	outcomes = map[string]*outcome{}
	var build strings.Builder
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return outcomes, build.String(), nil
		} else if err != nil {
			return nil, "", err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, "", fmt.Errorf("go test -json: %w: %s", err, line)
		}
		if e.Action == "build-output" {
			build.WriteString(e.Output)
			continue
		}
		if e.Package == "" {
			continue
		}
		o := outcomes[e.Package]
		if o == nil {
			o = &outcome{core: coreNone, output: map[string]*bytes.Buffer{}}
			outcomes[e.Package] = o
		}
		o.take(e)
	}
}

// keepOutput bounds the kept output of a test: the last bytes are kept.
const keepOutput = 64 << 10

func (o *outcome) take(e event) {
	top, _, isSub := strings.Cut(e.Test, "/")
	if e.Action == "output" {
		if rest, ok := strings.CutPrefix(e.Output, coreLine); ok {
			o.core = strings.TrimSpace(rest)
		}
		buf := o.output[top]
		if buf == nil {
			buf = &bytes.Buffer{}
			o.output[top] = buf
		}
		buf.WriteString(e.Output)
		buf.Next(max(0, buf.Len()-keepOutput))
		return
	}
	if isSub {
		return
	}
	list := map[string]*[]string{"pass": &o.passed, "fail": &o.failed, "skip": &o.skipped}[e.Action]
	switch {
	case list == nil:
	case e.Test == "":
		o.ok, o.took = e.Action != "fail", time.Duration(e.Elapsed*float64(time.Second))
	default:
		*list = append(*list, e.Test)
		if e.Action == "pass" {
			delete(o.output, top) // the output of a test that passed is not used
		}
	}
}
