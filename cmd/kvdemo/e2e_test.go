// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Real processes, real ports, real disks. What these tests wait for they poll
// for, up to limit; nothing depends on how fast the machine is.
const limit = time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		require.True(t, time.Now().Before(deadline), "waited %v for %s", limit, what)
		time.Sleep(20 * time.Millisecond)
	}
}

// program returns a command that runs kvdemo as a process of its own, in its
// own process group, killed at the end of the test.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may be gone
			_ = cmd.Wait()
		}
	})
	return cmd
}

// startLogged starts a process whose log goes behind what the file has.
func startLogged(t *testing.T, cmd *exec.Cmd, file string) *exec.Cmd {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer func() { _ = log.Close() }() // the process has its own descriptor
	cmd.Stderr = log
	require.NoError(t, cmd.Start())
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // says that it was killed
}

// servers are the nodes of a cluster of three.
type servers struct {
	t         *testing.T
	args      [3][]string
	endpoints [3]string
	cmds      [3]*exec.Cmd
	data      string
}

func startServers(t *testing.T, extra ...string) *servers {
	s := newServers(t, extra...)
	for i := range s.cmds {
		s.start(i)
	}
	return s
}

// newServers is startServers, without starting them.
func newServers(t *testing.T, extra ...string) *servers {
	s := &servers{t: t, data: t.TempDir()}
	peers := fmt.Sprintf("1=%s,2=%s,3=%s", freePort(t), freePort(t), freePort(t))
	for i := range s.args {
		s.endpoints[i] = freePort(t)
		s.args[i] = []string{
			"serve", "--id", fmt.Sprint(i + 1), "--cluster", "9", "--peers", peers, "--client-listen", s.endpoints[i],
			"--data", filepath.Join(s.data, fmt.Sprint(i+1)), "--tick", "20ms", "--log-format", "json",
		}
		s.args[i] = append(s.args[i], extra...)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for i := range s.cmds {
				if s.cmds[i] == nil {
					continue
				}
				t.Logf("log of node %d:\n%s", i+1, s.log(i))
			}
		}
	})
	return s
}

func (s *servers) start(i int) {
	s.cmds[i] = startLogged(s.t, program(s.t, s.args[i]...), s.logPath(i))
}

func (s *servers) logPath(i int) string { return filepath.Join(s.data, fmt.Sprintf("%d.log", i+1)) }

// log returns what the processes of a node have logged.
func (s *servers) log(i int) string {
	text, err := os.ReadFile(s.logPath(i))
	require.NoError(s.t, err)
	return string(text)
}

func (s *servers) kill(i int) { kill(s.t, s.cmds[i]) }

// do runs a client verb.
func (s *servers) do(endpoint string, args ...string) result {
	return kvdemo(s.t.Context(), "", append(args, "--endpoints", endpoint)...)
}

// put writes until it is acknowledged. On a machine that has no time for the
// nodes, an election may come in between, and leave a write in doubt.
func (s *servers) put(endpoint string, args ...string) {
	eventually(s.t, "an acknowledged write", func() bool {
		r := s.do(endpoint, append([]string{"put", "--timeout", "30s"}, args...)...)
		require.NotEqual(s.t, exitUsage, r.code, r.err)
		return r.code == 0
	})
}

// all is the endpoints of all nodes.
func (s *servers) all() string { return strings.Join(s.endpoints[:], ",") }

// leader waits until a node leads and all nodes follow that node, and returns it.
func (s *servers) leader() (lead int) {
	eventually(s.t, "a leader", func() bool {
		lead = -1
		r := s.do(s.all(), "status", "--json")
		for line := range strings.Lines(r.out) {
			var st statusResult
			require.NoError(s.t, json.Unmarshal([]byte(line), &st))
			if st.GetRole() == "leader" {
				lead = int(st.GetId()) - 1
			}
		}
		return lead >= 0
	})
	return lead
}

