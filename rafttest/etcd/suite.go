// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/shim"
	"github.com/weftraft/weft/rafttest/etcd/live"
)

// step is a part of the run, and returns a row of the table for each package or scenario.
type step struct {
	name string
	run  func(context.Context, *workdir, options) []row
	// weft says that the step is about what upstream's library does not have, or shows by a comparison with Weft.
	weft bool
}

func onBoth(name string, run func(context.Context, *workdir, options) []row) step {
	return step{name: name, run: run}
}

func onWeft(name string, run func(context.Context, *workdir, options) []row) step {
	return step{name: name, run: run, weft: true}
}

// stages returns the steps: stages follow one another, the lanes of a stage run side by side, and
// the steps of a lane in turn. Tests mostly wait, so that two lanes of tests do not starve each
// other; live clusters run alone on the machine.
func stages(full bool) [][][]step {
	unit, integration := unitTests, raftFacing
	if full {
		unit, integration = everything(serverPath), everything(testsPath+"/integration")
	}
	return [][][]step{
		{
			{
				onBoth("vet", vet),
				onBoth("unit", func(ctx context.Context, w *workdir, o options) []row { return runTests(ctx, w, o.core, unit) }),
				onBoth("integration", func(ctx context.Context, w *workdir, o options) []row { return runTests(ctx, w, o.core, integration) }),
			},
			{onWeft("coded-unit", coded(nodeTests)), onWeft("coded-integration", coded(integration))},
		},
		{
			{onWeft("leased-unit", leased(nodeTests)), onWeft("leased-leader", leaderLeased)},
			{onWeft("leased-integration", leased(integration))},
		},
		{{
			onBoth("live", played("live cluster under kill -9", live.Run)),
			// At each start a member changes its core and keeps its disk.
			onWeft("mixed", played("live cluster, members change cores", live.Run, coreWeft, coreUpstream)),
			onWeft("coded-live", played("live cluster", live.Run, coreCoded)),
			onWeft("coded-rolling", played("rolling upgrade and downgrade", live.Roll, coreUpstream, coreCoded)),
			onWeft("leased-live", leasedCluster), onWeft("stuck", hungDisks),
			onWeft("weights", played("live cluster with weights", live.Weights, coreWeft)), onBoth("reads", readCosts),
		}},
	}
}

// coded runs tests on a shim that turns coding on.
func coded(chosen []selection) func(context.Context, *workdir, options) []row {
	return func(ctx context.Context, w *workdir, o options) []row {
		return called(codedFrom(o), runTests(ctx, w, coreCoded, withoutOneDisk(chosen, o.coding)))
	}
}

// oneDisk are tests that begin a cluster anew from the disk of a single member. The disk has only
// the member's own units of coded entries; the writes of these tests are small, and stored whole if
// coding begins at smallWrites or above.
var oneDisk = []string{"TestForceNewCluster"}

const smallWrites = 512

func withoutOneDisk(chosen []selection, coding int) []selection {
	if coding >= smallWrites {
		return chosen
	}
	return without(chosen, oneDisk)
}

// without returns selections without tests of some names.
func without(chosen []selection, names []string) []selection {
	chosen = slices.Clone(chosen)
	for i := range chosen {
		chosen[i].without = names
	}
	return chosen
}

// leased runs tests on a shim that turns roster leases on.
func leased(chosen []selection) func(context.Context, *workdir, options) []row {
	return func(ctx context.Context, w *workdir, o options) []row {
		return called(withLeases, runTests(ctx, w, coreLeased, without(chosen, append(slices.Clone(readsAsSigns), noPreVote...))))
	}
}

