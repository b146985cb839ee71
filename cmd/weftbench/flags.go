// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/internal/lab"
)

// outFlags say where a report goes.
type outFlags struct {
	out  string
	json bool
}

func (f *outFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.out, "out", "", "put the report, in Markdown, into this file (default: standard output)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print what was measured as JSON")
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.check() }
}

// check finds out before the measurement that its report could not be written.
func (f *outFlags) check() error {
	if f.out == "" {
		return nil
	}
	file, err := os.OpenFile(f.out, os.O_RDWR, 0)
	if err == nil {
		return file.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Dir(f.out))
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// write writes the report of a measurement. Of one that failed, what it has is printed, and no file is touched.
func (f *outFlags) write(cmd *cobra.Command, s *lab.Section, err error) error {
	if err == nil {
		return s.Write(cmd.OutOrStdout(), f.out, f.json)
	}
	if s != nil && slices.ContainsFunc(s.Tables, func(t lab.Table) bool { return len(t.Rows) > 1 }) {
		err = errors.Join(err, s.Write(cmd.OutOrStdout(), "", f.json))
	}
	return err
}

// benchFlags are those of commands that measure processes of kvdemo.
type benchFlags struct {
	programs
	report outFlags
	data   string
}

func (f *benchFlags) add(cmd *cobra.Command) {
	f.programs.add(cmd)
	f.report.add(cmd)
	cmd.Flags().StringVar(&f.data, "data", "", "directory for the nodes' data (default: a temporary one)")
}

// run measures, given the path of kvdemo and a directory for the nodes' data, and writes the report.
func (f *benchFlags) run(cmd *cobra.Command, measure func(kvdemo, dir string) (*lab.Section, error)) error {
	return f.inData(f.data, func(kvdemo, dir string) error {
		s, err := measure(kvdemo, dir)
		return f.report.write(cmd, s, err)
	})
}

// Bounds of what is simulated in memory.
const (
	maxVoters = 15
	maxSize   = 64 << 20
	maxLoad   = 4.0
)

// within refuses values of a flag that are too small or too large.
func within[T int | float64 | time.Duration](flag string, least, most T, values ...T) error {
	for _, v := range values {
		if least <= v && v <= most { // which NaN is not
			continue
		}
		return fmt.Errorf("--%s: %v, want %v to %v", flag, v, least, most)
	}
	return nil
}

// oneOf refuses other values of a flag.
func oneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("--%s: %q, want one of %s", flag, value, strings.Join(values, ", "))
}
