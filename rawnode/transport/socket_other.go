// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package transport

import (
	"net"
	"time"
)

// hurry would have the kernel send conn's bytes first.
func hurry(net.Conn) {}

// endUnacknowledged would have the kernel end a connection without any acknowledgement
// for so long.
func endUnacknowledged(net.Conn, time.Duration) {}
