// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernelQueue asks the kernel what of a connection it has not sent: bytes that
// congestion control, the peer's window or the interface hold back. What is on
// its way does not count. Its memory is used again.
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
	_ = k.raw.Control(k.fd) // with an error it is closed, and nothing waits
	return k.bytes
}

func (k *kernelQueue) ask(fd uintptr) {
	if n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQNSD); err == nil {
		k.bytes = max(n, 0)
	}
}
