// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Spindle is the time that a disk's work takes: the disk may be slow, or hang without
// an error.
type Spindle struct {
	agenda *Agenda

	free      time.Duration // when all work so far is done
	slow      int           // how many times as long work takes, until slowUntil
	slowUntil time.Duration
	hungUntil time.Duration
}

// NewSpindle returns the spindle of an idle disk.
func NewSpindle(agenda *Agenda) Spindle { return Spindle{agenda: agenda} }

// Do plans done for the end of work that takes so long on an idle disk in order. The
// disk does one piece of work after the other.
func (s *Spindle) Do(took time.Duration, done func()) {
	s.free = max(s.free, s.agenda.Now(), s.hungUntil) + s.long(took)
	s.agenda.At(s.free, func() { s.end(done) })
}

// Beside is Do for work that does not wait for other work.
func (s *Spindle) Beside(took time.Duration, done func()) {
	s.agenda.After(s.long(took), func() { s.end(done) })
}

func (s *Spindle) long(took time.Duration) time.Duration {
	if s.agenda.Now() < s.slowUntil {
		took *= time.Duration(s.slow)
	}
	return took
}

// end ends a piece of work, unless the disk hangs: then the work waits with the others.
func (s *Spindle) end(done func()) {
	if !s.Hangs() {
		done()
		return
	}
	s.free = max(s.free, s.hungUntil)
	s.agenda.At(s.hungUntil, func() { s.end(done) })
}

// Slow makes work that begins within a time take so many times as long.
func (s *Spindle) Slow(times int, lasting time.Duration) {
	s.slow, s.slowUntil = times, max(s.slowUntil, s.agenda.Now()+lasting)
}

// Hang lets no work end for a time, and reports no error.
func (s *Spindle) Hang(lasting time.Duration) {
	s.hungUntil = max(s.hungUntil, s.agenda.Now()+lasting)
}

// Hangs reports whether the disk hangs.
func (s *Spindle) Hangs() bool { return s.agenda.Now() < s.hungUntil }

// Mend ends what makes the disk slow. Work that the disk has delayed ends when it
// would have.
func (s *Spindle) Mend() { s.slowUntil, s.hungUntil = 0, 0 }

// Disk is a machine's disk: a spindle, and files that a loss of power can tear
// (crash.go), room that can run out (room.go), and bytes that can be damaged
// (damage.go).
type Disk struct {
	Spindle
	draws Draws
	dirs  []string
	files *vfs.MemFS

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
	return &Disk{Spindle: NewSpindle(agenda), draws: draws, dirs: dirs, files: vfs.NewCrashableMem()}
}

// Mend ends all faults but damage.
func (d *Disk) Mend() {
	d.Spindle.Mend()
	d.full, d.fullUntil, d.fuse = false, 0, 0
}
