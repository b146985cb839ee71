// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

// Every go.mod of the repository is in the workspace, but for hosts and stubs, and
// those in it require each other at one release.
func TestModulesRequireEachOtherAtOneRelease(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	all, release, err := modules(root)
	require.NoError(t, err)
	require.Regexp(t, `^v\d+\.\d+\.\d+$`, release)
	dirs := map[string]bool{}
	for _, m := range all {
		dirs[m.dir] = true
		needs, err := requirements(m.dir)
		require.NoError(t, err)
		for _, other := range all {
			if version, ok := needs[other.path]; ok {
				require.Equal(t, release, version, "%s requires %s", m.path, other.path)
			}
		}
	}
	err = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && strings.HasPrefix(e.Name(), "."), e.Name() == "testdata",
			strings.HasSuffix(e.Name(), "stub"), path != root && standsAlone(path):
			return filepath.SkipDir
		case e.Name() == "go.mod" && !dirs[filepath.Dir(path)]:
			t.Errorf("%s is not in go.work", path)
		}
		return nil
	})
	require.NoError(t, err)
}

// standsAlone reports whether a module has a workspace of its own, because of what it requires.
func standsAlone(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.work"))
	return err == nil
}

// The commands of a release are built from the versions with which they were
// tested: the workspace raises none.
func TestCommandsHaveTheVersionsOfTheWorkspace(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	own, _, err := modules(root)
	require.NoError(t, err)
	needs, err := requirements(filepath.Join(root, "cmd"))
	require.NoError(t, err)
	for _, m := range own {
		delete(needs, m.path)
	}
	cmd := exec.Command("go", append([]string{"list", "-m"}, slices.Collect(maps.Keys(needs))...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK=")
	out, err := cmd.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		require.Equal(t, version, needs[path], "%s; run: cd cmd && GOWORK=off go mod edit -require=%s@%s, and make tidy", path, path, version)
		delete(needs, path)
	}
	require.Empty(t, needs)
}

// What is not tidy is found, and mended: a requirement that nothing needs, one
// that is missing, and one of another release.
func TestUntidyModuleIsMended(t *testing.T) {
	a, b := aModule{"example.com/a", t.TempDir()}, aModule{"example.com/a/b", t.TempDir()}
	write := func(m aModule, name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o644))
	}
	write(a, "go.mod", "module example.com/a\n\ngo 1.26.0\n")
	write(a, "a.go", "package a\n")
	write(b, "b.go", "package b\n\nimport _ \"example.com/a\"\n")
	const tidied = "module example.com/a/b\n\ngo 1.26.0\n\nrequire example.com/a v0.7.0\n"
	for _, untidy := range []string{
		"module example.com/a/b\n\ngo 1.26.0\n",
		"module example.com/a/b\n\ngo 1.26.0\n\nrequire example.com/a v0.6.0\n",
		tidied + "\nrequire example.com/a/c v0.7.0\n",
	} {
		write(b, "go.mod", untidy)
		all := []aModule{a, b, {"example.com/a/c", a.dir}}
		require.ErrorIs(t, tidy(b, all, "v0.7.0", true), errUntidy)
		text, err := os.ReadFile(filepath.Join(b.dir, "go.mod"))
		require.NoError(t, err)
		require.Equal(t, untidy, string(text), "a check changes nothing")
		require.NoError(t, tidy(b, all, "v0.7.0", false))
		text, err = os.ReadFile(filepath.Join(b.dir, "go.mod"))
		require.NoError(t, err)
		require.Equal(t, tidied, string(text))
		require.NoError(t, tidy(b, all, "v0.7.0", true))
	}
}
