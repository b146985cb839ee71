// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	processes "github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/storage"
)

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

func TestFindFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"b.txt": "bee", "a/z": "zed", "a/empty": "",
		"huge": strings.Repeat("x", kv.MaxValueBytes+1), "bad\xff": "not UTF-8",
	})
	require.NoError(t, os.Symlink("b.txt", filepath.Join(dir, "link")))
	set, err := findFiles(dir, 0)
	require.NoError(t, err)
	var keys []string
	for _, f := range set.files {
		keys = append(keys, f.key)
	}
	require.Equal(t, []string{"a/empty", "a/z", "b.txt"}, keys)
	require.EqualValues(t, 6, set.bytes)
	require.Len(t, set.skipped, 2)
	require.Contains(t, set.skipped[0], "not UTF-8")
	require.Contains(t, set.skipped[1], "want at most 67108864")

	sums, err := set.digests(t.Context())
	require.NoError(t, err)
	bee := sha256.Sum256([]byte("bee"))
	require.Equal(t, bee[:], sums["b.txt"])
	require.Len(t, sums, 3)

	set, err = findFiles(dir, 2)
	require.NoError(t, err)
	require.Len(t, set.files, 2)

	_, err = findFiles(t.TempDir(), 0)
	require.ErrorContains(t, err, "no files to load")
	_, err = findFiles(filepath.Join(dir, "b.txt"), 0)
	require.ErrorContains(t, err, "is a file; name the directory")
	_, err = findFiles(filepath.Join(dir, "nothing"), 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestConfig(t *testing.T) {
	err := Config{Nodes: 2, Loaders: 1000, Limit: -1}.Validate()
	for _, want := range []string{"--nodes: 2, want 3 to 9", "--loaders: 1000, want 1 to 256", "--limit: -1"} {
		require.ErrorContains(t, err, want)
	}
}

func TestDataDir(t *testing.T) {
	used := writeFiles(t, map[string]string{"something": ""})
	_, _, err := dataDir(Config{Data: used})
	require.ErrorContains(t, err, "is not empty (it has 1 files or directories); remove it or name another directory")

	fresh := filepath.Join(t.TempDir(), "a", "b")
	dir, remove, err := dataDir(Config{Data: fresh, Keep: true})
	require.NoError(t, err)
	require.Equal(t, fresh, dir)
	require.NoError(t, remove())
	require.DirExists(t, dir)
	_, remove, err = dataDir(Config{Data: fresh})
	require.NoError(t, err)
	require.NoError(t, remove())
	require.NoDirExists(t, dir)
}

// Bytes are added up over the processes of a node.
func TestTraffic(t *testing.T) {
	tr := newTraffic(3)
	say := func(id, pid uint64, sent ...uint64) {
		s := &kvpb.StatusResponse{Id: id, Pid: pid}
		for i, n := range sent {
			s.Links = append(s.Links, &kvpb.StatusResponse_Link{Peer: uint64(i + 1), SentBytes: n})
		}
		tr.note(s)
	}
	say(1, 50, 0, 10, 20)
	say(1, 50, 0, 11, 22)
	say(2, 60, 5, 0, 5)
	say(1, 51, 0, 1, 2)
	say(1, 51, 0, 3, 4)
	say(9, 1, 1, 1, 1)
	say(3, 70, 1, 1, 1, 1)
	require.Equal(t, [][]uint64{{0, 14, 26}, {5, 0, 5}, {1, 1, 1}}, tr.sent())
}

// The report ends with what was verified.
func TestReport(t *testing.T) {
	start := time.Unix(100, 0)
	l := &load{started: start, result: &lab.Result{Elapsed: 2 * time.Second}}
	l.Note(&lab.Call{Done: start.Add(time.Second)})
	for range 10 {
		l.acknowledge(3, 1000)
	}
	d := &run{
		p: newProgress(&bytes.Buffer{}), load: l, verified: 10,
		set:     fileSet{files: make([]file, 10)},
		cluster: &cluster{nodes: make([]*node, 3), traffic: newTraffic(3)},
		outages: []outage{{node: 1, leader: true, killed: start, restarted: start.Add(time.Second / 2)}},
	}
	r := d.summary()
	require.InDelta(t, 5, r.FilesPerSec, 0.01)
	require.InDelta(t, 1000, r.FailoverGap, 0.01)
	var out bytes.Buffer
	require.NoError(t, r.print(&out))
	require.True(t, strings.HasSuffix(out.String(), "\nverified: 10 files on 3 replicas\n"))
	require.Contains(t, out.String(), "failover gap  1000 ms")
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	p.event("one %d", 1)
	p.status("not yet")
	p.printed = p.printed.Add(-time.Minute)
	p.status("status")
	p.close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], "s  one 1")
	require.Contains(t, lines[1], "s  status")
}

