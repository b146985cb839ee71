// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Scripts go by the exit status: each kind of failure has its own.
func TestExitStatusNamesTheKindOfFailure(t *testing.T) {
	a := newAlone(t)
	nobody, _ := hold(t)
	a.while(func() {
		require.Zero(t, a.do("put", "k", "v").code)
		r := a.do("get", "missing")
		require.Equal(t, 4, r.code, r.err)
		require.Contains(t, r.err, `no such key: "missing"`)
		require.Zero(t, a.do("del", "missing").code, "that there was nothing is an answer")
		require.Equal(t, 2, a.do("get", "").code)
	})
	for _, verb := range [][]string{{"get", "k"}, {"put", "k", "v"}, {"del", "k"}, {"ls"}, {"status"}, {"health"}, {"member", "list"}, {"snapshot"}, {"transfer", "1"}, {"roster", "show"}, {"roster", "name", "1"}} {
		r := kvdemo(t.Context(), "", append(verb, "--endpoints", nobody, "--timeout", "200ms")...)
		require.Equal(t, 5, r.code, "%v: %s", verb, r.err)
	}
}

func TestInterruptedCommandExitsWith130(t *testing.T) {
	for _, verb := range [][]string{{"get", "k"}, {"put", "k", "v"}, {"status"}, {"bench"}, {"demo", demoDirectory(t, 3)}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := kvdemo(ctx, "", verb...)
		require.Equal(t, 130, r.code, "%v: %s", verb, r.err)
		require.Contains(t, r.err, "kvdemo: interrupted")
	}
}

// --help has the table of exit statuses, to which docs/kvdemo.md points.
func TestExitStatusesAreInHelp(t *testing.T) {
	help := kvdemo(t.Context(), "", "--help").out
	for _, e := range exits {
		require.Regexp(t, "(?m)^ +"+strconv.Itoa(e.code)+" +"+e.means+"$", help)
	}
	require.Len(t, exits, 7)
}

// A verb that no node answers says what to do, and prints nothing to standard output.
func TestVerbsWithoutANodeSayWhatToDo(t *testing.T) {
	address, _ := hold(t)
	for _, verb := range [][]string{{"ls"}, {"get", "k"}, {"put", "k", "v"}} {
		r := kvdemo(t.Context(), "", append(verb, "--endpoints", address, "--timeout", "300ms")...)
		require.Equal(t, exitUnreachable, r.code, r.err)
		require.Empty(t, r.out)
		require.Contains(t, r.err, address+": cannot connect")
		require.Contains(t, r.err, "check that nodes run there, as after kvdemo demo --serve, or name others with --endpoints")
	}
}

// The only member of a cluster is not removed, and the answer does not wait for another.
func TestOnlyMemberIsNotRemoved(t *testing.T) {
	a := newAlone(t)
	a.while(func() {
		eventually(t, "the node to be healthy", func() bool { return a.do("health").code == 0 })
		r := a.do("member", "remove", "1")
		require.Equal(t, exitFailure, r.code, r.err)
		require.Contains(t, r.err, "node 1 is the only voter, and a cluster keeps one")
		r = a.do("ls")
		require.Equal(t, "KEY  BYTES\n", r.out)
	})
}

func TestStatusFailsIfANodeIsDown(t *testing.T) {
	a := newAlone(t)
	nobody, _ := hold(t)
	a.while(func() {
		a.do("put", "k", "v") // it is up now
		require.Zero(t, a.do("status").code)
		for _, flags := range [][]string{nil, {"--json"}} {
			r := kvdemo(t.Context(), "", append([]string{"status", "--endpoints", a.endpoint + "," + nobody, "--timeout", "5s"}, flags...)...)
			require.Equal(t, 5, r.code, r.err)
			require.Contains(t, r.err, "1 of 2 nodes did not answer: "+nobody)
			require.Contains(t, r.out, a.endpoint, "the others are shown all the same")
			require.Contains(t, r.out, nobody)
		}
	})
}

func TestHealthExitsByWhatNodesAnswer(t *testing.T) {
	a := newAlone(t)
	nobody, _ := hold(t)
	a.while(func() {
		a.do("put", "k", "v") // it leads now
		r := a.do("health")
		require.Zero(t, r.code, r.err)
		require.Regexp(t, "(?m)^"+a.endpoint+" +ok +", r.out)
		r = a.do("health", "--json")
		var h healthResult
		require.NoError(t, json.Unmarshal([]byte(r.out), &h))
		require.True(t, h.Healthy)
		r = kvdemo(t.Context(), "", "health", "--endpoints", a.endpoint+","+nobody, "--timeout", "5s")
		require.Equal(t, 5, r.code, r.err)
		require.Regexp(t, "(?m)^"+a.endpoint+" +ok +", r.out)
		require.Contains(t, r.out, nobody)
		require.Contains(t, r.err, "1 of 2 nodes are not healthy:\n"+nobody)
	})
}

// A node that has lost its majority is up, and of no use to its clients.
func TestHealthFailsWithoutAMajority(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f := newFleet(t, 2, 2, "--tick", "20ms")
	f.do("put", "k", "v")
	f.kill(2)
	eventually(t, "the node to notice", func() bool {
		r := kvdemo(t.Context(), "", "health", "--endpoints", f.sure[1], "--timeout", "1s")
		return r.code == 5
	})
	f.kill(1)
}

