// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestProfile(t *testing.T) {
	read := func(text string) profile {
		path := filepath.Join(t.TempDir(), "profile")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := readProfile(path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a := read("mode: set\nx/a.go:1.1,2.2 3 1\nx/a.go:3.1,4.2 1 0\n")
	b := read("mode: set\nx/a.go:3.1,4.2 1 7\nx/b.go:1.1,2.2 4 0\n")
	if got := a.percent(); got != 75 {
		t.Errorf("a: %v%%, want 75%%", got)
	}
	both := a.merge(b)
	if got := both.percent(); got != 50 {
		t.Errorf("together: %v%%, want 50%%", got)
	}
	if got := both.missed(); len(got) != 1 || got[0] != "x/b.go:1.1,2.2" {
		t.Errorf("missed: %v", got)
	}
	if got := (profile{}).percent(); got != 0 {
		t.Errorf("nothing: %v%%", got)
	}
}
