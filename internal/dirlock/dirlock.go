// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package dirlock makes a directory that survives a crash, and gives the directory to one owner
// at a time, under whichever name.
//
// The lock of a file system excludes other processes, and within a process goes by the
// name of the file: a symbolic link or a relative path is another name, and on Unix the
// end of a lock under a second name ends the first, too. So a directory of the operating
// system is compared with the locked directories of this process before its lock file is
// opened.
package dirlock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fileName is the name of the lock file.
const fileName = "LOCK"

var (
	mu   sync.Mutex // not held while the disk is asked, which may not answer
	held []*lock
)

// lock is a directory of the operating system that is locked, or about to be.
type lock struct {
	dir  string
	info os.FileInfo
	file io.Closer
}

// Make makes a directory and its parents, and syncs all of the parents, so that a crash cannot
// take away the directory under a synced file. Existing parents are synced too, because an
// earlier process may have made them and been killed before syncing. Once there is a lock file,
// the parents are synced: Take follows Make.
func Make(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(fs.PathJoin(dir, fileName)); err == nil {
		return nil
	}
	var parents []string
	made := 0 // the parents that get an entry now
	for p := dir; fs.PathDir(p) != p; p = fs.PathDir(p) {
		parents = append(parents, fs.PathDir(p))
		if _, err := fs.Stat(p); err != nil {
			made = len(parents)
		}
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, p := range slices.Backward(parents) {
		if err := Sync(fs, p); err != nil && (i < made || !refused(err)) {
			return err
		}
	}
	return nil
}

// refused reports whether a directory that was there before is not this process's to sync: it lacks the
// right, or the file system cannot be written to, or has no such call. A disk that fails is another matter.
func refused(err error) bool {
	return slices.ContainsFunc([]error{os.ErrPermission, syscall.EROFS, syscall.EINVAL, errors.ErrUnsupported}, func(reason error) bool {
		return errors.Is(err, reason)
	})
}

// Sync makes the names in a directory durable.
func Sync(fs vfs.FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// Take locks a directory until the result is closed, which is done once. The error says
// who has the directory, as far as is known.
func Take(fs vfs.FS, dir string) (io.Closer, error) {
	name := fs.PathJoin(dir, fileName)
	if vfs.Root(fs) != vfs.Default {
		return fs.Lock(name) // names have no aliases
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	l := &lock{dir: dir, info: info}
	if err := l.reserve(); err != nil {
		return nil, err
	}
	if l.file, err = fs.Lock(name); err != nil {
		l.forget()
		return nil, err
	}
	return l, nil
}

// reserve keeps others of this process from the directory.
func (l *lock) reserve() error {
	mu.Lock()
	defer mu.Unlock()
	for _, other := range held {
		if os.SameFile(other.info, l.info) {
			return fmt.Errorf("this process has the directory, as %s", other.dir)
		}
	}
	held = append(held, l)
	return nil
}

func (l *lock) forget() {
	mu.Lock()
	defer mu.Unlock()
	held = slices.DeleteFunc(held, func(other *lock) bool { return other == l })
}

// Close lets the directory go.
func (l *lock) Close() error {
	defer l.forget()
	return l.file.Close()
}
