// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/shim"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestCoreOf(t *testing.T) {
	dir := t.TempDir()
	for want, text := range map[string]string{
		coreWeft:     "..." + string(weftSymbol) + "...",
		coreUpstream: "..." + string(upstreamSymbol) + "...",
		coreNone:     "go.etcd.io/raft/v3/raftpb.(*Entry).Reset",
	} {
		got, err := coreOf(write(t, dir, want, text))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := coreOf(write(t, dir, "both", string(weftSymbol)+string(upstreamSymbol)))
	require.ErrorIs(t, err, errTwoCores)
	self, err := os.Executable()
	require.NoError(t, err)
	_, err = coreOf(self)
	require.Error(t, err, "this program has the names of both, as data")
}

func TestProgramIsRefusedOnAnotherCoreOrInAnotherEnvironment(t *testing.T) {
	dir := t.TempDir()
	weft := write(t, dir, "weft", string(weftSymbol))
	upstream := write(t, dir, "upstream", string(upstreamSymbol))
	none := write(t, dir, "none", "")
	t.Setenv(shim.CodingVariable, "1024")
	core, err := runsOn(coreCoded, weft)
	require.NoError(t, err)
	require.Equal(t, coreCoded, core)
	_, err = runsOn(coreWeft, weft)
	require.ErrorContains(t, err, `is to run on weft, and WEFT_CODING is "1024"`)
	_, err = runsOn(coreCoded, upstream)
	require.ErrorContains(t, err, "runs on upstream, not on weft")
	core, err = runsOn(coreCoded, none)
	require.NoError(t, err)
	require.Equal(t, coreNone, core)

	require.NoError(t, os.Unsetenv(shim.CodingVariable))
	_, err = runsOn(coreCoded, weft)
	require.ErrorContains(t, err, `is to run on coded, and WEFT_CODING is ""`)
	core, err = runsOn(coreWeft, weft)
	require.NoError(t, err)
	require.Equal(t, coreWeft, core)

	_, err = runsOn(coreLeased, weft)
	require.ErrorContains(t, err, `is to run on leased, and WEFT_LEASES is ""`)
	t.Setenv(shim.LeasesVariable, "on")
	for _, want := range []string{coreLeased, coreLeaderLeased} {
		core, err = runsOn(want, weft)
		require.NoError(t, err)
		require.Equal(t, want, core)
	}
	_, err = runsOn(coreWeft, weft)
	require.ErrorContains(t, err, `is to run on weft, and WEFT_LEASES is "on"`)
}

