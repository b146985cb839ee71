// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"net"
	"strconv"
	"sync"
)

// claims are abstract sockets, one for each port given to this process. Such a
// socket has no file, is of the network namespace that the port is of, and ends
// with the process, however the process ends.
var claims struct {
	sync.Mutex
	sockets map[int]net.Listener
}

// claim reports whether a port is this process's from now on. Nodes are restarted
// at their ports, so a port must be kept while nobody listens there.
func claim(port int) bool {
	claims.Lock()
	defer claims.Unlock()
	l, err := net.Listen("unix", "@weft-port-"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	if claims.sockets == nil {
		claims.sockets = map[int]net.Listener{}
	}
	claims.sockets[port] = l
	return true
}