// A cluster of three real processes serves from the first write to the orderly stop,
// over the loss of the leader and of the majority.
func TestThreeProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := startServers(t)
	lead := s.leader()

	// Every node takes writes and reads, and sees the others' at once.
	for i, e := range s.endpoints {
		key := fmt.Sprintf("dir/key %d", i)
		s.put(e, key, fmt.Sprint("value ", i))
		for _, other := range s.endpoints {
			require.Equal(t, result{0, fmt.Sprint("value ", i), ""}, s.do(other, "get", key))
		}
	}
	checkVerbs(t, s)

	s.kill(lead)
	s.put(s.all(), "after", "the leader died")
	require.Equal(t, "the leader died", s.do(s.all(), "get", "after").out)

	// A minority: clear errors within the deadline, and old state on demand.
	next := s.leader()
	alone := s.endpoints[3-lead-next]
	eventually(t, "the other node to have it", func() bool { return s.do(alone, "get", "--local", "after").out == "the leader died" })
	s.kill(next)
	for _, args := range [][]string{{"put", "k", "v"}, {"get", "after"}, {"del", "after"}, {"ls"}} {
		begin := time.Now()
		r := s.do(alone, append(args, "--timeout", "1s")...)
		require.Less(t, time.Since(begin), 10*time.Second)
		require.Contains(t, []int{exitUnreachable, exitUnknown}, r.code)
		require.Contains(t, r.err, alone)
		require.Regexp(t, "no node could take the request in time|outcome of the write is unknown", r.err)
		require.NotRegexp(t, "no node could take the request.*outcome unknown", r.err)
	}
	require.Equal(t, "the leader died", s.do(alone, "get", "--local", "after").out)

	// The majority is back: so is everything that was acknowledged.
	s.start(lead)
	s.start(next)
	r := s.do(s.all(), "get", "after", "--timeout", "30s")
	require.Equal(t, "the leader died", r.out, r.err)
	eventually(t, "bench to do something", func() bool {
		r = s.do(s.all(), "bench", "--duration", "300ms", "--clients", "4", "--reads", "50", "--json", "--timeout", "20s")
		return r.code == 0
	})
	var b benchResult
	require.NoError(t, json.Unmarshal([]byte(r.out), &b))
	require.Positive(t, b.Writes.Calls+b.Reads.Calls)
	require.Zero(t, b.Writes.Failed+b.Reads.Failed, b.Error)
	s.stop()
}

// checkVerbs tries the verbs on what TestThreeProcesses wrote.
func checkVerbs(t *testing.T, s *servers) {
	r := s.do(s.all(), "ls", "dir/", "--digests")
	require.Zero(t, r.code, r.err)
	require.Len(t, strings.Split(strings.TrimSpace(r.out), "\n"), 4, r.out)
	require.Contains(t, r.out, "KEY")
	require.Contains(t, r.out, "dir/key 1  7")
	r = s.do(s.all(), "ls", "--limit", "1", "--json")
	require.Equal(t, "{\"key\":\"dir/key 0\",\"bytes\":7}\n", r.out)
	eventually(t, "a delete that says so", func() bool {
		s.put(s.all(), "dir/key 0", "v") // for when a delete was in doubt
		return strings.Contains(s.do(s.all(), "del", "dir/key 0").out, "deleted dir/key 0 at revision")
	})
	eventually(t, "a delete of nothing", func() bool {
		return strings.Contains(s.do(s.all(), "del", "dir/key 0").out, "had no value")
	})
	r = s.do(s.all(), "get", "dir/key 0")
	require.Equal(t, exitNotFound, r.code)
	require.Contains(t, r.err, `no such key: "dir/key 0"`)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte{0, 1, 0xff}, 0o644))
	s.put(s.all(), "binary", "--file", file)
	require.Equal(t, "\x00\x01\xff", s.do(s.all(), "get", "binary").out)
	big := make([]byte, 3<<20)
	copy(big, "big")
	require.NoError(t, os.WriteFile(file, big, 0o644))
	s.put(s.all(), "big", "--file", file)
	require.NoError(t, os.Remove(file))
	require.Zero(t, s.do(s.all(), "get", "big", "--file", file).code)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(big, got))
	r = kvdemo(t.Context(), "from a pipe", "put", "piped", "--endpoints", s.all())
	require.Contains(t, r.out, "put piped (11 bytes) at revision")
	r = s.do(s.all(), "status")
	require.Zero(t, r.code)
	require.Contains(t, r.out, "leader")
	require.Contains(t, r.out, "follower")
	r = s.do(freePort(t), "status", "--timeout", "2s")
	require.Equal(t, exitUnreachable, r.code)
	require.Contains(t, r.err, "1 of 1 nodes did not answer")
}

