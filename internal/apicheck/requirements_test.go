// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package apicheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/weftraft/weft/internal/docs"
)

// run runs a program in dir, and returns what it printed.
func (m machine) run(dir, program string, args ...string) string {
	m.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, m.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(m.t, err, "%s %v: %s", program, args, stderr.String())
	return string(out)
}

// host writes a host's module: its requirements, as path and version, and what
// its one package imports.
func (m machine) host(requires, imports []string) (dir string) {
	m.t.Helper()
	dir = m.t.TempDir()
	var mod, src strings.Builder
	fmt.Fprintf(&mod, "module example.com/host\n\ngo 1.26.0\n")
	for _, req := range requires {
		fmt.Fprintf(&mod, "\nrequire %s\n", req)
	}
	fmt.Fprintf(&src, "package host\n")
	for _, path := range imports {
		fmt.Fprintf(&src, "\nimport _ %q\n", path)
	}
	require.NoError(m.t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod.String()), 0o644))
	require.NoError(m.t, os.WriteFile(filepath.Join(dir, "host.go"), []byte(src.String()), 0o644))
	return dir
}

// required returns what a tidied go.mod requires, by path, but for Weft itself.
func (m machine) required(dir string) map[string]string {
	m.t.Helper()
	m.run(dir, "go", "mod", "tidy")
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(m.t, err)
	f, err := modfile.Parse("go.mod", text, nil)
	require.NoError(m.t, err)
	versions := map[string]string{}
	for _, req := range f.Require {
		if req.Mod.Path != mainModule {
			versions[req.Mod.Path] = req.Mod.Version
		}
	}
	return versions
}

// buildList returns the versions that a host's go.mod leads to, by path.
func (m machine) buildList(dir string) map[string]string {
	m.t.Helper()
	versions := map[string]string{}
	for line := range strings.Lines(m.run(dir, "go", "list", "-m", "all")) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[path] = version
	}
	return versions
}

const raftpb = upstreamRoot + "/raftpb"

// TestReleaseFitsItsHosts moves hosts to the present state as if it were released, and installs its
// programs. The hosts share a machine, because the module cache of each is a thousand files.
func TestReleaseFitsItsHosts(t *testing.T) {
	m, release := releasedMachine(t)
	for name, test := range map[string]func(t *testing.T, released machine, release string){
		"a host of raft alone requires what the document says": hostOfRaftAlone,
		"nothing that a host uses is raised":                   nothingIsRaised,
		"commands can be installed by version":                 commandsCanBeInstalled,
		"each module of a release can be required":             modulesCanBeRequired,
	} {
		t.Run(name, func(t *testing.T) { test(t, machine{t, slices.Clone(m.env)}, release) })
	}
}

// requirementRow is a row of the table in docs/adopt.md: a module, and the
// version that a host on upstream's library requires and one on Weft's.
var requirementRow = regexp.MustCompile("(?m)^\\| `([a-z0-9./]+)` \\| (v[0-9.]+|-) \\| (v[0-9.]+) \\|$")

// A host that uses package raft alone gets what that package needs, and nothing
// of what the commands, the harness and the host around the core need.
func hostOfRaftAlone(t *testing.T, released machine, release string) {
	present := presentMachine(t)
	onUpstream := present.host([]string{upstreamRoot + " v3.7.0"}, []string{upstreamRoot, raftpb})
	before := present.required(onUpstream)
	onWeft := released.host([]string{mainModule + " " + release, upstreamRoot + " v3.7.0"}, []string{weftRoot, raftpb})
	after := released.required(onWeft)

	root, err := docs.Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "adopt.md"))
	require.NoError(t, err)
	said, saidBefore := map[string]string{}, map[string]string{}
	for _, row := range requirementRow.FindAllStringSubmatch(string(text), -1) {
		said[row[1]] = row[3]
		if row[2] != "-" {
			saidBefore[row[1]] = row[2]
		}
	}
	require.Equal(t, saidBefore, before)
	require.Equal(t, said, after)
	require.Contains(t, string(text), fmt.Sprintf("`go list -m all` has %d lines there, and %d on upstream's library",
		len(released.buildList(onWeft)), len(present.buildList(onUpstream))))
}

