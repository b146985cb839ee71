// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/build"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/weftraft/weft/rafttest/etcd/live"
)

// No library of C stands between etcd and the system, and a disk cannot be made to hang from outside without
// rights that few machines give. So etcd is built here with an overlay of Go's package syscall: while
// the file named by stuckVariable exists, no sync ends. All sources of etcd and Weft are unchanged.
const stuckVariable = "CONFORMANCE_STUCK_DISK"

// syncs are the beginnings of the system calls by which etcd's log and its store wait for the disk.
var syncs = []string{"func Fdatasync(fd int) (err error) {\n", "func Fsync(fd int) (err error) {\n"}

// stuckSource is a file that the overlay adds to package syscall.
const stuckSource = `package syscall

func waitForDisk() {
	name, ok := Getenv("` + stuckVariable + `")
	for ok && Access(name, 0) == nil {
		_ = Nanosleep(&Timespec{Nsec: 5e6}, nil)
	}
}
`

// stuckSyncs returns the files of the overlay of package syscall.
func stuckSyncs() (map[string]string, error) {
	dir := filepath.Join(build.Default.GOROOT, "src", "syscall")
	file := filepath.Join(dir, "zsyscall_linux_"+runtime.GOARCH+".go")
	src, err := replaced(file, syncs[0], syncs[0]+"\twaitForDisk()\n")
	if err != nil {
		return nil, err
	}
	waits := strings.Replace(src, syncs[1], syncs[1]+"\twaitForDisk()\n", 1)
	return map[string]string{file: waits, filepath.Join(dir, "zz_stuck_linux.go"): stuckSource}, nil
}

// hungDisks has the disks of leaders hang.
func hungDisks(ctx context.Context, w *workdir, o options) []row {
	return []row{rowFor("live cluster whose leaders' disks hang", coreWeft, func() (fmt.Stringer, error) {
		files, err := stuckSyncs()
		if err != nil {
			return nil, err
		}
		binary, err := w.buildOverlaid(ctx, "etcd-stuck", files)
		if err != nil {
			return nil, err
		}
		return runLive(ctx, w, live.Hangs, live.Options{Seed: o.seed, Binaries: []string{binary}, Stuck: stuckVariable}, "stuck")
	})}
}
