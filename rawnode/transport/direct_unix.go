// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package transport

import (
	"errors"
	"net"
	"syscall"
)

// attempt writes to a connection without waiting. Its memory is used again.
type attempt struct {
	raw syscall.RawConn
	fd  func(fd uintptr)
	b   []byte
	n   int
	err error
}

// write writes as much of b as the kernel has room for. The write deadline and the lock
// of conn are bypassed, because both are for writes that wait.
func (a *attempt) write(conn *net.TCPConn, b []byte) (int, error) {
	if a.raw == nil {
		raw, err := conn.SyscallConn()
		if err != nil {
			return 0, err
		}
		a.raw, a.fd = raw, a.try
	}
	a.b, a.n = b, 0
	defer func() { a.b = nil }()
	if err := a.raw.Control(a.fd); err != nil {
		return 0, err // closed
	}
	return a.n, a.err
}

func (a *attempt) try(fd uintptr) {
	for {
		n, err := syscall.Write(int(fd), a.b)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if errors.Is(err, syscall.EAGAIN) {
			n, err = 0, nil
		}
		a.n, a.err = max(n, 0), err
		return
	}
}
