// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package transport

import "net"

// kernelQueue would know what the kernel has not sent.
type kernelQueue struct{}

func (*kernelQueue) unsent(net.Conn) int { return 0 }
