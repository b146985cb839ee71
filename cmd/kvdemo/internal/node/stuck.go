// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// stuckPoll is how often a write to a stuck disk looks whether it may go on.
const stuckPoll = 5 * time.Millisecond

// disk returns the file system for the log and the state: the operating system's. With
// Config.StuckDisk each write, sync, creation and removal waits while that file exists, and
// reads go on: to the node that looks as a disk does that answers no more.
func (c Config) disk() vfs.FS {
	if c.StuckDisk == "" {
		return vfs.Default
	}
	return errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		for op.Kind.ReadOrWrite() == errorfs.OpIsWrite && isThere(c.StuckDisk) {
			time.Sleep(stuckPoll)
		}
		return nil
	}))
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
