// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets this test binary be the child of its own tests.
func TestMain(m *testing.M) {
	switch os.Getenv("PROCESS_TEST_CHILD") {
	case "":
		os.Exit(m.Run())
	case "stubborn": // ignores the end of its standard input
		_, _ = os.Stdout.WriteString("stubborn\n")
		time.Sleep(time.Hour) // a select of nothing ends a program without C as a deadlock
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		_, _ = os.Stdout.WriteString("deaf\n")
		time.Sleep(time.Hour)
	case "polite":
		_, _ = os.Stdout.WriteString("polite\n")
		_, _ = os.Stdin.Read(make([]byte, 1))
	case "failing":
		_, _ = os.Stdout.WriteString("cannot go on\n")
		os.Exit(4)
	}
}

func startChild(t *testing.T, kind string) *Process {
	t.Helper()
	t.Setenv("PROCESS_TEST_CHILD", kind)
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := Start([]string{self}, filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func TestProcess(t *testing.T) {
	p := startChild(t, "polite")
	require.True(t, p.Running())
	require.NoError(t, p.Stop(time.Minute))
	require.False(t, p.Running())
	require.NoError(t, p.Kill(), "nothing to do")

	p = startChild(t, "stubborn")
	require.NoError(t, p.Kill())
	require.False(t, p.Running())

	p = startChild(t, "stubborn")
	require.ErrorContains(t, p.Stop(time.Millisecond), "did not stop within 1ms")
	require.False(t, p.Running(), "then it is killed")

	p = startChild(t, "stubborn")
	require.NoError(t, p.Terminate(time.Minute))
	require.False(t, p.Running())
	p = startChild(t, "deaf")
	require.Eventually(t, func() bool { return p.tail() != "" }, time.Minute, time.Millisecond, "it ignores signals from here on")
	require.ErrorContains(t, p.Terminate(time.Millisecond), "did not end within 1ms of SIGTERM")
	require.False(t, p.Running(), "then it is killed")

	p = startChild(t, "failing")
	<-p.ended
	err := p.Stop(time.Minute)
	require.ErrorContains(t, err, "exit status 4")
	require.ErrorContains(t, err, "cannot go on", "the log is shown")

	_, err = Start([]string{"/nonexistent/program"}, filepath.Join(t.TempDir(), "log"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.False(t, errors.Is(err, os.ErrProcessDone))
}