// readsAsSigns are tests that contradict responders: for these tests the answer to a linearizable
// read proves that the leader is in touch, while a responder answers without the leader.
//
//   - TestDropReadUnderNetworkPartition cuts the leader off, and wants a read at a
//     follower to fail ("leader changed"): the follower answers by its lease.
//   - TestRejectUnhealthyRemove stops two members and waits for a leader by a
//     linearizable read, then calls the leader that the members name. If the old leader
//     is among the two, the read succeeds nevertheless, before an election.
//
// The tests run with the leader's lease alone.
var readsAsSigns = []string{"TestDropReadUnderNetworkPartition", "TestRejectUnhealthyRemove"}

// noPreVote are tests with a node whose Config has neither PreVote nor CheckQuorum, unlike each
// etcd in production. A host with such a Config ends if its environment turns leases on.
var noPreVote = []string{"TestApplyConfigChangeUpdatesConsistIndex", "TestProcessIgnoreMismatchMessage"}

// leaderLeased runs the tests that contradict responders with the leader's lease alone.
func leaderLeased(ctx context.Context, w *workdir, o options) []row {
	return called(", with the leader's lease alone", runTests(ctx, w, coreLeaderLeased, []selection{
		{path: testsPath + "/integration", only: readsAsSigns[1:]},
		{path: testsPath + "/integration/clientv3/connectivity", only: readsAsSigns[:1]},
	}))
}

// called adds words to the names of rows.
func called(words string, rows []row) []row {
	for i := range rows {
		rows[i].Name += words
	}
	return rows
}

const withLeases = ", with leases"

func codedFrom(o options) string { return fmt.Sprintf(", coded from %d B", o.coding) }

// selection is a set of tests of a package: all tests, or the tests of some files.
type selection struct {
	path    string // of the package; with "/..." also of the packages below
	files   []string
	without []string // names of tests
	only    []string // names of tests; all if empty
}

// unitTests are etcd's own tests of the parts that stand on Raft: the server with its storage,
// membership, peer transport, snapshots, linearizable reads, and log.
var unitTests = []selection{
	{path: serverPath + "/etcdserver/..."},
	{path: serverPath + "/storage/wal/..."},
}

// nodeTests are the unit tests that start nodes.
var nodeTests = []selection{
	{path: serverPath + "/etcdserver"},
	{path: serverPath + "/etcdserver/api/rafthttp"},
}

// raftFacing are etcd's integration tests about Raft's subjects: members that come, go, restart,
// lead, and lose touch. The other tests are about leases, authentication, tracing and so on, take
// five minutes more, and pass as well (--full).
var raftFacing = []selection{
	{path: testsPath + "/integration", files: []string{"cluster_test.go", "member_test.go", "network_partition_test.go",
		"revision_test.go", "v3_failover_test.go", "v3_leadership_test.go"}},
	{path: testsPath + "/integration/snapshot"},
	{path: testsPath + "/integration/clientv3/snapshot"},
	{path: testsPath + "/integration/clientv3", files: []string{"cluster_test.go", "maintenance_test.go"}},
	{path: testsPath + "/integration/clientv3/connectivity", files: []string{"network_partition_test.go", "server_shutdown_test.go"}},
}

func everything(path string) []selection { return []selection{{path: path + "/..."}} }

func vet(ctx context.Context, w *workdir, o options) []row {
	start := time.Now()
	err := w.run(ctx, o.core, "vet", serverPath+"/...")
	return []row{{Name: "go vet " + serverPath + "/...", Core: o.core, Took: time.Since(start), err: err}}
}

// runTests runs selections and makes a row of each package that has tests.
func runTests(ctx context.Context, w *workdir, core string, chosen []selection) []row {
	want, err := w.wanted(ctx, chosen)
	if err != nil {
		return []row{{Name: "finding tests", err: err}}
	}
	t := testRun{timeout: 20 * time.Minute}
	var names []string
	for path, tests := range want {
		t.packages = append(t.packages, path)
		names = append(names, tests...)
	}
	slices.Sort(t.packages)
	t.run = pattern(names)
	outcomes, err := w.goTest(ctx, core, t)
	if err != nil {
		return []row{{Name: "go test", Core: core, err: err}}
	}
	var rows []row
	for _, path := range t.packages {
		r := rowOf(path, outcomes[path], want[path])
		if len(r.again) > 0 {
			r = again(ctx, w, core, path, r)
		}
		rows = append(rows, r)
	}
	return rows
}

