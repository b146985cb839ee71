// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command shape prints how the code is laid out: what crosses the seam between
// plain Raft and its extensions, which files need each other, how large types
// and packages are, and how comments read. It is a mirror, not a gate: the
// compiler keeps the seam, and a reader judges the rest.
//
//	go run ./internal/shape
package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/weftraft/weft/internal/docs"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := docs.Root()
	if err != nil {
		return err
	}
	raft, err := load(root, "raft")
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	defer func() { _ = w.Flush() }() // nothing to do about a closed stdout
	if err := printSeam(w, root, raft); err != nil {
		return err
	}
	printCycles(w, raft)
	if err := printFloors(w, root); err != nil {
		return err
	}
	if err := printTree(w, root); err != nil {
		return err
	}
	if err := printKit(w, root); err != nil {
		return err
	}
	if err := printUnused(w, root); err != nil {
		return err
	}
	return printPackages(w, root)
}
