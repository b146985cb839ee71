// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// interactive is the kernel's priority for bytes ahead of this machine's other traffic
// (TC_PRIO_INTERACTIVE), and needs no privilege.
const interactive = 6

// hurry has the kernel send conn's bytes before the bytes of other connections, if the
// interface's queue knows priorities. The usual queue serves connections in turns, and
// a connection with few bytes goes ahead anyway.
func hurry(conn net.Conn) { ask(conn, unix.SOL_SOCKET, unix.SO_PRIORITY, interactive) }

// endUnacknowledged has the kernel end a connection without any acknowledgement of
// written bytes for so long. By default the kernel tries for a quarter of an hour, each
// time after twice the pause: after a cut of a minute the next attempt may be another
// minute away, where a new connection takes a round trip.
func endUnacknowledged(conn net.Conn, after time.Duration) {
	ask(conn, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(max(after.Milliseconds(), 1)))
}

// ask sets a dispensable option of a TCP connection.
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
