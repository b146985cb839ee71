// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package strangers

import (
	"io"
	"net"
)

// FirstOfTLS is the first byte of a connection whose other end speaks TLS: a handshake record.
const FirstOfTLS = 22

// Peeked is a connection whose first byte was read and is read again.
type Peeked struct {
	net.Conn
	First  byte
	unread bool
}

// Peek reads the first byte of a connection.
func Peek(raw net.Conn) (*Peeked, error) {
	var first [1]byte
	if _, err := io.ReadFull(raw, first[:]); err != nil {
		return nil, err
	}
	return &Peeked{raw, first[0], true}, nil
}

// Read implements net.Conn.
func (c *Peeked) Read(p []byte) (int, error) {
	if c.unread && len(p) > 0 {
		c.unread = false
		p[0] = c.First
		return 1, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite lets the other end read to the end.
func (c *Peeked) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
