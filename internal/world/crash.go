// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Left is the part of the unsynced bytes that the end of a process leaves.
type Left int

// A process is killed, and the operating system writes the rest: All. Power is lost,
// and some blocks have been written: Some. Nothing was written without a sync: None.
const (
	All Left = iota
	Some
	None
)

// Crash ends the process that uses the disk. If the fuse has blown, the disk is as
// it was at that moment.
func (d *Disk) Crash(left Left) (err error) {
	switch {
	case d.image != nil:
		d.files, err = d.image, d.imageErr
		d.image, d.imageErr = nil, nil
	case left == Some:
		d.files, err = d.afterPowerFailure()
	case left == None:
		d.files = d.files.CrashClone(vfs.CrashCloneCfg{})
	default:
		d.files = d.clone()
	}
	return err
}

// clone returns a copy of the files. All unsynced bytes stay, so the draws make no
// difference.
func (d *Disk) clone() *vfs.MemFS {
	return d.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: d.draws.Rand})
}

// afterPowerFailure returns the data left after a loss of power. (The file system
// can draw the unsynced blocks by itself, but in the order of a map.)
func (d *Disk) afterPowerFailure() (*vfs.MemFS, error) {
	left := d.files.CrashClone(vfs.CrashCloneCfg{})
	percent := Pick(d.draws, 0, 0, 20, 50, 80, 100)
	if percent == 0 {
		return left, nil
	}
	for _, path := range d.paths(left) {
		if err := d.overlay(left, path, percent); err != nil {
			return left, err
		}
	}
	return left, nil
}

// paths returns the files of the disk's directories, in a fixed order.
func (d *Disk) paths(fs vfs.FS) (all []string) {
	for _, dir := range d.dirs {
		names, err := fs.List(dir)
		if err != nil {
			continue // the directory was never made, or not synced
		}
		slices.Sort(names)
		for _, name := range names {
			all = append(all, fs.PathJoin(dir, name))
		}
	}
	return all
}

// overlay adds some of the unsynced blocks of a file.
func (d *Disk) overlay(left *vfs.MemFS, path string, percent int) error {
	now, err := readFile(d.files, path)
	if err != nil {
		return nil // the file has another name by now, and the new name was not synced
	}
	synced, err := readFile(left, path)
	if err != nil || string(now) == string(synced) {
		return err
	}
	f, err := left.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	const block = 512
	for at := 0; at < len(now); at += block {
		if d.draws.IntN(100) >= percent {
			continue
		}
		if _, err := f.WriteAt(now[at:min(at+block, len(now))], int64(at)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

func readFile(fs vfs.FS, path string) ([]byte, error) {
	info, err := fs.Stat(path)
	if err != nil {
		return nil, err
	}
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	if len(b) > 0 {
		_, err = f.ReadAt(b, 0)
	}
	return b, errors.Join(err, f.Close())
}
