// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// file is one file to load. Its key is its path below the root, with slashes.
type file struct {
	key  string
	path string
	size int64
}

// fileSet is what a directory has to load.
type fileSet struct {
	files   []file
	bytes   int64
	skipped []string // what was left out, and why
}

// findFiles lists the regular files below root in the order of their paths, at
// most limit of them (0: all). What no key or value can hold is left out and
// named.
func findFiles(root string, limit int) (fileSet, error) {
	var set fileSet
	info, err := os.Stat(root)
	if err != nil {
		return set, fmt.Errorf("directory of files to load: %w; name one that exists", err)
	}
	if !info.IsDir() {
		return set, fmt.Errorf("directory of files to load: %s is a file; name the directory it is in", root)
	}
	// With the slash, so that a root which is a symbolic link is followed.
	root += string(filepath.Separator)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() || (limit > 0 && len(set.files) == limit) {
			return nil
		}
		return set.add(root, path, d)
	})
	if err != nil {
		return set, fmt.Errorf("list files to load: %w", err)
	}
	if len(set.files) == 0 {
		return set, fmt.Errorf("no files to load in %s (%d left out); name a directory with files of at most %d bytes", root, len(set.skipped), kv.MaxValueBytes)
	}
	return set, nil
}

func (s *fileSet) add(root, path string, d fs.DirEntry) error {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went while we looked
	}
	if err != nil {
		return err
	}
	f := file{key: filepath.ToSlash(rel), path: path, size: info.Size()}
	if err := errors.Join(kv.CheckKey(f.key), kv.CheckValue(int(f.size))); err != nil {
		s.skipped = append(s.skipped, fmt.Sprintf("%s: %v", path, err))
		return nil
	}
	s.files = append(s.files, f)
	s.bytes += f.size
	return nil
}

// digests reads all files again and returns their SHA-256 by key.
func (s *fileSet) digests(ctx context.Context) (map[string][]byte, error) {
	sums := make(map[string][]byte, len(s.files))
	for _, f := range s.files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(f.path)
		if err != nil {
			return nil, fmt.Errorf("read a loaded file again: %w", err)
		}
		sum := sha256.Sum256(data)
		sums[f.key] = sum[:]
	}
	return sums, nil
}
