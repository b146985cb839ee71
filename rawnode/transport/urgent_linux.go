// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"

	"golang.org/x/sys/unix"
)

// interactive is the kernel's priority for what is not to wait behind other
// traffic of this machine (TC_PRIO_INTERACTIVE); it needs no privilege.
const interactive = 6

// hurry has the kernel send what is written to conn before what waits on other
// connections, where the interface's queue knows priorities. Where it serves
// connections in turns, as is usual, one with few bytes goes ahead anyway.
func hurry(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, interactive) // a courtesy of the kernel's
	})
}
