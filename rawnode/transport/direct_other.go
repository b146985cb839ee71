// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package transport

import "net"

// attempt would write without waiting. Here everything is left to the sender.
type attempt struct{}

func (*attempt) write(*net.TCPConn, []byte) (int, error) { return 0, nil }
