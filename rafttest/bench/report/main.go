// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command report runs the benchmarks of both libraries in one go and writes
// what benchstat makes of them to docs/data/core.md. Run it in the module's
// root, on a machine with nothing else to do.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/weftraft/weft/internal/lab"
)

const benchstat = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"

func main() {
	count := flag.Int("count", 6, "runs of each benchmark")
	benchtime := flag.String("benchtime", "0.3s", "time of each run")
	out := flag.String("out", "docs/data/core.md", "file to write; printed, if empty")
	flag.Parse()
	if err := report(*count, *benchtime, *out); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func report(count int, benchtime, out string) error {
	if err := lab.Publishable(out, count); err != nil {
		return err
	}
	results, err := measure(count, benchtime)
	if err != nil {
		return err
	}
	raw, err := os.CreateTemp("", "weft-bench-*.txt")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(raw.Name()) }()
	if _, err := raw.Write(results); err != nil {
		return err
	}
	if err := raw.Close(); err != nil {
		return err
	}
	table, err := run("go", "run", benchstat, "-col", "/lib", raw.Name())
	if err != nil {
		return err
	}
	csv, err := exec.Command("go", "run", benchstat, "-col", "/lib", "-format", "csv", raw.Name()).Output()
	if err != nil {
		return fmt.Errorf("benchstat: %w", err)
	}
	slower, perhaps := slowerRows(csv)
	text := page(table, slower, perhaps, count, benchtime)
	if out == "" {
		_, err = os.Stdout.Write(text)
		return err
	}
	return os.WriteFile(out, text, 0o644)
}

// measure runs the benchmarks in rounds, so that a change of the machine's mood
// falls on both libraries and all rows.
func measure(count int, benchtime string) ([]byte, error) {
	var results bytes.Buffer
	for i := range count {
		fmt.Fprintf(os.Stderr, "benchmarks: round %d of %d\n", i+1, count)
		b, err := run("go", "test", "-run", "^$", "-bench", ".", "-benchtime", benchtime, "./rafttest/bench")
		if err != nil {
			return nil, err
		}
		results.Write(b)
	}
	return results.Bytes(), nil
}

func run(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return b, nil
}

// slowerRows returns the rows of the time table with a smaller median of upstream:
// first the rows beyond noise, then the rows within noise.
func slowerRows(csv []byte) (slower, perhaps []string) {
	inTime := false
	for lines := bufio.NewScanner(bytes.NewReader(csv)); lines.Scan(); {
		f := strings.Split(lines.Text(), ",")
		if len(f) > 1 && strings.HasPrefix(f[1], "sec/op") {
			inTime = true
		} else if len(f) > 1 && strings.Contains(f[1], "/") {
			inTime = false
		}
		if !inTime || len(f) < 6 || f[0] == "geomean" {
			continue
		}
		theirs, err1 := strconv.ParseFloat(f[1], 64)
		ours, err2 := strconv.ParseFloat(f[3], 64)
		if err1 != nil || err2 != nil || ours <= theirs {
			continue
		}
		row := fmt.Sprintf("%s (%+.0f%%)", strings.TrimPrefix(f[0], "Core/"), 100*(ours/theirs-1))
		if f[5] == "~" {
			perhaps = append(perhaps, row)
		} else {
			slower = append(slower, row)
		}
	}
	return slower, perhaps
}

func page(table []byte, slower, perhaps []string, count int, benchtime string) []byte {
	var b bytes.Buffer
	w := func(format string, args ...any) { _, _ = fmt.Fprintf(io.Writer(&b), format, args...) }
	w("# Data: the core beside upstream's\n\n")
	w("Written by `make bench-upstream`. Both libraries do the same work in the same run: %d rounds of %s a row, %s on %s/%s. ",
		count, benchtime, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	w("Look at the ratios; the absolute figures are of a shared virtual machine with two cores. ")
	w("Bytes, allocations and `Storage` calls do not depend on the machine: `go test -v -run Dearer ./rafttest/bench` prints them, and fails where ours are more.\n\n")
	w("What the rows are: `Propose` takes a proposal through a group of RawNodes that hear each other at once until the leader may apply it, all members' work included; ")
	w("`FollowerHeartbeat` and `FollowerAppend64` are Step, Ready and Advance of a heartbeat and of an append with 64 entries of 128 bytes; ")
	w("`NodeOneMember` goes through the goroutine of a Node. A proposal is copied once, at the leader; at 1 MB that copy, and the garbage it becomes, are nearly all of the time.\n\n")
	list := func(rows []string) string {
		if len(rows) == 0 {
			return "none"
		}
		return strings.Join(rows, ", ")
	}
	w("Rows where upstream was faster in this run, beyond noise: %s. Rows where its median was lower, but benchstat sees no difference: %s.\n\n",
		list(slower), list(perhaps))
	w("```text\n%s```\n", table)
	return b.Bytes()
}
