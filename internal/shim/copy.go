// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// prepare makes dir an empty directory, removing an earlier shim. It never
// removes anything that it cannot recognise as one.
func prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("shim: target directory: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	root, err := os.ReadFile(filepath.Join(dir, rootFile))
	if err != nil || !strings.HasPrefix(string(root), generated) {
		return fmt.Errorf("%w, and what it holds is no shim: %s; name a new directory", errNotEmpty, dir)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("shim: removing the earlier shim: %w", err)
		}
	}
	return nil
}

// copyPackages copies the sub-packages of the module in from to the one in to,
// and returns how many there are. The root package's files and directories
// without Go packages stay behind.
func copyPackages(from, to string, tests bool) (int, error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return 0, fmt.Errorf("shim: upstream's sources: %w", err)
	}
	packages := 0
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		sources, err := filepath.Glob(filepath.Join(from, e.Name(), "*.go"))
		if err != nil {
			return packages, err
		}
		if len(sources) == 0 {
			continue
		}
		packages++
		if err := copyTree(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), tests); err != nil {
			return packages, fmt.Errorf("shim: copying %s: %w", e.Name(), err)
		}
	}
	return packages, nil
}

func copyTree(from, to string, tests bool) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir() && e.Name() == "testdata" && !tests:
			return filepath.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case strings.HasSuffix(path, "_test.go") && !tests:
			return nil
		}
		// Files of the module cache are read-only; the copies are the user's.
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
}
