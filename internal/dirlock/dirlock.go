// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package dirlock gives a directory to one owner at a time, under whichever name.
//
// The lock of a file system excludes other processes, and within a process goes by the
// name of the file: a symbolic link or a relative path is another name, and on Unix the
// end of a lock under a second name ends the first, too. So a directory of the operating
// system is compared with the locked directories of this process before its lock file is
// opened.
package dirlock

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

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
