// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package transport

import (
	"net"
	"time"
)

// hurry would have the kernel send what is written to conn first.
func hurry(net.Conn) {}

// endUnacknowledged would have the kernel end a connection when nothing of what was
// written to it was acknowledged for so long.
func endUnacknowledged(net.Conn, time.Duration) {}
