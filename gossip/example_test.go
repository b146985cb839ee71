// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"fmt"
	"strings"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
)

// The leader of a group of five sent each follower a third of a payload. One follower is
// dead. The other three complete each other: each pushes its units to the members that
// the header's schedule names, and asks for what no push brings.
func Example() {
	payload := []byte(strings.Repeat("weft ", 1200))
	layout := ecraft.NewLayout(5, 4)
	third := uint8(layout.UnitsAt(3))
	header := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload),
		Layout: layout, Encoder: 1, Members: []uint64{2, 3, 4, 5},
		Units: []uint8{third, third, third, third},
	}
	word := ecraft.NewCodeword(header, payload)
	defer word.Free()
	entry := ecraft.ID{Term: 1, Index: 1}

	alive := []uint64{2, 3, 4}
	own := make(map[uint64]ecraft.Strip)
	stores := make(map[uint64]*gossip.Store)
	pullers := make(map[uint64]*gossip.Puller)
	for slot, id := range alive {
		own[id] = word.Strip(slot, 0, int(third))
		stores[id] = gossip.NewStore(id, 1<<20)
		stores[id].Expect(entry, header, own[id])
		pullers[id] = gossip.NewPuller(id, gossip.PullerOptions{})
		pullers[id].SetMembers([]uint64{1, 2, 3, 4, 5})
	}

	// Push: no member waits for a question.
	for _, from := range alive {
		for _, push := range gossip.Targets(header, from, 1, gossip.Peers{Reader: func(uint64) bool { return false }}, nil) {
			if stores[push.Peer] == nil {
				continue // the dead one
			}
			strip := own[from].Sub(0, push.Count)
			deliver(stores[push.Peer], entry, from, gossip.AppendUnits(nil, strip))
		}
	}
	for _, id := range alive {
		missing, _ := stores[id].Missing(entry)
		fmt.Printf("node %d lacks %d of %d units\n", id, missing, layout.D)
	}

	// Pull: what the dead follower did not push is asked for, some ticks later.
	for now := range 10 {
		for _, id := range alive {
			for _, ask := range pullers[id].Plan(now, stores[id].Lacking(entry.Index, 1, nil), 1, nil) {
				for _, want := range ask.Wants {
					if stores[ask.To] == nil {
						continue
					}
					strips := gossip.Answer(header, ask.To, id, want, []ecraft.Strip{own[ask.To]}, nil)
					pullers[id].Answered(ask.To, want.ID)
					deliver(stores[id], want.ID, ask.To, gossip.AppendUnits(nil, strips...))
				}
			}
		}
	}
	for _, id := range alive {
		fmt.Printf("node %d has the payload: %t\n", id, string(stores[id].Payload(entry)) == string(payload))
	}
	// Output:
	// node 2 lacks 0 of 6 units
	// node 3 lacks 2 of 6 units
	// node 4 lacks 2 of 6 units
	// node 2 has the payload: true
	// node 3 has the payload: true
	// node 4 has the payload: true
}

// deliver brings the units of a message into a store.
func deliver(store *gossip.Store, entry ecraft.ID, from uint64, message []byte) {
	strips, err := gossip.ParseUnits(message)
	if err != nil {
		fmt.Println(err)
	}
	for _, s := range strips {
		if _, err := store.Add(entry, from, s); err != nil {
			fmt.Println(err)
		}
	}
}