// stop asks all nodes to stop, and checks that they do so in good order.
func (s *servers) stop() {
	for i, cmd := range s.cmds {
		require.NoError(s.t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(s.t, cmd.Wait(), "node %d", i+1)
		require.Contains(s.t, s.log(i), `"msg":"stopping"`)
	}
}

// demoDirectory returns a directory with n files of up to some kilobytes.
func demoDirectory(t *testing.T, n int) string {
	dir := t.TempDir()
	for i := range n {
		path := filepath.Join(dir, fmt.Sprint(i%7), fmt.Sprintf("file-%d", i))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte(path), i%50), 0o644))
	}
	return dir
}

// processesOf returns the command lines of the running processes that have a
// text in theirs.
func processesOf(t *testing.T, text string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("needs /proc to look for processes")
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(text)) { // else it is gone
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// The demonstration on three nodes: it kills, verifies, says so in its last
// line, and leaves nothing behind.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	files := demoDirectory(t, 150)
	for _, core := range []string{"weft", "upstream"} {
		t.Run(core, func(t *testing.T) { testDemo(t, files, core) })
	}
}

func testDemo(t *testing.T, files, core string) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	r := kvdemo(t.Context(), "", "demo", files, "--nodes", "3", "--tick", "20ms", "--loaders", "8", "--core", core)
	require.Zero(t, r.code, r.err)
	require.True(t, strings.HasSuffix(r.out, "\nverified: 150 files on 3 replicas\n"), r.out)
	for _, want := range []string{"(the leader, process", "(a follower, process", "started node"} {
		require.Contains(t, r.err, want)
	}
	for _, want := range []string{"throughput", "commit        p50", "failover gap", "bytes on each link"} {
		require.Contains(t, r.out, want)
	}
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, left, "temporary data")
	require.Empty(t, processesOf(t, tmp))
}

// A node that was away for longer than the others keep their log gets a
// snapshot, and goes on from there.
func TestSnapshotToLaggingNode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := startServers(t, "--retain-bytes", "10000", "--flush-interval", "50ms")
	lead := s.leader()
	away := (lead + 1) % 3
	s.put(s.endpoints[away], "key", "before")
	// More load than the node can take between the question and the kill.
	last := s.status(away).GetLastIndex() + 20
	s.kill(away)
	value := strings.Repeat("v", 3000)
	written := 0
	eventually(t, "the log to be compacted", func() bool {
		for range 20 {
			s.put(s.endpoints[lead], fmt.Sprint("key ", written), value)
			written++
		}
		return s.status(lead).GetFirstIndex() > last
	})
	s.start(away)
	applied := s.status(lead).GetApplied()
	eventually(t, "the node to catch up", func() bool {
		st := s.status(away)
		return st.GetApplied() >= applied && st.GetFirstIndex() > last // its log began anew
	})
	want := s.do(s.endpoints[lead], "ls", "--digests")
	require.Equal(t, want, s.do(s.endpoints[away], "ls", "--digests", "--local"))
	require.Equal(t, written+2, strings.Count(want.out, "\n"))
	s.stop()
}

// status returns a node's status, or the zero value if the node does not answer.
func (s *servers) status(i int) (st statusResult) {
	r := s.do(s.endpoints[i], "status", "--json", "--timeout", "5s")
	require.NoError(s.t, json.Unmarshal([]byte(r.out), &st))
	return st
}

// However the demonstration ends, no process of it is left.
func TestDemoInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			cmd := program(t, "demo", demoDirectory(t, 1000), "--nodes", "3", "--data", data, "--loaders", "8")
			pipe, err := cmd.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			waitForText(t, pipe, "killed node")
			require.NotEmpty(t, processesOf(t, data))
			require.NoError(t, cmd.Process.Signal(sig))
			var exit *exec.ExitError
			require.True(t, errors.As(cmd.Wait(), &exit))
			if sig != syscall.SIGKILL {
				require.Equal(t, exitInterrupted, exit.ExitCode())
				require.Empty(t, processesOf(t, data))
				require.NoDirExists(t, data)
			}
			eventually(t, "the nodes to be gone", func() bool { return len(processesOf(t, data)) == 0 })
		})
	}
}