// olderHost is what a service on upstream's library may require besides, at
// versions of some years ago.
var olderHost = []string{
	upstreamRoot + " v3.7.0",
	"github.com/cockroachdb/pebble v1.1.5",
	"github.com/cockroachdb/pebble/v2 v2.0.2",
	"github.com/prometheus/client_golang v1.15.0",
	"github.com/spf13/cobra v1.8.0",
	"github.com/stretchr/testify v1.9.0",
	"go.opentelemetry.io/otel v1.30.0",
	"go.uber.org/zap v1.26.0",
	"google.golang.org/grpc v1.67.0",
	"google.golang.org/protobuf v1.34.0",
}

// A host that moves to Weft is built with the versions of all else that it was
// built with before, but for those that docs/adopt.md names.
func nothingIsRaised(t *testing.T, released machine, release string) {
	present := presentMachine(t)
	before := present.buildList(present.host(olderHost, nil))
	after := released.buildList(released.host(append([]string{mainModule + " " + release}, olderHost...), nil))
	raised := map[string]string{"golang.org/x/sys": "v0.30.0"} // reedsolomon asks for it
	for path, version := range before {
		want := version
		if v, ok := raised[path]; ok {
			require.NotEqual(t, version, v, "%s need not be excepted", path)
			want = v
		}
		require.Equal(t, want, after[path], path)
	}
	t.Logf("%d modules before, %d after", len(before), len(after))
}

// A release can be installed by its version: no go.mod on the way replaces or
// excludes anything, and each package is found. The raftswap of a release makes a
// shim for that release.
func commandsCanBeInstalled(t *testing.T, m machine, release string) {
	root, err := docs.Root()
	require.NoError(t, err)
	bin, dir := t.TempDir(), docs.Place(t, "host")
	m.env = append(m.env, "GOBIN="+bin)
	m.run(dir, "go", "install", "-n", mainModule+"/cmd/kvdemo@"+release, mainModule+"/cmd/weftbench@"+release)
	m.run(dir, "go", "install", "-n", mainModule+"/examples/counter@"+release, mainModule+"/examples/kv@"+release)
	m.run(dir, "go", "install", mainModule+"/cmd/raftswap@"+release)

	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(root, "rafttest", "shim", "testdata", "host"))))
	m.run(dir, filepath.Join(bin, "raftswap"), "shim", "raft-shim")
	m.run(dir, "go", "mod", "edit", "-replace", upstreamRoot+"=./raft-shim")
	m.run(dir, "go", "mod", "tidy")
	require.Equal(t, release, m.buildList(dir)[mainModule])
	require.Contains(t, m.run(dir, "go", "run", "."), "replicated by "+weftRoot)
}

// A service may require each module of a release: the packages, and all that these import,
// are found at the versions that the release names.
func modulesCanBeRequired(t *testing.T, m machine, release string) {
	packages := map[string]string{
		".": "", "internal/shim": "", // the shim is required by raftswap alone
		"cmd": "/kvdemo/kvpb", "rawnode/metrics": "", "rafttest": "/vnet", "rawnode/state/pebble": "", "rawnode/tracing": "",
	}
	var requires, imports []string
	for _, sub := range shipped {
		name, ok := packages[sub]
		require.True(t, ok, "name a package of the module %s here", sub)
		if sub == "internal/shim" {
			continue
		}
		path := strings.TrimSuffix(mainModule+"/"+sub, "/.")
		requires, imports = append(requires, path+" "+release), append(imports, path+name)
	}
	dir := m.host(requires, imports)
	m.run(dir, "go", "mod", "tidy")
	found := m.run(dir, "go", "list", "-deps", ".")
	for _, path := range imports {
		require.Contains(t, strings.Fields(found), path)
	}
}
