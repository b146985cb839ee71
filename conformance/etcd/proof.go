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

// Every program has the names of its functions in it, for stack traces. These
// are in no program that runs Raft on the other core.
var (
	weftSymbol     = []byte("github.com/weftraft/weft/raft.(*leader).committable")
	upstreamSymbol = []byte("go.etcd.io/raft/v3.stepLeader")
)

// coreNone is the core of programs that need none, such as a test of a codec.
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

// runsOn returns the core that a program has in this environment: want, or none.
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

// coreLine begins the line by which a test program says what it runs on.
const coreLine = "conformance: core "

// execCommand is what go test starts in place of a test program: it refuses one
// that is linked to the other core, or whose environment is not the core's, and
// becomes the program otherwise.
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
