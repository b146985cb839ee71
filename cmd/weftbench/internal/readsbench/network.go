// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"time"

	"github.com/weftraft/weft/leases"
)

// Network is a set of sites, each with a node, and the round trips between them.
type Network struct {
	Name  string   `json:"name"`
	Sites []string `json:"sites"`
	// RTT has the round trip between two sites in ms, above the diagonal.
	RTT [][]float64 `json:"rtt_ms"`
	// Leader is the id of the node that leads, Responders are the ids of the nodes that serve
	// reads, for policies with responders. Ids begin at 1.
	Leader     uint64          `json:"leader"`
	Responders []leases.NodeID `json:"responders"`
	// Client is the round trip between a client and its node, Tick the time between two heartbeats.
	Client, Tick time.Duration `json:"-"`
}

// Networks returns the networks: a data centre, and two wide networks, with round trips of the
// usual size between such places.
func Networks() []Network {
	return []Network{
		{
			Name: "lan", Sites: []string{"1", "2", "3", "4", "5"}, Leader: 1, Responders: []leases.NodeID{2, 3, 4},
			RTT:    [][]float64{{0.5, 0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, {0.5, 0.5}, {0.5}},
			Client: 100 * time.Microsecond, Tick: 100 * time.Millisecond,
		},
		{
			Name: "wan", Sites: []string{"WI", "UT", "SC", "MA", "APT"}, Leader: 1, Responders: []leases.NodeID{2, 4, 5},
			RTT:    [][]float64{{37, 27, 25, 38}, {53, 58, 1}, {29, 54}, {59}},
			Client: time.Millisecond, Tick: 120 * time.Millisecond,
		},
		{
			Name: "geo", Sites: []string{"VA", "CA", "OR", "EU", "JP"}, Leader: 1, Responders: []leases.NodeID{2, 3, 4},
			RTT:    [][]float64{{72, 93, 88, 162}, {59, 151, 113}, {145, 121}, {220}},
			Client: time.Millisecond, Tick: 120 * time.Millisecond,
		},
	}
}

// RoundTrip returns the round trip between two nodes.
func (n *Network) RoundTrip(a, b uint64) time.Duration {
	if a == b {
		return 0
	}
	a, b = min(a, b), max(a, b)
	return time.Duration(n.RTT[a-1][b-a-1] * float64(time.Millisecond))
}

// farthest returns the longest round trip between the leader and a responder.
func (n *Network) farthest() (d time.Duration) {
	for _, id := range n.Responders {
		d = max(d, n.RoundTrip(n.Leader, uint64(id)))
	}
	return d
}

// flat returns a network of nodes at equal distances.
func flat(nodes int, roundTrip time.Duration) Network {
	n := Network{Name: "flat", Leader: 1, Client: roundTrip / 5, Tick: 100 * time.Millisecond}
	for i := range nodes {
		n.Sites = append(n.Sites, string(rune('a'+i)))
		var row []float64
		for range nodes - 1 - i {
			row = append(row, float64(roundTrip)/float64(time.Millisecond))
		}
		n.RTT = append(n.RTT, row)
		if i > 0 {
			n.Responders = append(n.Responders, leases.NodeID(i+1))
		}
	}
	return n
}
