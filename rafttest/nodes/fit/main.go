// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Fit measures a node's costs of work: fit runs three real hosts on this machine,
// with logs on its disk and TCP between them, under loads of several sizes, and
// prints a cost table for package nodes that explains the processor time of their
// stages and of the process.
//
//	go run ./rafttest/nodes/fit
//
// The processor should have nothing else to do. The costs of a wire between
// machines cannot be seen on one machine; the table has the costs of a 10 Gbit/s
// network.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	each := flag.Duration("time", 2*time.Second, "how long each load is applied")
	dir := flag.String("dir", "", "where the logs go; empty: the directory for temporary files")
	flag.Parse()
	if err := run(*dir, *each); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

func run(dir string, each time.Duration) error {
	tmp, err := os.MkdirTemp(dir, "weft-fit-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the system's own directory for such files
	var all []sample
	for _, size := range []int{16, 1 << 10, 16 << 10, 64 << 10, 1 << 20} {
		for _, clients := range []int{1, 16, 64} {
			s, err := measure(tmp, size, clients, each)
			if err != nil {
				return fmt.Errorf("size %d, clients %d: %w", size, clients, err)
			}
			fmt.Printf("// %8d bytes, %2d clients: %7.0f commands/s, %6.1f us of processor time each\n", size, clients, s.commands/each.Seconds(), s.cpu/s.commands*1e6)
			all = append(all, s)
		}
	}
	var alone []sample
	for _, size := range []int{16, 1 << 10, 64 << 10} {
		for _, entries := range []int{1, 32} {
			s, err := logAlone(tmp, size, entries, 200)
			if err != nil {
				return fmt.Errorf("log alone, size %d: %w", size, err)
			}
			alone = append(alone, s)
		}
	}
	sync, kib, err := disk(tmp)
	if err != nil {
		return err
	}
	print(all, alone, sync, kib)
	return nil
}
