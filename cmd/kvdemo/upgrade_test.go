// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// upgradeFrom names the commits whose programs the members run first. make test-upgrade sets it.
const upgradeFrom = "KVDEMO_TEST_UPGRADE_FROM"

// earlier builds kvdemo as it was at a commit of this repository, or skips the test.
func earlier(t *testing.T, commit string) (path string) {
	t.Helper()
	if err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Skipf("commit %s is not here, so there is no earlier kvdemo; in a clone with its history run: make test-upgrade UPGRADE_FROM=COMMIT", commit)
	}
	dir := t.TempDir()
	tree, path := filepath.Join(dir, "tree"), filepath.Join(dir, "kvdemo")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(tree, 0o755))
	// An archive, because a worktree would stay in .git after a test that was killed.
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "git -C "+root+" archive "+commit+" | tar -x -C "+tree).CombinedOutput()
	require.NoError(t, err, "%s", out)
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "./cmd/kvdemo")
	build.Dir, build.Env = tree, append(os.Environ(), "GOWORK=", "GOFLAGS=")
	out, err = build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// exchange stops a node and starts it again with another program, on the same data.
func (f *fleet) exchange(id int, program string) {
	s := f.nodes[id]
	require.NoError(f.t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(f.t, s.cmd.Wait(), "node %d stops well", id)
	f.programs[id] = program
	f.start(id)
	f.healthy()
}

// healthy waits until every node that runs serves a linearizable read.
func (f *fleet) healthy() {
	eventually(f.t, "all nodes to be healthy", func() bool {
		return kvdemo(f.t.Context(), "", "health", "--endpoints", f.endpoints(), "--timeout", "3s").code == 0
	})
}

// sameRevisions checks that all nodes count the commands of the log alike, when there are no more.
func (f *fleet) sameRevisions() {
	var seen []place
	for id := range f.nodes {
		r := kvdemo(f.t.Context(), "", "get", "large", "--json", "--endpoints", f.sure[id])
		require.Zero(f.t, r.code, r.err)
		var at place
		require.NoError(f.t, json.Unmarshal([]byte(r.out), &at))
		seen = append(seen, at)
	}
	for _, at := range seen {
		require.Equal(f.t, seen[0], at)
	}
}

// gate is a gateway beside a fleet.
type gate struct {
	f              *fleet
	listen, client string
	cmd            *exec.Cmd // nil: it does not run
}

// exchange stops the gateway and starts it again with another program.
func (g *gate) exchange(path string) {
	g.stop()
	var peers []string
	for id, s := range g.f.nodes {
		peers = append(peers, fmt.Sprintf("%d=%s", id, s.peer))
	}
	g.cmd = program(g.f.t, "gateway", "--id", "101", "--cluster", "9", "--peers", strings.Join(peers, ","), "--listen", g.listen, "--client-listen", g.client)
	if path != "" {
		g.cmd.Path, g.cmd.Args[0] = path, path
	}
	require.NoError(g.f.t, g.cmd.Start())
	eventually(g.f.t, "the gateway to serve", func() bool {
		return kvdemo(g.f.t.Context(), "", "get", "large", "--endpoints", g.client, "--timeout", "3s").code == 0
	})
}

func (g *gate) stop() {
	if g.cmd != nil {
		require.NoError(g.f.t, g.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(g.f.t, g.cmd.Wait(), "the gateway stops well")
	}
}

// Members of an earlier program are upgraded one by one under load, taken back, and
// upgraded again, and so is a gateway, if the earlier program knows gateways. Every acknowledged write is there, at
// each step.
func TestMembersAreUpgradedAndTakenBack(t *testing.T) {
	commits := strings.Fields(os.Getenv(upgradeFrom))
	if len(commits) == 0 {
		t.Skip("it builds earlier kvdemos, which takes minutes; run: make test-upgrade")
	}
	for _, commit := range commits {
		old := earlier(t, commit)
		help, err := exec.Command(old, "--help").Output()
		require.NoError(t, err)
		gates := strings.Contains(string(help), "\n  gateway ")
		for _, coding := range []string{"auto", "off"} {
			t.Run(commit+"/coding="+coding, func(t *testing.T) { upgrade(t, old, gates, coding) })
		}
	}
}

func upgrade(t *testing.T, old string, gates bool, coding string) {
	f := newFleetOf(t, map[int]string{1: old, 2: old, 3: old}, "--coding", coding)
	f.healthy()
	large := strings.Repeat("large value ", 20_000)
	f.do("put", "large", large)
	loads := []*traffic{f.load(4)}
	g := &gate{f: f, listen: freePort(t), client: freePort(t)}
	if gates {
		g.exchange(old)
		loads = append(loads, f.loadAt([]string{g.client}, 2, "by the gateway "))
	}
	for round, program := range []string{"", old, ""} {
		for id := 1; id <= 3; id++ {
			f.do("put", "large", large)
			f.exchange(id, program)
			require.Equal(t, large, strings.TrimSuffix(f.do("get", "large"), "\n"), "round %d, node %d", round, id)
			if gates && id == 1+round {
				g.exchange(program)
			}
		}
	}
	for _, w := range loads {
		require.Positive(t, w.stop())
	}
	g.stop()
	f.sameRevisions()
	f.stop()
}

// formatRow is a line of the table of formats in docs/upgrading.md.
var formatRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| (\\d+) \\| `(\\w+)` in `([^`]+)` \\|$")

// The table of formats has the versions of the sources. Whoever raises a version reads the
// page, and says what is not possible any more.
func TestUpgradingListsFormats(t *testing.T) {
	page, err := os.ReadFile("../../docs/upgrading.md")
	require.NoError(t, err)
	rows := formatRow.FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, 13)
	for _, row := range rows {
		source, err := os.ReadFile(filepath.Join("../..", row[3]))
		require.NoError(t, err)
		is := regexp.MustCompile(`(?m)^\s*(?:const )?` + row[2] + `\s+=\s+(\d+)\b`).FindStringSubmatch(string(source))
		require.NotNil(t, is, "%s: there is no constant %s", row[3], row[2])
		require.Equal(t, is[1], row[1], "%s: %s; docs/upgrading.md has another version", row[3], row[2])
	}
}
