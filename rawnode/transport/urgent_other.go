// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package transport

import "net"

// hurry would have the kernel send what is written to conn before other things.
func hurry(net.Conn) {}