// TestMain lets this test binary be the child of its own tests.
func TestMain(m *testing.M) {
	switch os.Getenv("KVDEMO_TEST_CHILD") {
	case "":
		os.Exit(m.Run())
	case "taken":
		_, _ = os.Stdout.WriteString("listen: address already in use\n")
		os.Exit(1)
	case "failing":
		_, _ = os.Stdout.WriteString("cannot go on\n")
		os.Exit(4)
	}
}

// Other ports are tried when one is taken; then the demonstration gives up, says
// why, and leaves no process.
func TestPortsTaken(t *testing.T) {
	t.Setenv("KVDEMO_TEST_CHILD", "taken")
	self, err := os.Executable()
	require.NoError(t, err)
	data := filepath.Join(t.TempDir(), "data")
	cfg := Config{
		Files: writeFiles(t, map[string]string{"f": "x"}), Nodes: 3, Loaders: 1, Data: data, Keep: true,
		Serve: []string{self}, Progress: &bytes.Buffer{}, Result: &bytes.Buffer{},
	}
	err = Run(t.Context(), cfg)
	require.ErrorContains(t, err, "address already in use")
	said := 0 // at least once an attempt: the first to say it ends the attempt
	for i := range cfg.Nodes {
		log, err := os.ReadFile(filepath.Join(data, fmt.Sprintf("node-%d.log", i+1)))
		require.NoError(t, err)
		said += bytes.Count(log, []byte("address already in use"))
	}
	require.GreaterOrEqual(t, said, 3)

	t.Setenv("KVDEMO_TEST_CHILD", "failing")
	cfg.Data, cfg.Keep = filepath.Join(t.TempDir(), "data"), false
	err = Run(t.Context(), cfg)
	require.ErrorContains(t, err, "ended by itself: exit status 4")
	require.ErrorContains(t, err, "cannot go on")
	require.NoDirExists(t, cfg.Data)
}

// A disk that is too small for the demonstration is found before the start, and no
// file of the demonstration is left.
func TestDemoIsRefusedAFullDisk(t *testing.T) {
	const free = 80e6
	file := strings.Repeat("x", 10e6)
	data := filepath.Join(t.TempDir(), "data")
	cfg := Config{
		Nodes: 5, Loaders: 1, Data: data, Progress: &bytes.Buffer{}, Result: &bytes.Buffer{},
		free: func(dir string) (uint64, error) { require.Equal(t, data, dir); return free, nil },
		// The program for the nodes fails at once, so the demonstration gets to their start and no further.
		Serve: []string{filepath.Join(t.TempDir(), "nothing")},
	}
	for files, want := range map[int]string{
		8: "no such file or directory",
		9: "--data: too little room on the disk: " + data + " has 80.0 MB, want 90.0 MB for the data of 5 nodes; name another directory with --data, or load fewer files with --limit",
	} {
		all := map[string]string{}
		for i := range files {
			all[fmt.Sprint(i)] = file[:1e6]
		}
		cfg.Files = writeFiles(t, all)
		require.ErrorContains(t, Run(t.Context(), cfg), want)
		require.NoDirExists(t, data)
	}
}

// A node that waits for room will wait until the demonstration ends.
func TestFullDiskEndsTheDemonstration(t *testing.T) {
	c := &cluster{Cluster: &processes.Cluster{Cluster: &lab.Cluster{}}, said: []*kvpb.StatusResponse{{}, {}}}
	require.NoError(t, c.trouble())
	c.said[1].Stalled = "directory d: no space left on device"
	require.ErrorIs(t, c.trouble(), errFull)
	require.ErrorContains(t, c.trouble(), "the disk is full: node 2 says: directory d: no space left on device; name another directory with --data")
	require.ErrorIs(t, c.wait(t.Context(), "anything", func() bool { return true }), errFull)
	c.said[1].Stalled = fmt.Sprintf("%v: writes wait", storage.ErrLate)
	require.NoError(t, c.trouble(), "a disk that is late")
	c.said[1] = nil // killed, it may come back to more room
	require.NoError(t, c.trouble())
}