const events = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"conformance: core weft\n"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA/sub","Elapsed":1}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: no gofail\n"}
{"Action":"skip","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestC/x","Output":"it broke\n"}
{"Action":"fail","Package":"p","Test":"TestC/x","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestC","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":2.5}
`

func TestRowOf(t *testing.T) {
	outcomes, broken, err := collect(strings.NewReader(events))
	require.NoError(t, err)
	require.Empty(t, broken)
	o := outcomes["p"]

	r := rowOf("p", o, []string{"TestA", "TestB", "TestC"})
	require.Equal(t, coreWeft, r.Core)
	require.Equal(t, []int{3, 1, 1}, []int{r.Tests, r.Passed, r.Skipped})
	require.Equal(t, []string{"TestC"}, r.again)
	require.ErrorIs(t, r.err, errFailed)
	require.ErrorContains(t, r.err, "it broke")
	require.Equal(t, []string{"TestB skips itself: no gofail"}, r.Notes)

	r = rowOf("p", o, []string{"TestA", "TestB", "TestC", "TestLost"})
	require.ErrorContains(t, r.err, "TestLost did not run")
	require.Empty(t, r.again, "a program that broke off is not run again")

	r = rowOf("p", o, []string{"TestA"})
	require.ErrorContains(t, r.err, "outside of any test")
	require.Error(t, rowOf("q", outcomes["q"], []string{"TestA"}).err)
}

func TestBrokenBuild(t *testing.T) {
	_, broken, err := collect(strings.NewReader(`{"ImportPath":"p","Action":"build-output","Output":"undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}
`))
	require.NoError(t, err)
	require.Contains(t, broken, "undefined: x")
	_, _, err = collect(strings.NewReader("warning: not JSON\n"))
	require.Error(t, err)
}

func TestTestsIn(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/a_test.go", "package a\nfunc TestMain(m *testing.M) {}\nfunc TestOne(t *testing.T) { }\nfunc TestTwo(tt *testing.T) {\n}\n")
	write(t, dir, "a/b_test.go", "package a\nfunc TestThree(t *testing.T) {}\nfunc BenchmarkX(b *testing.B) {}\n")
	write(t, dir, "a/b/c_test.go", "package b\nfunc TestFour(t *testing.T) {}\n")
	write(t, dir, "a/d_test.go", "//go:build other\n\npackage a\nfunc TestOther(t *testing.T) {}\n")
	for _, c := range []struct {
		below bool
		files []string
		want  map[string][]string
	}{
		{true, nil, map[string][]string{"m/a": {"TestOne", "TestTwo", "TestThree"}, "m/a/b": {"TestFour"}}},
		{false, []string{"b_test.go"}, map[string][]string{"m/a": {"TestThree"}}},
	} {
		got := map[string][]string{}
		n, err := testsIn(got, "m", dir, "a", c.below, c.files)
		require.NoError(t, err)
		for path := range got {
			require.ElementsMatch(t, c.want[path], got[path])
			n -= len(got[path])
		}
		require.Len(t, got, len(c.want))
		require.Zero(t, n)
	}
}

func TestWhatMutantsBreakIsInTheSources(t *testing.T) {
	for _, broken := range []struct{ file, old, new string }{brokenRule, brokenClock} {
		src, err := replaced(filepath.Join("..", "..", filepath.FromSlash(broken.file)), broken.old, broken.new)
		require.NoError(t, err)
		require.Contains(t, src, broken.new)
	}
	files, err := steppedTime()
	require.NoError(t, err)
	require.Len(t, files, 2)
}

func TestSyncsOfAStuckDiskWait(t *testing.T) {
	files, err := stuckSyncs()
	require.NoError(t, err)
	require.Len(t, files, 2)
	calls := 0
	for _, src := range files {
		calls += strings.Count(src, "\twaitForDisk()\n")
	}
	require.Equal(t, len(syncs), calls)
}

func TestSelectionsLeaveOutByNameAndPackage(t *testing.T) {
	require.True(t, in("m/a", "m/a"))
	require.False(t, in("m/a/b", "m/a"))
	require.True(t, in("m/a/b", "m/a/..."))
	require.False(t, in("m/ab", "m/a/..."))
	chosen := []selection{{path: "m/a"}, {path: "m/b"}}
	require.Equal(t, []selection{{path: "m/a", without: oneDisk}, {path: "m/b", without: oneDisk}}, without(chosen, oneDisk))
	require.Nil(t, chosen[0].without, "the choice of others stays")
}

func TestReport(t *testing.T) {
	r := &results{core: coreWeft, dir: t.TempDir()}
	require.ErrorContains(t, r.report(&strings.Builder{}), "no step")

	good := row{Name: "go.etcd.io/etcd/server/v3/x", Core: coreWeft, Tests: 2, Passed: 2}
	r.add(good)
	require.NoError(t, r.report(&strings.Builder{}))

	var out strings.Builder
	theirs := &results{core: coreUpstream, dir: r.dir}
	theirs.add(good)
	require.NoError(t, theirs.report(&out))
	require.Contains(t, out.String(), "2 of 2 passed")
	require.Contains(t, out.String(), "ON WEFT")

	good.Flaky = []string{"A", "B", "C", "D"}
	r.add(good)
	require.ErrorContains(t, r.report(&strings.Builder{}), "second attempt")
	r.add(row{Name: "y", err: errFailed})
	require.ErrorContains(t, r.report(&strings.Builder{}), "1 of 3 rows failed")
}

func TestMistakes(t *testing.T) {
	for says, args := range map[string][]string{
		"--core etcd: it must be weft or upstream": {"--core=etcd"},
		"--only: error parsing regexp":             {"--only=("},
		"does not go with --core upstream":         {"--core=upstream", "--mutant"},
		"requires at least 2 arg(s)":               {"exec", "weft"},
	} {
		cmd := command()
		cmd.SetArgs(args)
		require.ErrorContains(t, cmd.ExecuteContext(t.Context()), says)
	}
}
