// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// freePorts returns n neighbouring loopback addresses at which nobody listens.
// They lie below the ports that systems give to outgoing connections.
func freePorts(n int) ([]string, error) {
	for range 100 {
		first := 15000 + rand.IntN(16000)
		addresses := make([]string, n)
		free := true
		for i := range addresses {
			addresses[i] = fmt.Sprintf("127.0.0.1:%d", first+i)
			l, err := net.Listen("tcp", addresses[i])
			if err != nil {
				free = false
				break
			}
			_ = l.Close() // nobody has connected
		}
		if free {
			return addresses, nil
		}
	}
	return nil, fmt.Errorf("found no %d free ports in a row between 15000 and 31000", n)
}