// waitForText reads until the text was seen, and goes on reading, so that the
// writer does not get stuck.
func waitForText(t *testing.T, r io.Reader, text string) {
	t.Helper()
	seen := make(chan bool, 1)
	go func() {
		var all []byte
		buf := make([]byte, 4<<10)
		for {
			n, err := r.Read(buf)
			all = append(all, buf[:n]...)
			if bytes.Contains(all, []byte(text)) {
				seen <- true
				break
			}
			if err != nil {
				seen <- false
				return
			}
		}
		_, _ = io.Copy(io.Discard, r) // ends with the process
	}()
	select {
	case ok := <-seen:
		require.True(t, ok, "the process ended before it printed %q", text)
	case <-time.After(limit):
		t.Fatalf("waited %v for %q", limit, text)
	}
}

// alone is a cluster of one node, in this process.
type alone struct {
	t              *testing.T
	data, endpoint string
	args           []string
}

func newAlone(t *testing.T) *alone {
	a := &alone{t: t, data: t.TempDir(), endpoint: freePort(t)}
	a.args = []string{"serve", "--id", "1", "--peers", "1=" + freePort(t), "--client-listen", a.endpoint, "--data", a.data, "--tick", "10ms"}
	return a
}

// while runs the node as long as do does, and stops it in good order.
func (a *alone) while(do func()) { a.logged(do) }

// logged is while, and returns what the node logged.
func (a *alone) logged(do func()) string {
	ctx, cancel := context.WithCancel(a.t.Context())
	defer cancel()
	served := make(chan result, 1)
	go func() { served <- kvdemo(ctx, "", a.args...) }()
	do()
	cancel()
	r := <-served
	require.Zero(a.t, r.code, r.err)
	return r.err
}

func (a *alone) do(args ...string) result {
	return kvdemo(a.t.Context(), "", append(args, "--endpoints", a.endpoint, "--timeout", "30s")...)
}

// refused starts the node, which must fail, and returns the node's output.
func (a *alone) refused() string {
	r := kvdemo(a.t.Context(), "", append(a.args, "--exit-with-stdin")...)
	require.Equal(a.t, exitFailure, r.code, r.err)
	return r.err
}

// A log or a state that is not what was written: the node says so, does not
// start, and changes nothing.
func TestServeRefusesDamage(t *testing.T) {
	a := newAlone(t)
	a.while(func() {
		for i := range 20 {
			r := a.do("put", fmt.Sprint(i), strings.Repeat("x", 1000))
			require.Zero(t, r.code, r.err)
		}
	})
	segment, at := findInFiles(t, filepath.Join(a.data, "log"), strings.Repeat("x", 900))
	good, err := os.ReadFile(segment)
	require.NoError(t, err)
	bad := bytes.Clone(good)
	bad[at+100] ^= 1
	require.NoError(t, os.WriteFile(segment, bad, 0o644))
	said := a.refused()
	require.Contains(t, said, "the log is damaged: segment")
	require.Contains(t, said, "restore the directory or replace the node")
	now, err := os.ReadFile(segment)
	require.NoError(t, err)
	require.True(t, bytes.Equal(bad, now))
	require.NoError(t, os.WriteFile(segment, good, 0o644))

	identity := filepath.Join(a.data, "log", "IDENTITY")
	text, err := os.ReadFile(identity)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(identity, bytes.Replace(text, []byte("version 1"), []byte("version 2"), 1), 0o644))
	require.Contains(t, a.refused(), "unknown format version")
	require.NoError(t, os.WriteFile(identity, text, 0o644))

	// The state remembers more than an empty log could have brought it.
	away := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.Rename(filepath.Join(a.data, "log"), away))
	require.Contains(t, a.refused(), "has no log")
	require.NoError(t, os.Mkdir(filepath.Join(a.data, "log"), 0o755))
	require.Contains(t, a.refused(), "is its disk mounted?")
	require.NoError(t, os.RemoveAll(filepath.Join(a.data, "log")))
	require.NoError(t, os.Rename(away, filepath.Join(a.data, "log")))

	a.while(func() {
		r := a.do("ls", "--json")
		require.Zero(t, r.code, r.err)
		require.Equal(t, 20, strings.Count(r.out, `"bytes":1000`), "nothing was harmed")
	})
}

// findInFiles returns the file of a directory that has a text, and where.
func findInFiles(t *testing.T, dir, text string) (path string, at int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		if at := bytes.Index(b, []byte(text)); at >= 0 {
			return path, at
		}
	}
	t.Fatalf("found no file in %s with %.20s...", dir, text)
	return "", 0
}
