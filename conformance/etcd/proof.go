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
)

// Every program has the names of its functions in it, for stack traces. These
// are in no program that runs Raft on the other core.
var (
	weftSymbol     = []byte("github.com/weftraft/weft/raft.(*leader).committable")
	upstreamSymbol = []byte("go.etcd.io/raft/v3.stepLeader")
	// codedSymbol is in those on a shim that turns coding on.
	codedSymbol = []byte("go.etcd.io/raft/v3.withCoding")
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
	case weft && bytes.Contains(data, codedSymbol):
		return coreCoded, nil
	case weft:
		return coreWeft, nil
	case upstream:
		return coreUpstream, nil
	}
	return coreNone, nil
}

// coreLine begins the line by which a test program says what it runs on.
const coreLine = "conformance: core "

// execCommand is what go test starts in place of a test program: it refuses one
// that is linked to the other core, and becomes the program otherwise.
func execCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "exec CORE PROGRAM [ARG...]",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			core, err := coreOf(args[1])
			if err != nil {
				return err
			}
			if core != args[0] && core != coreNone {
				return fmt.Errorf("%s runs on %s, not on %s", args[1], core, args[0])
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
