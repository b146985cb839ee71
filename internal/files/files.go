// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package files writes small files durably, and reads streams in pieces.
package files

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace makes data the content of a file, durably and in one step.
func Replace(path string, data []byte) error {
	next := path + ".next"
	f, err := os.Create(next)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
