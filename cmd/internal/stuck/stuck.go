// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package stuck makes disks that hang and disks that are slow, for experiments.
package stuck

import (
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// poll is how often a write to a disk that hangs looks whether it may go on.
const poll = 5 * time.Millisecond

// Disk names a file which tells how the disk of a process is. While the file exists and is empty, each
// write, sync, creation and removal waits, and reads go on: to the process that looks as a disk does that
// answers no more. If the file holds a time, such as 20ms, each sync takes so much longer. Without the
// file, or with an empty name, the disk is as it is.
type Disk string

// Set has the disk's syncs take so much longer, or as long as before with 0, or all writes wait with Hangs.
func (d Disk) Set(by time.Duration) error {
	if by == 0 {
		if err := os.Remove(string(d)); !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	text := ""
	if by != Hangs {
		text = by.String()
	}
	// In one step: a file that is being written is empty for a moment.
	next := string(d) + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, string(d))
}

// Hangs, for Set, is how much longer a write takes on a disk that hangs.
const Hangs time.Duration = -1

// FS returns the operating system's file system, on this disk.
func (d Disk) FS() vfs.FS {
	if d == "" {
		return vfs.Default
	}
	return errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			d.BeforeSync()
		default:
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				d.BeforeWrite()
			}
		}
		return nil
	}))
}

// BeforeWrite waits as long as a write to the disk waits.
func (d Disk) BeforeWrite() { d.wait() }

// BeforeSync waits as long as a sync of the disk waits.
func (d Disk) BeforeSync() { time.Sleep(d.wait()) }

// wait waits while the disk hangs, and returns how much longer a sync takes.
func (d Disk) wait() time.Duration {
	for d != "" {
		text, err := os.ReadFile(string(d))
		if err != nil {
			break
		}
		if by, err := time.ParseDuration(string(text)); err == nil {
			return by
		}
		time.Sleep(poll)
	}
	return 0
}
