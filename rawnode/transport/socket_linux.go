// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// interactive is the kernel's priority for what is not to wait behind other
// traffic of this machine (TC_PRIO_INTERACTIVE); it needs no privilege.
const interactive = 6

// hurry has the kernel send what is written to conn before what waits on other
// connections, where the interface's queue knows priorities. Where it serves
// connections in turns, as is usual, one with few bytes goes ahead anyway.
func hurry(conn net.Conn) { ask(conn, unix.SOL_SOCKET, unix.SO_PRIORITY, interactive) }

// endUnacknowledged has the kernel end a connection when nothing of what was written
// to it was acknowledged for so long. By itself it tries for a quarter of an hour, each
// time after twice the pause: when a network that was cut for a minute works again,
// it may wait for another minute, where a new connection takes a round trip.
func endUnacknowledged(conn net.Conn, after time.Duration) {
	ask(conn, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(max(after.Milliseconds(), 1)))
}

// ask sets an option of a TCP connection that it can do without.
func ask(conn net.Conn, level, option, value int) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), level, option, value) // a courtesy of the kernel's
	})
}