func TestVersionNamesTheBuild(t *testing.T) {
	r := kvdemo(t.Context(), "", "version")
	require.Zero(t, r.code, r.err)
	require.Regexp(t, `^kvdemo \S+`, r.out)
	require.Contains(t, r.out, runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH)
	var v versionResult
	require.NoError(t, json.Unmarshal([]byte(kvdemo(t.Context(), "", "version", "--json").out), &v))
	require.Equal(t, runtime.Version(), v.Go)
	require.NotEmpty(t, v.Version)
	require.Equal(t, "v3.7.0", v.Upstream)
	require.Equal(t, r.out, kvdemo(t.Context(), "", "--version").out)
}

// make build and the image tell the linker the commit.
func TestVersionNamesTheCommit(t *testing.T) {
	t.Cleanup(func() { revision = "" })
	require.Contains(t, versionResult{Version: "(devel)"}.String(), "commit not known (make build notes it)")
	revision = "0123abc"
	require.Contains(t, ownVersion().String(), ", commit 0123abc, ")
	for _, file := range []string{"../../Makefile", "../../deploy/Dockerfile"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "-X main.revision=$", file)
	}
}

// The table of health has one word for each node; the reasons, which may be long, are below.
func TestHealthHasReasonsBelowItsTable(t *testing.T) {
	node, giveUp := hold(t)
	defer giveUp()
	r := kvdemo(t.Context(), "", "health", "--endpoints", node, "--timeout", "100ms")
	require.Equal(t, exitUnreachable, r.code)
	require.Regexp(t, `^ENDPOINT +HEALTH +TOOK\n\S+ +failed +-\n$`, r.out)
	require.Contains(t, r.err, "1 of 1 nodes are not healthy:\n"+node+": ")
}

// An empty value is more often a pipe that went wrong than meant.
func TestPutWantsAValue(t *testing.T) {
	a := newAlone(t)
	a.while(func() {
		at := []string{"--endpoints", a.endpoint, "--timeout", "30s"}
		for _, c := range []struct {
			in   string
			args []string
			code int
			want string
		}{
			{"", []string{"k"}, 2, ""},
			{"piped", []string{"k"}, 0, "piped"},
			{"", []string{"k", "-"}, 0, ""},
			{"dashed", []string{"k", "-"}, 0, "dashed"},
			{"", []string{"k", "--file", "-"}, 0, ""},
			{"filed", []string{"k", "--file", "-"}, 0, "filed"},
			{"", []string{"k", ""}, 0, ""},
			{"ignored", []string{"k", "given"}, 0, "given"},
		} {
			r := kvdemo(t.Context(), c.in, append(append([]string{"put"}, c.args...), at...)...)
			require.Equal(t, c.code, r.code, "%q %v: %s", c.in, c.args, r.err)
			if c.code != 0 {
				require.Contains(t, r.err, "put: standard input is empty")
				require.Contains(t, r.err, "put KEY -")
				continue
			}
			require.Equal(t, result{0, c.want, ""}, a.do("get", "k"), "%q %v", c.in, c.args)
		}
	})
}

// A terminal must not take orders from what somebody called a key.
func TestControlCharactersAreQuoted(t *testing.T) {
	a := newAlone(t)
	a.while(func() {
		for key, shown := range map[string]string{
			"red\x1b[31m\trow\n2": `"red\x1b[31m\trow\n2"`,
			"c1\u009b2J":          `"c1\u009b2J"`,
			`"quoted"`:            `"\"quoted\""`,
			"right\u202eleft":     `"right\u202eleft"`,
			"plain ключ 鍵 key":    "plain ключ 鍵 key",
		} {
			out := a.do("put", key, "v").out
			require.Contains(t, out, "put "+shown+" (1 bytes)")
			out = a.do("ls").out
			require.Contains(t, out, "\n"+shown+" ")
			require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 2, "a row a key")
			require.Contains(t, a.do("ls", "--json").out, `"bytes":1`)
			require.Contains(t, a.do("del", key).out, "deleted "+shown+" at revision")
			require.Contains(t, a.do("del", key).out, shown+" had no value")
		}
	})
}

// A machine on which somebody works as a client may run a node as well.
func TestServeIgnoresClientCertificates(t *testing.T) {
	for _, name := range []string{"CERT", "KEY", "CA"} {
		t.Setenv("KVDEMO_TLS_"+name, "/nonexistent/"+name)
	}
	a := newAlone(t)
	r := kvdemo(t.Context(), "", append(a.args, "--exit-with-stdin")...)
	require.Zero(t, r.code, r.err)
	require.NotContains(t, kvdemo(t.Context(), "", "serve", "--help").out, "KVDEMO_TLS")
	require.Contains(t, kvdemo(t.Context(), "", "get", "--help").out, "KVDEMO_TLS_CERT")
}

// If another program listens at an endpoint, the command ends at once, and its error says so.
func TestWrongPortIsNamed(t *testing.T) {
	a := newAlone(t)
	web := freePort(t)
	a.args = append(a.args, "--http-listen", web)
	peer, _ := strings.CutPrefix(a.args[4], "1=")
	a.while(func() {
		require.Zero(t, a.do("put", "k", "v").code)
		for _, verb := range [][]string{{"get", "k"}, {"put", "k", "v"}, {"status"}, {"health"}} {
			for _, at := range [][]string{{peer, "--timeout", "2s"}, {web, "--timeout", "10m"}} { // the first may be a proxy
				r := kvdemo(t.Context(), "", append(append(verb, "--endpoints"), at...)...)
				require.Equal(t, 5, r.code, r.err)
				require.Contains(t, r.err, at[0]+": this is not kvdemo's client port")
			}
		}
		r := kvdemo(t.Context(), "", "get", "k", "--endpoints", peer+","+web+","+a.endpoint)
		require.Equal(t, result{0, "v", ""}, r, "the right one is found")
	})
}
