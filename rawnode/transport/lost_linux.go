// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// endUnacknowledged has the kernel end a connection when nothing of what was written
// to it was acknowledged for so long. By itself it tries for a quarter of an hour, each
// time after twice the pause: when a network that was cut for a minute works again,
// it may wait for another minute, where a new connection takes a round trip.
func endUnacknowledged(conn net.Conn, after time.Duration) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// Without it, the connection ends later.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(max(after.Milliseconds(), 1)))
	})
}
