// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/internal/shim"
)

// Every program holds the names of its functions, for stack traces. Each of these names occurs only
// in programs that run Raft on this core.
var (
	weftSymbol     = []byte("github.com/weftraft/weft/raft.(*leader).committable")
	upstreamSymbol = []byte("go.etcd.io/raft/v3.stepLeader")
)

// coreNone is the core of programs without Raft, for example a test of a codec.
const coreNone = "none"

var errTwoCores = errors.New("both cores are in it")

// coreOf tells which Raft core is linked into a program.
func coreOf(binary string) (string, error) {
	data, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	weft, upstream := bytes.Contains(data, weftSymbol), bytes.Contains(data, upstreamSymbol)
	switch {
	case weft && upstream:
		return "", fmt.Errorf("%s: %w", binary, errTwoCores)
	case weft:
		return coreWeft, nil
	case upstream:
		return coreUpstream, nil
	}
	return coreNone, nil
}

// runsOn returns the core of a program in this environment: want, or none.
func runsOn(want, binary string) (string, error) {
	found, err := coreOf(binary)
	if err != nil || found == coreNone {
		return found, err
	}
	if err := checkLibrary(want, binary); err != nil {
		return "", err
	}
	for name, wanted := range map[string]bool{shim.CodingVariable: want == coreCoded, shim.LeasesVariable: hasLeases(want)} {
		if value, set := os.LookupEnv(name); set != wanted {
			return "", fmt.Errorf("%s is to run on %s, and %s is %q", binary, want, name, value)
		}
	}
	return want, nil
}

// checkLibrary returns an error unless a program is linked to the library of a
// core.
func checkLibrary(core, binary string) error {
	found, err := coreOf(binary)
	if err == nil && found != library(core) {
		err = fmt.Errorf("%s runs on %s, not on %s", binary, found, library(core))
	}
	return err
}

// coreLine begins the line in which a test program names its core.
const coreLine = "conformance: core "

// execCommand is the command that go test starts in place of a test program. The command refuses a
// program that is linked to the other core, or an environment of another core, and otherwise
// becomes the program.
func execCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "exec CORE PROGRAM [ARG...]",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			core, err := runsOn(args[0], args[1])
			if err != nil {
				return err
			}
			fmt.Println(coreLine + core)
			program, err := exec.LookPath(args[1])
			if err != nil {
				return err
			}
			return syscall.Exec(program, args[1:], os.Environ())
		},
	}
}
