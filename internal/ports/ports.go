// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package ports finds free ports for nodes that run on this machine.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// The range lies below that from which systems choose the ports of outgoing
// connections. Such a connection could otherwise take the port of a node that is
// down for a moment, or even connect to itself while it looks for that node.
const (
	lowest  = 15000
	highest = 31999
)

// Free returns n different loopback addresses, host:port, at which nobody
// listens now, and which Free gives to no other process of this machine until
// this process ends. A foreign program may still listen before the addresses
// are used: be ready to try again.
func Free(n int) ([]string, error) {
	var addresses []string
	for tries := 0; len(addresses) < n; tries++ {
		if tries == 100*n {
			return nil, fmt.Errorf("found %d free ports of %d to %d on 127.0.0.1, need %d; stop what uses them", len(addresses), lowest, highest, n)
		}
		port := lowest + rand.IntN(highest-lowest+1)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if !claim(port) {
			_ = l.Close()
			continue
		}
		// Held until all are found, so that none is chosen twice.
		defer func() { _ = l.Close() }()
		addresses = append(addresses, address)
	}
	return addresses, nil
}
