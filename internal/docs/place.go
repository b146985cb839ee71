// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Place returns an empty directory that stands outside of the checkout, and is gone after the
// test. A test has the same directory each time, because the go command compiles again whatever
// stands elsewhere: all of Weft, if a module there replaces a part.
func Place(t testing.TB, name string) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), "weft"+strings.ReplaceAll(root, string(filepath.Separator), "-"), name)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the next run tries again
	return dir
}
