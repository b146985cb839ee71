// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package room asks how much room there is on a disk.
package room

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/storage"
)

// ErrLittle says that a disk has less room than is needed.
var ErrLittle = errors.New("too little room on the disk")

// ForNode is how many bytes a new node wants free: a segment of the log.
const ForNode = storage.DefaultSegmentBytes

// Free returns the number of free bytes for files below a directory. For a directory
// that does not exist yet, Free looks at the directory in which it will be made.
func Free(dir string) (uint64, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	for {
		_, err := os.Stat(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	usage, err := vfs.Default.GetDiskUsage(dir)
	return usage.AvailBytes, err
}

// Check returns nil if a directory has room for so many bytes, or if free, which
// is Free but in tests, cannot tell. Otherwise it returns ErrLittle with both.
func Check(free func(dir string) (uint64, error), dir string, need uint64) error {
	if have, err := free(dir); err == nil && have < need {
		return fmt.Errorf("%w: %s has %s, want %s", ErrLittle, dir, megabytes(have), megabytes(need))
	}
	return nil
}

func megabytes(n uint64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
