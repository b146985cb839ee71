// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernelQueue asks the kernel for a connection's unsent bytes, held back by congestion
// control, the peer's window or the interface. Bytes on their way do not count. A
// kernelQueue reuses its memory.
type kernelQueue struct {
	raw   syscall.RawConn
	fd    func(fd uintptr)
	bytes int
}

func (k *kernelQueue) unsent(conn net.Conn) int {
	if k.raw == nil {
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return 0
		}
		raw, err := tcp.SyscallConn()
		if err != nil {
			return 0
		}
		k.raw, k.fd = raw, k.ask
	}
	k.bytes = 0
	_ = k.raw.Control(k.fd) // an error means a closed connection, without waiting bytes
	return k.bytes
}

func (k *kernelQueue) ask(fd uintptr) {
	if n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQNSD); err == nil {
		k.bytes = max(n, 0)
	}
}
