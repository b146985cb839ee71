// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package transport

import "net"

// kernelQueue would return the bytes unsent by the kernel.
type kernelQueue struct{}

func (*kernelQueue) unsent(net.Conn) int { return 0 }
