// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is a machine's disk: files that a loss of power can tear (crash.go), room
// that can run out (room.go), bytes that can be damaged (damage.go), and, in this
// file, the time that work takes. The disk does one piece of work after the other.
type Disk struct {
	agenda *Agenda
	draws  Draws
	dirs   []string
	files  *vfs.MemFS

	free      time.Duration // when all work so far is done
	slow      int           // how many times as long work takes, until slowUntil
	slowUntil time.Duration
	hungUntil time.Duration

	full      bool
	fullUntil time.Duration
	rewrites  bool
	fuse      int
	// image, unless nil, is the disk as the blown fuse left it, made with imageErr.
	image    *vfs.MemFS
	imageErr error
}

// NewDisk returns an empty disk. The draws decide what crashes and damage do to
// the files in the directories.
func NewDisk(agenda *Agenda, draws Draws, dirs ...string) *Disk {
	return &Disk{agenda: agenda, draws: draws, dirs: dirs, files: vfs.NewCrashableMem()}
}

// Do plans done for the end of work that takes so long on an idle disk in order.
func (d *Disk) Do(took time.Duration, done func()) {
	now := d.agenda.Now()
	if now < d.slowUntil {
		took *= time.Duration(d.slow)
	}
	d.free = max(d.free, now, d.hungUntil) + took
	d.agenda.At(d.free, func() { d.end(done) })
}

// end ends a piece of work, unless the disk hangs: then the work waits with the others.
func (d *Disk) end(done func()) {
	if !d.Hangs() {
		done()
		return
	}
	d.free = max(d.free, d.hungUntil)
	d.agenda.At(d.hungUntil, func() { d.end(done) })
}

// Slow makes work that begins within a time take so many times as long.
func (d *Disk) Slow(times int, lasting time.Duration) {
	d.slow, d.slowUntil = times, max(d.slowUntil, d.agenda.Now()+lasting)
}

// Hang lets no work end for a time, and reports no error.
func (d *Disk) Hang(lasting time.Duration) {
	d.hungUntil = max(d.hungUntil, d.agenda.Now()+lasting)
}

// Hangs reports whether the disk hangs.
func (d *Disk) Hangs() bool { return d.agenda.Now() < d.hungUntil }

// Mend ends all faults but damage. Work that the disk has delayed ends when it
// would have.
func (d *Disk) Mend() {
	d.slowUntil, d.hungUntil, d.full, d.fullUntil, d.fuse = 0, 0, false, 0, 0
}
