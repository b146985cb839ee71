// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases_test

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/leases"
)

// Node 1 leads a group of three, and node 2 is to answer reads. Raft would carry the
// messages, and tell of the leader, the log and the clock.
func Example() {
	voters := leases.Members{Voters: leases.Voters{Incoming: []leases.NodeID{1, 2, 3}}}
	start := leases.Start{Now: leases.Instant(time.Hour), Empty: true}
	nodes := map[leases.NodeID]*leases.Node{}
	for _, id := range voters.Incoming {
		n, err := leases.New(leases.Config{ID: id, Boot: leases.Boot(id), ElectionTimeout: time.Second,
			Wanted: []leases.Want{{Nodes: []leases.NodeID{2}}}}, start)
		if err != nil {
			fmt.Println(err)
			return
		}
		n.Configured(start.Now, voters)
		n.Turned(start.Now, leases.Turn{Term: 1, Leader: 1, First: 1})
		n.TermDurable(1)
		n.Appended(leases.Entries{First: 1, Count: 1})
		n.Committed(1)
		n.Applied(1)
		nodes[id] = n
	}
	now := start.Now
	for range 5 {
		now += leases.Instant(100 * time.Millisecond)
		for _, id := range voters.Incoming {
			n := nodes[id]
			n.Heard(now)
			nodes[1].Acknowledged(now, id, 1)
			n.Tick(now)
			for _, o := range n.Poll(now) {
				if err := nodes[o.To].Step(now, id, o.Message); err != nil {
					fmt.Println(err)
				}
			}
		}
	}
	for _, id := range voters.Incoming {
		index, ok := nodes[id].ReadIndex(now, leases.KeySpan("k"))
		fmt.Printf("node %d answers reads of k: %v, once it has applied %d\n", id, ok, index)
	}
	// An entry that node 2 has not acknowledged waits for node 2, not for node 3.
	nodes[1].Appended(leases.Entries{First: 2, Count: 1})
	fmt.Println("the leader may commit up to", nodes[1].Committable(2))
	nodes[1].Acknowledged(now, 2, 2)
	fmt.Println("and then up to", nodes[1].Committable(2))
	// Output:
	// node 1 answers reads of k: true, once it has applied 1
	// node 2 answers reads of k: true, once it has applied 1
	// node 3 answers reads of k: false, once it has applied 0
	// the leader may commit up to 1
	// and then up to 2
}
