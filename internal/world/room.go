// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Files returns the file system for a process that starts now. Its writes meet a
// full disk and the fuse.
func (d *Disk) Files() vfs.FS {
	d.fuse, d.image, d.free = 0, nil, d.agenda.Now()
	return errorfs.Wrap(growing{d.files}, errorfs.InjectorFunc(d.before))
}

// before is called before each operation on the file system.
func (d *Disk) before(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	if d.fuse > 0 {
		if d.fuse--; d.fuse == 0 {
			d.image, d.imageErr = d.afterPowerFailure()
		}
	}
	if !d.full {
		return nil
	}
	switch op.Kind {
	case errorfs.OpFileWriteAt: // the engine has asked for the blocks, by Preallocate
		if d.rewrites {
			return nil
		}
		return syscall.ENOSPC
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFilePreallocate:
		return syscall.ENOSPC
	}
	return nil
}

// Fill lets the disk have no room for a time. With rewrites the disk still takes
// writes to a file's own blocks, as most file systems do; others write each block
// to a new place.
func (d *Disk) Fill(rewrites bool, lasting time.Duration) {
	d.full, d.rewrites, d.fullUntil = true, rewrites, max(d.fullUntil, d.agenda.Now()+lasting)
	d.agenda.At(d.fullUntil, func() {
		if d.agenda.Now() >= d.fullUntil {
			d.full = false
		}
	})
}

// Full reports whether the disk has no room.
func (d *Disk) Full() bool { return d.full }

// Fuse lets power fail in the middle of one of the next operations on the files, if
// the disk has no fuse yet. The process goes on until a look at Blown.
func (d *Disk) Fuse(operations int) {
	if d.fuse == 0 && d.image == nil {
		d.fuse = operations
	}
}

// Blown reports whether the fuse has blown: all later writes are lost, and the
// process must end.
func (d *Disk) Blown() bool { return d.image != nil }

// Fused reports whether the disk has a fuse that has not blown.
func (d *Disk) Fused() bool { return d.fuse > 0 }
