// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// endings runs pieces of work that begin at once, and returns when each ended.
func endings(a *Agenda, d *Disk, pieces int) (at []time.Duration) {
	for range pieces {
		d.Do(ms, func() { at = append(at, a.Now()) })
	}
	for a.Step(time.Hour) {
	}
	return at
}

func TestDiskDoesOnePieceOfWorkAfterTheOther(t *testing.T) {
	var a Agenda
	d := NewDisk(&a, NewDraws(1, 1))
	require.Equal(t, []time.Duration{ms, 2 * ms, 3 * ms}, endings(&a, d, 3))
}

func TestSlowDiskTakesLongerUntilItIsWellAgain(t *testing.T) {
	var a Agenda
	d := NewDisk(&a, NewDraws(1, 1))
	d.Slow(10, 5*ms)
	var at []time.Duration
	for _, begin := range []time.Duration{0, 20 * ms} {
		a.At(begin, func() { d.Do(ms, func() { at = append(at, a.Now()) }) })
	}
	for a.Step(time.Hour) {
	}
	require.Equal(t, []time.Duration{10 * ms, 21 * ms}, at)
}

func TestHungDiskEndsNothingAndLosesNothing(t *testing.T) {
	var a Agenda
	d := NewDisk(&a, NewDraws(1, 1))
	a.At(ms/2, func() { d.Hang(50 * ms) })
	require.Equal(t, []time.Duration{50*ms + ms/2, 50*ms + ms/2}, endings(&a, d, 2))
	d.Hang(50 * ms)
	require.True(t, d.Hangs())
	d.Mend()
	require.False(t, d.Hangs())
}

// write appends to a file of a disk in use, and syncs if asked to.
func write(t *testing.T, fs vfs.FS, text string, sync bool) {
	t.Helper()
	f, err := fs.OpenReadWrite("dir/file", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	require.NoError(t, err)
	if sync {
		require.NoError(t, f.Sync())
	}
	require.NoError(t, f.Close())
}

// diskWith returns a disk with a file, which was synced.
func diskWith(t *testing.T, text string) *Disk {
	t.Helper()
	d := NewDisk(&Agenda{}, NewDraws(1, 1), "dir")
	require.NoError(t, d.files.MkdirAll("dir", 0o755))
	root, err := d.files.OpenDir("")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	require.NoError(t, d.replace("dir/file", []byte(text)))
	return d
}

func content(t *testing.T, d *Disk) string {
	t.Helper()
	b, err := readFile(d.files, "dir/file")
	require.NoError(t, err)
	return string(b)
}

func TestCrashLeavesWhatItSays(t *testing.T) {
	for left, want := range map[Left]string{All: "new", None: "old"} {
		d := diskWith(t, "old")
		write(t, d.Files(), "new", false)
		require.NoError(t, d.Crash(left))
		require.Equal(t, want, content(t, d))
	}
	seen := map[string]bool{}
	d := diskWith(t, "old")
	for range 50 {
		write(t, d.Files(), "new", false)
		require.NoError(t, d.Crash(Some))
		seen[content(t, d)] = true
		require.NoError(t, d.replace("dir/file", []byte("old")))
	}
	require.Equal(t, map[string]bool{"old": true, "new": true}, seen)
}

func TestFuseEndsAllLaterWrites(t *testing.T) {
	d := diskWith(t, "old")
	fs := d.Files()
	d.Fuse(4) // of the operations open, write, sync, write
	write(t, fs, "abc", true)
	require.False(t, d.Blown())
	for !d.Blown() {
		write(t, fs, "xyz", true)
	}
	write(t, fs, "zzz", true)
	require.NoError(t, d.Crash(All))
	require.NotEqual(t, "zzz", content(t, d))
	require.False(t, d.Blown())
}

func TestFullDiskTakesRewritesOnlyIfItSaysSo(t *testing.T) {
	for _, rewrites := range []bool{true, false} {
		d := diskWith(t, "old")
		fs := d.Files()
		d.Fill(rewrites, ms)
		_, err := fs.Create("dir/other", vfs.WriteCategoryUnspecified)
		require.ErrorIs(t, err, syscall.ENOSPC)
		f, err := fs.OpenReadWrite("dir/file", vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("x"), 0)
		require.Equal(t, rewrites, err == nil)
		require.True(t, d.Full())
		for d.agenda.Step(2 * ms) {
		}
		require.False(t, d.Full())
	}
}

func TestDamageChangesOneBitOrCutsAndIsRepaired(t *testing.T) {
	const text = "some text that is on the disk"
	flips, cuts := 0, 0
	d := diskWith(t, text)
	for range 50 {
		x, err := d.Damage()
		require.NoError(t, err)
		got := content(t, d)
		require.NoError(t, d.Crash(None)) // damage stays over a loss of power
		require.Equal(t, got, content(t, d))
		if len(got) < len(text) {
			require.Equal(t, text[:len(got)], got)
			cuts++
		} else {
			bits := 0
			for i := range got {
				for b := got[i] ^ text[i]; b != 0; b &= b - 1 {
					bits++
				}
			}
			require.Equal(t, 1, bits)
			flips++
		}
		require.NoError(t, x.Repair())
		require.Equal(t, text, content(t, d))
	}
	require.Positive(t, flips)
	require.Positive(t, cuts)
}

func TestSlowProcessorTakesLonger(t *testing.T) {
	var a Agenda
	speed := 1
	c := CPU{After: a.After, Speed: func() int { return speed }}
	var at []time.Duration
	task := func() (time.Duration, func()) { return ms, func() { at = append(at, a.Now()); speed = 10 } }
	c.Add(task)
	c.Add(task)
	for a.Step(time.Hour) {
	}
	require.Equal(t, []time.Duration{ms, 11 * ms}, at)
	require.Equal(t, 11*ms, c.Spent)
}
