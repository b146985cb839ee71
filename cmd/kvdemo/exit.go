// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

const (
	exitFailure     = 1
	exitUsage       = 2
	exitUnknown     = 3
	exitNotFound    = 4
	exitUnreachable = 5
	exitInterrupted = 130 // shells' status of a program ended by SIGINT
)

// errUsage marks mistakes in the command line, errInterrupted a command that a
// signal ended.
var (
	errUsage       = errors.New("see the command's --help")
	errInterrupted = errors.New("interrupted")
)

// exit is one exit status.
type exit struct {
	code  int
	means string // as --help has it
	is    func(error) bool
}

// exits are all statuses. The first match of an error counts.
var exits = []exit{
	{0, "success", func(err error) bool { return err == nil }},
	{exitUsage, "the command line, a key or a value is not possible", isAny(errUsage, kv.ErrInvalid)},
	{exitInterrupted, "interrupted by a signal; a write that was under way may take effect", isAny(errInterrupted)},
	{exitUnknown, "a write may or may not take effect; read before you write again", isAny(client.ErrUnknown)},
	{exitNotFound, "there is no such key, or no such member", isAny(kv.ErrNotFound)},
	{exitUnreachable, "a node, or a majority, was not reached in time; a write has no effect", client.Unreachable},
	{exitFailure, "any other failure", func(error) bool { return true }},
}

func isAny(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

// exitOf returns the exit status of a command.
func exitOf(err error) int {
	for _, e := range exits {
		if e.is(err) {
			return e.code
		}
	}
	return exitFailure // which the last line says as well
}

// exitHelp is the table for --help.
func exitHelp() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Exit status:")
	for _, e := range slices.SortedFunc(slices.Values(exits), func(a, b exit) int { return a.code - b.code }) {
		fmt.Fprintf(&b, "\n  %3d  %s", e.code, e.means)
	}
	return b.String()
}
