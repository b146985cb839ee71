// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row is a line of the table.
type row struct {
	Name, Core             string
	Tests, Passed, Skipped int
	Took                   time.Duration
	// Notes are the reasons of skipped tests, or the coverage of a scenario.
	Notes []string
	// Flaky tests passed at the second attempt only.
	Flaky  []string
	Failed bool
	err    error
	again  []string // tests that failed at the first attempt
}

// maxFlaky is the number of tests in a run that may need a second attempt.
const maxFlaky = 3

var errFailed = errors.New("tests failed")

// rowOf returns the row of a package, from the outcome of the wanted tests.
func rowOf(path string, o *outcome, want []string) row {
	r := row{Name: path, Tests: len(want)}
	if o == nil {
		r.err = errors.New("nothing is known of its tests")
		return r
	}
	r.Core, r.Took = o.core, o.took
	var errs []error
	for _, name := range want {
		switch {
		case slices.Contains(o.passed, name):
			r.Passed++
		case slices.Contains(o.skipped, name):
			r.Skipped++
			r.Notes = append(r.Notes, fmt.Sprintf("%s skips itself: %s", name, reason(o.text(name))))
		case slices.Contains(o.failed, name):
			r.again = append(r.again, name)
			errs = append(errs, fmt.Errorf("%w: %s:\n%s", errFailed, name, o.text(name)))
		default:
			errs = append(errs, fmt.Errorf("%s did not run or did not end:\n%s%s", name, o.text(name), o.text("")))
		}
	}
	if len(errs) == 0 && !o.ok {
		errs = append(errs, fmt.Errorf("%w: %v, or outside of any test:\n%s", errFailed, o.failed, o.text("")))
	}
	if len(errs) > len(r.again) {
		r.again = nil // the program broke off, and a second attempt would hide the reason
	}
	r.err = errors.Join(errs...)
	return r
}

func (o *outcome) text(test string) string {
	if b := o.output[test]; b != nil {
		return b.String()
	}
	return ""
}

var logLine = regexp.MustCompile(`\w+\.go:\d+: (.*)`)

// reason returns the last log line of a skipped test.
func reason(output string) string {
	all := logLine.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return "it gives no reason"
	}
	return all[len(all)-1][1]
}

// results are all rows of a run.
type results struct {
	core string
	dir  string
	rows []row
}

// add takes rows and prints each.
func (r *results) add(rows ...row) {
	for _, x := range rows {
		x.Failed = x.err != nil
		r.rows = append(r.rows, x)
		progress("  %s: %s", shortName(x.Name), x.verdict())
		if x.err != nil {
			progress("  %v", x.err)
		}
	}
}

func shortName(name string) string { return strings.ReplaceAll(name, "go.etcd.io/etcd/", "") }

func (r row) verdict() string {
	switch {
	case r.Failed:
		return "FAILED"
	case r.Tests == 0:
		return "ok"
	case r.Passed+r.Skipped == r.Tests:
		return fmt.Sprintf("%d of %d passed", r.Passed, r.Tests)
	}
	return "FAILED"
}

// report prints the table, keeps the verdicts for a run on the other core, and returns an error if
// any row failed.
func (r *results) report(w io.Writer) error {
	other := coreUpstream
	if r.core == coreUpstream {
		other = coreWeft
	}
	theirs, err := r.exchange(other)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nPACKAGE OR SCENARIO\tCORE\tTESTS\tPASSED\tSKIPPED\tTIME\tON %s\n", strings.ToUpper(other))
	tests, passed, skipped, failed := 0, 0, 0, 0
	var flaky []string
	for _, x := range r.rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1fs\t%s\n", shortName(x.Name), x.Core, x.counts(), x.Took.Seconds(), theirs[x.Name])
		tests, passed, skipped = tests+x.Tests, passed+x.Passed, skipped+x.Skipped
		flaky = append(flaky, x.Flaky...)
		if x.Failed {
			failed++
		}
	}
	fmt.Fprintf(t, "all\t%s\t%d\t%d\t%d\t%.1fs\t\n", r.core, tests, passed, skipped, time.Since(began).Seconds())
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, x := range r.rows {
		for _, note := range x.Notes {
			fmt.Fprintf(w, "%s: %s\n", shortName(x.Name), note)
		}
	}
	for file, why := range leftOut {
		fmt.Fprintf(w, "left out: tests/v3/%s: it %s\n", file, why)
	}
	for _, name := range flaky {
		fmt.Fprintf(w, "failed once and passed when run again: %s\n", name)
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d rows failed", failed, len(r.rows))
	case len(r.rows) == 0:
		return errors.New("no step has that name")
	case len(flaky) > maxFlaky:
		return fmt.Errorf("%d tests needed a second attempt; more than %d are no accident", len(flaky), maxFlaky)
	}
	return nil
}

// counts are the columns of tests, passed and skipped.
func (r row) counts() string {
	if r.Tests == 0 {
		return "-\t" + r.verdict() + "\t-"
	}
	return fmt.Sprintf("%d\t%d\t%d", r.Tests, r.Passed, r.Skipped)
}

// exchange keeps this run's verdicts and returns the verdicts of the last run on the other core.
func (r *results) exchange(other string) (map[string]string, error) {
	file := func(core string) string { return filepath.Join(r.dir, "verdicts-"+core+".json") }
	read := func(core string) map[string]string {
		verdicts := map[string]string{}
		if data, err := os.ReadFile(file(core)); err == nil && json.Unmarshal(data, &verdicts) != nil {
			return map[string]string{} // half written; the next run writes the file anew
		}
		return verdicts
	}
	ours, theirs := read(r.core), read(other)
	for _, x := range r.rows {
		ours[x.Name] = x.verdict()
		if theirs[x.Name] == "" {
			theirs[x.Name] = "not run"
		}
	}
	data, err := json.MarshalIndent(ours, "", "\t")
	if err != nil {
		return nil, err
	}
	return theirs, os.WriteFile(file(r.core), data, 0o600)
}
