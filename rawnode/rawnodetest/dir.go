// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Dir is a directory on a disk that a suite or a [Cluster] crashes.
type Dir struct {
	// FS is the file system: in memory, or the operating system's if the factory sets OnDisk.
	FS vfs.FS
	// Path is the directory, which is empty or holds the files of an earlier state machine.
	Path string
}

// newDir returns an empty directory.
func newDir(onDisk bool) (Dir, error) {
	if !onDisk {
		fs := vfs.NewCrashableMem()
		return Dir{fs, "state"}, makeDir(fs, "state")
	}
	path, err := os.MkdirTemp("", "rawnodetest-")
	return Dir{vfs.Default, path}, err
}

// makeDir makes a directory and syncs its parent, so that a crash leaves the directory.
func makeDir(fs vfs.FS, path string) error {
	if err := fs.MkdirAll(path, 0o755); err != nil {
		return err
	}
	parent, err := fs.OpenDir(fs.PathDir(path))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// crash returns the file system in memory that a crash leaves.
func crash(fs *vfs.MemFS, power bool) *vfs.MemFS {
	cfg := vfs.CrashCloneCfg{}
	if power {
		// All unsynced bytes stay, so the draws of RNG make no difference.
		cfg = vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}
	}
	return fs.CrashClone(cfg)
}

// remove deletes a directory of the operating system.
func (d Dir) remove() error {
	if _, ok := d.FS.(*vfs.MemFS); ok {
		return nil
	}
	return os.RemoveAll(d.Path)
}

// crashed returns the directory as a crash at this moment leaves it. With power, as after a process
// was killed, all written bytes stay; without power, only synced bytes. On the operating system's
// file system crashed always keeps power.
func (d Dir) crashed(power bool) (Dir, error) {
	if mem, ok := d.FS.(*vfs.MemFS); ok {
		return Dir{crash(mem, power), d.Path}, nil
	}
	return d.copied()
}

// copied copies a directory of the operating system as of one moment: copied repeats the copy until
// no file was made, renamed, removed or written during the copy.
func (d Dir) copied() (Dir, error) {
	for deadline := time.Now().Add(patience); ; {
		before, err := listing(d.Path)
		if err != nil {
			return Dir{}, err
		}
		path, err := os.MkdirTemp("", "rawnodetest-")
		if err == nil {
			err = copyTree(path, d.Path)
		}
		if err != nil {
			return Dir{}, err
		}
		after, err := listing(d.Path)
		if err != nil || before == after {
			return Dir{d.FS, path}, err
		}
		if err := os.RemoveAll(path); err != nil {
			return Dir{}, err
		}
		if time.Now().After(deadline) {
			return Dir{}, fmt.Errorf("rawnodetest: %s changes all the time, for %v: a crash cannot be imitated", d.Path, patience)
		}
	}
}

// listing returns the names, sizes and times of a directory's files.
func listing(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil {
			var info os.FileInfo
			if info, err = e.Info(); err == nil {
				fmt.Fprintln(&all, path, info.Size(), info.ModTime().UnixNano())
			}
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	return all.String(), err
}

// copyTree copies a directory while another program writes there: a file that vanishes during the
// copy was removed by that program.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", path, err)
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	})
}
