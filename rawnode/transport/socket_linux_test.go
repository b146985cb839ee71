// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weftraft/weft/internal/wire"
)

// A network that is cut says nothing. The connection is given up all the same, and
// messages get through soon after the network works again: the kernel by itself would
// keep it for a quarter of an hour, and try again about as long after the cut as that
// took. The test needs a network of its own.
func TestCutNetwork(t *testing.T) {
	const child = "WEFT_TEST_CUT_NETWORK"
	if os.Getenv(child) == "" {
		t.Parallel() // it mostly sleeps
		cmd := exec.Command(os.Args[0], "-test.run=^TestCutNetwork$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if cmd.Start() != nil { // the error of what is not allowed differs
			t.Skip("this process may not make a network")
		}
		require.NoError(t, cmd.Wait(), &out)
		return
	}
	if loopback(true) != nil {
		t.Skip("this process may not set up its network")
	}
	b, box := start(t, Config{Node: 2, Listen: "127.0.0.1:0", Peers: map[uint64]string{1: ""}})
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: b.Addr().String()}, WriteTimeout: 500 * time.Millisecond})
	a.Send([]wire.Message{heartbeat(1, 2)})
	box.next(t)
	require.NoError(t, loopback(false))
	eventually(t, "the connection is given up", func() bool {
		a.Send([]wire.Message{heartbeat(1, 2)})
		return a.Stats().Peers[2][wire.ClassControl].Breaks > 0
	})
	require.NoError(t, loopback(true))
	eventually(t, "messages get through again", func() bool {
		a.Send([]wire.Message{heartbeat(1, 2)})
		return len(box.got) > 0
	})
}

// loopback switches the loopback interface on or off.
func loopback(on bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if on {
		req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	} else {
		req.SetUint16(0)
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