// again repeats tests that failed once; the report prints and counts these tests. Many of etcd's
// tests wait for elections in real time, and a busy machine may starve a test. A test that fails
// twice has failed.
func again(ctx context.Context, w *workdir, core, path string, r row) row {
	progress("%s: again: %s", path, strings.Join(r.again, ", "))
	outcomes, err := w.goTest(ctx, core, testRun{packages: []string{path}, run: pattern(r.again), timeout: 10 * time.Minute})
	if o := outcomes[path]; err == nil && o != nil && o.ok && len(o.passed) == len(r.again) {
		r.Passed += len(o.passed)
		r.Flaky, r.err = r.again, nil
	}
	return r
}

// pattern matches the tests of these names and no others.
func pattern(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// wanted returns the names of the tests that must run, by package, read from the sources, so that
// no test can get lost on the way.
func (w *workdir) wanted(ctx context.Context, chosen []selection) (map[string][]string, error) {
	server, err := shim.Download(ctx, serverPath, etcdVersion)
	if err != nil {
		return nil, err
	}
	roots := map[string]string{serverPath: server, testsPath: w.path("tests")}
	want := map[string][]string{}
	for _, s := range chosen {
		found := 0
		for module, dir := range roots {
			path, below := strings.CutSuffix(s.path, "/...")
			rel, ok := strings.CutPrefix(path, module)
			if !ok {
				continue
			}
			n, err := testsIn(want, module, dir, filepath.FromSlash(strings.TrimPrefix(rel, "/")), below, s.files)
			if err != nil {
				return nil, err
			}
			found += n
		}
		for path, names := range want {
			want[path] = slices.DeleteFunc(names, func(name string) bool {
				return slices.Contains(s.without, name) || len(s.only) > 0 && in(path, s.path) && !slices.Contains(s.only, name)
			})
		}
		if found == 0 {
			return nil, fmt.Errorf("%s %v: no tests there", s.path, s.files)
		}
	}
	return want, nil
}

// in reports whether a package belongs to a selection's path.
func in(path, selected string) bool {
	above, below := strings.CutSuffix(selected, "/...")
	return path == above || below && strings.HasPrefix(path, above+"/")
}

// testsIn adds the tests in a directory of a module, and with below in the directories below, and
// returns their number.
func testsIn(want map[string][]string, module, root, rel string, below bool, files []string) (found int, err error) {
	dir := filepath.Join(root, rel)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	path := module
	if rel != "" {
		path += "/" + filepath.ToSlash(rel)
	}
	for _, e := range entries {
		switch {
		case e.IsDir() && below && e.Name() != "testdata":
			n, err := testsIn(want, module, root, filepath.Join(rel, e.Name()), below, nil)
			if err != nil {
				return 0, err
			}
			found += n
		case e.IsDir() || !strings.HasSuffix(e.Name(), "_test.go"):
		case files == nil || slices.Contains(files, e.Name()):
			names, err := testsOf(dir, e.Name())
			if err != nil {
				return 0, err
			}
			if len(names) > 0 {
				want[path] = append(want[path], names...)
			}
			found += len(names)
		}
	}
	return found, nil
}

// testsOf returns the names of the tests in a file, none if the file is for
// another system or another way to build.
func testsOf(dir, file string) (names []string, err error) {
	built, err := build.Default.MatchFile(dir, file)
	if err != nil || !built {
		return nil, err
	}
	src, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	for _, m := range testFunc.FindAllSubmatch(src, -1) {
		if name := string(m[1]); name != "TestMain" {
			names = append(names, name)
		}
	}
	return names, nil
}
