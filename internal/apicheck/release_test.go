// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package apicheck

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/weftraft/weft/internal/docs"
)

var commit = flag.String("commit", "", "check a release of this commit, such as HEAD; it takes minutes")

// TestRelease has the world after a release of the commit: each module is packed as its tag would
// be, from the commit's files alone, and found at a proxy. The cache of modules lies in .cache and is
// kept, but for Weft's own.
func TestRelease(t *testing.T) {
	if *commit == "" {
		t.Skip("builds every module of a release: make release-check")
	}
	root, err := docs.Root()
	require.NoError(t, err)
	dir := filepath.Join(root, ".cache", "release")
	for _, stale := range []string{"proxy", "sources", "cache/github.com/weftraft", "cache/cache/download/github.com/weftraft"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, stale)))
	}
	id := strings.TrimSpace(presentMachine(t).run(root, "git", "rev-parse", *commit))
	sources := filepath.Join(dir, "sources") // zip takes no work tree, which this checkout may be
	presentMachine(t).run(root, "git", "clone", "--quiet", "--shared", "--no-checkout", root, sources)
	m, release := machineWith(t, dir, func(out io.Writer, m module.Version, _, sub string) error {
		return zip.CreateFromVCS(out, m, sources, id, strings.TrimPrefix(sub, "."))
	})
	m.env = append(m.env, "GOFLAGS=-mod=mod -modcacherw -trimpath") // so that what is built is found again
	for _, sub := range shipped {
		t.Run(sub, func(t *testing.T) { machine{t, m.env}.builds(filepath.Join(dir, "proxy"), sub, release) })
	}
	t.Run("commands", func(t *testing.T) { machine{t, m.env}.installs(release) })
	t.Run("page", func(t *testing.T) { machine{t, m.env}.followsPage(root, release) })
}

// builds unpacks what the tag of a module would hold, and builds its packages and its tests there:
// without go.work, without a replacement, without any other file.
func (m machine) builds(proxy, sub, release string) {
	path := strings.TrimSuffix(mainModule+"/"+sub, "/.")
	at := m.t.TempDir()
	archive := filepath.Join(proxy, filepath.FromSlash(path), "@v", release+".zip")
	require.NoError(m.t, zip.Unzip(at, module.Version{Path: path, Version: release}, archive))
	require.FileExists(m.t, filepath.Join(at, "LICENSE"))
	before, err := os.ReadFile(filepath.Join(at, "go.mod"))
	require.NoError(m.t, err)
	f, err := modfile.Parse("go.mod", before, nil)
	require.NoError(m.t, err)
	require.Empty(m.t, f.Replace, "a program cannot be installed by its version then")
	m.run(at, "go", "build", "./...")
	m.run(at, "go", "vet", "./...")
	after, err := os.ReadFile(filepath.Join(at, "go.mod"))
	require.NoError(m.t, err)
	require.Equal(m.t, string(before), string(after), "the go command had to change go.mod: make tidy")
}

// installs installs the programs of a release by its version, and asks kvdemo for its own.
func (m machine) installs(release string) {
	bin := m.t.TempDir()
	m.env = append(m.env, "GOBIN="+bin)
	for _, program := range []string{"cmd/kvdemo", "cmd/raftswap", "cmd/weftbench", "examples/counter", "examples/kv"} {
		m.run(bin, "go", "install", mainModule+"/"+program+"@"+release)
	}
	require.Contains(m.t, m.run(bin, filepath.Join(bin, "kvdemo"), "version"), "kvdemo "+release)
}

// followsPage follows docs/service.md as it reads after a release: all lines but the replacements.
func (m machine) followsPage(root, release string) {
	script, err := docs.Script(filepath.Join(root, "docs", "service.md"))
	require.NoError(m.t, err)
	script = regexp.MustCompile(`(?m)^go mod edit (.*\\\n)*.*\n`).ReplaceAllString(script, "")
	require.NotContains(m.t, script, "replace")
	begin, run, ok := strings.Cut(script, "go mod tidy\n")
	require.True(m.t, ok, script)
	dir := m.t.TempDir()
	m.run(dir, "sh", "-e", "-c", begin)
	words := filepath.Join(dir, "words")
	require.NoError(m.t, os.CopyFS(words, os.DirFS(filepath.Join(root, "docs", "service", "first"))))
	require.Contains(m.t, m.run(words, "sh", "-e", "-c", "go mod tidy\n"+run), "hello: 1")
	require.Equal(m.t, release, m.buildList(words)[mainModule])
}
