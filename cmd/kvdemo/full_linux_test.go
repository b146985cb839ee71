// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// smallDisk is a small file system in memory. A file that takes up its room can be
// removed.
type smallDisk struct {
	t    *testing.T
	path string
}

func newSmallDisk(t *testing.T, size int) smallDisk { return newSmallDiskAt(t, t.TempDir(), size) }

func newSmallDiskAt(t *testing.T, path string, size int) smallDisk {
	d := smallDisk{t, path}
	if err := syscall.Mount("kvdemo", d.path, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("no small file system can be mounted: %v (this needs root)", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(d.path, syscall.MNT_DETACH)) })
	return d
}

func (d smallDisk) ballast() string { return filepath.Join(d.path, "ballast") }

// fill leaves so much room.
func (d smallDisk) fill(room int64) {
	f, err := os.Create(d.ballast())
	require.NoError(d.t, err)
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	require.ErrorIs(d.t, err, syscall.ENOSPC)
	size, err := f.Seek(0, io.SeekCurrent)
	require.NoError(d.t, err)
	require.NoError(d.t, errors.Join(f.Truncate(size-room), f.Close()))
}

func (d smallDisk) free() { require.NoError(d.t, os.Remove(d.ballast())) }

// A node with a full disk reports the full disk in its log, in its health and status, and
// in the errors of writers, and reports the end of this state. No caller waits for a
// deadline.
func TestNodeOnAFullDiskSaysSo(t *testing.T) {
	disk := newSmallDisk(t, 100<<20)
	a := newAlone(t)
	a.data = filepath.Join(disk.path, "data")
	a.args[8] = a.data
	log := a.logged(func() {
		require.Zero(t, a.do("put", "k", "v").code)
		disk.fill(0)
		value := filepath.Join(t.TempDir(), "value")
		require.NoError(t, os.WriteFile(value, bytes.Repeat([]byte("x"), 900<<10), 0o644))
		said := ""
		eventually(t, "a write that hears of it", func() bool {
			said = kvdemo(t.Context(), "", "put", "large", "--file", value, "--endpoints", a.endpoint, "--timeout", "1s").err
			return strings.Contains(said, "no space left on device")
		})
		require.Contains(t, said, "this node cannot write")
		require.Contains(t, said, a.data)
		r := a.do("health")
		require.Equal(t, exitFailure, r.code, r.err)
		require.Contains(t, r.err, "no space left on device")
		require.Contains(t, a.do("status").out, "stalled")
		disk.free()
		eventually(t, "the node to go on", func() bool { return a.do("health").code == 0 })
	})
	require.Contains(t, log, "this node cannot write; no commands are taken here until it can")
	require.Contains(t, log, "no space left on device")
	require.Contains(t, log, "this node can write again")

	a.args[8] = filepath.Join(disk.path, "another")
	disk.fill(10 << 20)
	require.Contains(t, a.refused(), "--data: too little room on the disk: "+a.args[8])
	require.NoDirExists(t, a.args[8])
}

// A node whose state has no room, on a disk beside that of the log, answers reads and
// operators, ends when told to, and has every
// acknowledged value when there is room again.
func TestNodeWhoseStateHasNoRoomAnswersAndStops(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	a := newAlone(t)
	state := filepath.Join(a.data, "state")
	require.NoError(t, os.MkdirAll(state, 0o755))
	disk := newSmallDiskAt(t, state, 64<<20)
	web := freePort(t)
	serve := func() *exec.Cmd {
		cmd := program(t, append(a.args, "--http-listen", web, "--flush-interval", "100ms")...)
		require.NoError(t, cmd.Start())
		eventually(t, "the node to be healthy", func() bool { return a.do("health").code == 0 })
		return cmd
	}
	cmd := serve()
	value := filepath.Join(t.TempDir(), "value")
	require.NoError(t, os.WriteFile(value, bytes.Repeat([]byte("x"), 2<<20), 0o644))
	require.Zero(t, a.do("put", "large", "--file", value).code)
	require.Zero(t, a.do("put", "key0", "v").code)
	disk.fill(0)
	acknowledged := 1
	eventually(t, "the state to have no room", func() bool {
		if r := kvdemo(t.Context(), "", "put", fmt.Sprint("key", acknowledged), "v", "--endpoints", a.endpoint, "--timeout", "1s"); r.code == 0 {
			acknowledged++
		}
		return strings.Contains(a.do("health").err, "no space left on device")
	})
	for _, verb := range [][]string{
		{"get", "key0", "--policy", "stale"}, {"get", "large", "--policy", "stale"}, {"ls", "--policy", "stale"}, {"status"},
	} {
		r := a.do(verb...)
		require.Zero(t, r.code, "%v: %s", verb, r.err)
	}
	for range 2 {
		response, err := http.Get("http://" + web + "/metrics")
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		require.Contains(t, string(text), "weft_state_stalled 1")
	}

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	late := time.AfterFunc(limit/2, func() { _ = cmd.Process.Kill() }) // the promise is 10 s, for a machine that is not busy
	_ = cmd.Wait()                                                     // with an error, perhaps, that says what is not flushed
	require.True(t, late.Stop(), "the node did not end")
	disk.free()
	cmd = serve()
	for i := range acknowledged {
		require.Equal(t, "v", a.do("get", fmt.Sprint("key", i)).out)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// The demonstration on a full disk ends when its nodes find out, and says why.
func TestDemoOnAFullDiskSaysSo(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	disk := newSmallDisk(t, 150<<20)
	files := t.TempDir()
	for i := range 200 { // 20 MB
		require.NoError(t, os.WriteFile(filepath.Join(files, fmt.Sprint(i)), bytes.Repeat([]byte{byte(i)}, 100_000), 0o644))
	}
	data := filepath.Join(disk.path, "data")
	cmd := program(t, "demo", files, "--nodes", "3", "--data", data, "--coding", "off", "--egress", "2000000") // not too fast for this
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	require.NoError(t, err)
	cmd.Stderr = said
	require.NoError(t, cmd.Start())
	text := func() string {
		b, err := os.ReadFile(said.Name())
		require.NoError(t, err)
		return string(b)
	}
	eventually(t, "the nodes to be up", func() bool { return strings.Contains(text(), "3 nodes started") })
	disk.fill(0)
	err = cmd.Wait()
	require.NoError(t, said.Close())
	require.Error(t, err, text())
	require.Equal(t, exitFailure, cmd.ProcessState.ExitCode(), errors.Join(err, errors.New(text())))
	require.Regexp(t, `kvdemo: the disk is full: node \d says: .*no space left on device`, text())
	require.Contains(t, text(), "name another directory with --data, or load fewer files with --limit")
	require.NotContains(t, text(), "in time", "no write waited for its deadline")
	require.NoDirExists(t, data)

	disk.fill(100 << 20)
	r := kvdemo(t.Context(), "", "demo", files, "--nodes", "3", "--data", data)
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "--data: too little room on the disk: "+data)
}
