// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
)

// ways look at what an entry, a read or a change meets on its way: disks that hang, messages that come
// twice, reports that are lost, and responders that know from notes what is committed.
var ways = []*scenario{
	{
		Name: "disks hang while entries are applied early", Voters: []uint64{1, 2, 3}, Nodes: 3, ElectionTick: 3, Level: 2, Host: threads, Early: true,
		Before: elected(1),
		Wishes: []wish{propose(1), campaign(2), propose(2), query(1, 1)},
		Splits: [][]uint64{{1}},
		Most:   with([budgets]int{actHang: 2, actCrash: 1, actSplit: 1, actBeat: 2}),
		Brisk:  true,
	},
	{
		// Two of four restore an entry.
		Name: "one of four is removed, and messages come twice", Voters: []uint64{1, 2, 3, 4}, Nodes: 4, ElectionTick: 3, Level: 2,
		Before:  elected(1),
		Changes: []memberChange{{Text: "r4"}},
		Wishes:  []wish{propose(1), change(0), propose(2)},
		Splits:  [][]uint64{{1, 2}},
		Most:    with([budgets]int{actCrash: 1, actTorn: 1, actSplit: 1, actTwice: 1, actEarly: 1, actBeat: 2}),
		Brisk:   true,
	},
	{
		Name: "one voter becomes three", Voters: []uint64{1}, Nodes: 3, ElectionTick: 3, Level: 2,
		Before:  elected(1),
		Changes: []memberChange{{Text: "v2"}, {Text: "v3"}},
		Wishes:  []wish{propose(1), change(0), propose(2), change(1), propose(3)},
		Most:    with([budgets]int{actCrash: 1, actTorn: 1, actLate: 1, actTwice: 1, actSlow: 1, actEarly: 1, actBeat: 2}),
	},
	{
		Name: "reads at responders that go by notes", Voters: []uint64{1, 2, 3}, Nodes: 3, ElectionTick: 5, Level: 2, Leases: true, Responders: []leases.NodeID{2, 3}, Host: threads, Notes: true,
		Before: steps(elected(1), beats(6)),
		Wishes: []wish{propose(1), query(1, 2), query(2, 3), query(3, 1)},
		Splits: [][]uint64{{1}, {3}},
		Most:   with([budgets]int{actCrash: 1, actHang: 1, actLate: 1, actSplit: 1, actEarly: 2, actBeat: 1}),
	},
	{
		// Two of the three who stay have not released an entry, and the leader is a new process.
		Name: "reports are lost as five become three", Voters: []uint64{1, 2, 3, 4, 5}, Nodes: 5, ElectionTick: 3, Level: 3,
		Before:  steps(elected(1), []step{say(propose(1)), beat(), beat(), say(compact(1)), say(compact(4)), say(compact(5)), crash(1), restart(1), split(1, 3, 4, 5)}),
		Changes: []memberChange{{Text: "r4 r5", Joint: pb.ConfChangeTransitionJointImplicit}},
		Wishes:  []wish{campaign(1), change(0)},
		Most:    with([budgets]int{actBare: 1, actBeat: 4}),
	},
}
