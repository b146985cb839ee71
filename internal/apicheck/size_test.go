// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package apicheck

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

// maxLines is the length from which on a file is about more than one thing.
const maxLines = 550

// TestFilesAreShort holds all packages to files that a reader can hold. The
// length of functions is the linter's.
func TestFilesAreShort(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	err = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && strings.HasPrefix(e.Name(), "."):
			return filepath.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		generated := bytes.Contains(src, []byte("\n// Code generated ")) || bytes.HasPrefix(src, []byte("// Code generated "))
		if n := bytes.Count(src, []byte("\n")); n > maxLines && !generated {
			t.Errorf("%s has %d lines; split it at a subject (at most %d)", path, n, maxLines)
		}
		return nil
	})
	require.NoError(t, err)
}
