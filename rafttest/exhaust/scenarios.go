// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
)

// with returns bounds for what goes wrong, and lets all of that end.
func with(most [budgets]int) [budgets]int {
	most[actStart], most[actHeal], most[actResume], most[actRelease] = most[actCrash]+most[actTorn], 1, 1, most[actLate]+most[actTwice]
	most[actSync] = most[actHang]
	return most
}

// scenarios are the situations that are explored.
var scenarios = slices.Concat(meetings, ways)

// meetings begin close to where parts meet.
var meetings = []*scenario{
	{
		Name: "every order of a coded entry and a change", Voters: []uint64{1, 2, 3}, Nodes: 4, ElectionTick: 3, Level: 2, Orders: true,
		Before:  steps(elected(1), []step{say(propose(1)), beat()}),
		Changes: []memberChange{{Text: "v4"}},
		Wishes:  []wish{propose(2), change(0)},
		Most:    with([budgets]int{actEarly: 1, actCrash: 1, actBeat: 1}),
	},
	{
		Name: "two voters added one by one", Voters: []uint64{1, 2, 3}, Nodes: 5, ElectionTick: 3, Level: 2,
		Before:  elected(1),
		Changes: []memberChange{{Text: "v4"}, {Text: "v5"}},
		Wishes:  []wish{propose(1), change(0), change(1), propose(2)},
		Most:    with([budgets]int{actLate: 1, actCrash: 1, actTorn: 1, actSlow: 1, actEarly: 1, actBeat: 1}),
		Brisk:   true,
	},
	{
		Name: "a voter is replaced through a joint configuration", Voters: []uint64{1, 2, 3}, Nodes: 4, ElectionTick: 3, Level: 2,
		Before:  elected(1),
		Changes: []memberChange{{Text: "v4 r3", Joint: pb.ConfChangeTransitionJointImplicit}},
		Wishes:  []wish{propose(1), change(0), propose(2)},
		Splits:  [][]uint64{{1}},
		Most:    with([budgets]int{actLate: 1, actCrash: 1, actTorn: 1, actSlow: 1, actSplit: 1, actEarly: 1, actBeat: 2}),
		Brisk:   true,
	},
	{
		Name: "one of five is removed, another demoted", Voters: []uint64{1, 2, 3, 4, 5}, Nodes: 5, ElectionTick: 5, Level: 3,
		Before:  steps(elected(1), []step{say(propose(1)), beat()}),
		Changes: []memberChange{{Text: "r5"}, {Text: "l4"}},
		Wishes:  []wish{propose(2), change(0), change(1)},
		Splits:  [][]uint64{{1, 2}},
		Most:    with([budgets]int{actCrash: 1, actTorn: 1, actSlow: 1, actSplit: 1, actEarly: 1, actBeat: 2}),
		Brisk:   true,
	},
	{
		Name: "leases and a voter to come", Voters: []uint64{1, 2, 3}, Nodes: 4, ElectionTick: 5, Level: 2, Leases: true, Responders: []leases.NodeID{2}, Host: threads,
		Before:  steps(elected(1), beats(2)),
		Changes: []memberChange{{Text: "v4"}},
		Wishes:  []wish{propose(1), change(0), propose(2)},
		Splits:  [][]uint64{{1}, {2}},
		Most:    with([budgets]int{actSplit: 1, actCrash: 1, actSlow: 1, actEarly: 1, actBeat: 1}),
		Brisk:   true,
	},
	{
		Name: "leadership moves as leases and a change are under way", Voters: []uint64{1, 2, 3}, Nodes: 4, ElectionTick: 5, Level: 2, Leases: true, Host: threads,
		Before:  steps(elected(1), beats(2)),
		Changes: []memberChange{{Text: "v4"}},
		Wishes:  []wish{propose(1), change(0), transfer(2), propose(2)},
		Splits:  [][]uint64{{1}},
		Most:    with([budgets]int{actSplit: 1, actCrash: 1, actSlow: 1, actEarly: 1, actBeat: 1}),
		Brisk:   true,
	},
	{
		// A voter is asked whether it reads coded entries while an entry is late because a
		// member is deaf.
		Name: "voter to come while an entry is late", Voters: []uint64{1, 2, 3}, Nodes: 4, ElectionTick: 5, Level: 2, Clock: true,
		Before:  steps(elected(1), []step{say(propose(1)), beat(), split(3), say(propose(2))}),
		Changes: []memberChange{{Text: "v4"}},
		Wishes:  []wish{change(0)},
		Most:    with([budgets]int{actBeat: 6, actWait: 2, actEarly: 1, actLate: 1}),
	},
	{
		// Hosts report changes before they apply them, and one of them is slow.
		Name: "changes reported before they are applied", Voters: []uint64{1, 2, 3}, Nodes: 4, ElectionTick: 3, Level: 2, Host: reportsFirst,
		Before:  elected(1),
		Changes: []memberChange{{Text: "v4"}, {Text: "l3"}},
		Wishes:  []wish{propose(1), change(0), change(1)},
		Most:    with([budgets]int{actSlow: 1, actBeat: 2, actEarly: 1, actCrash: 1}),
		Brisk:   true,
	},
	{
		// Node 1 has two changes in its log, and the commit index that covers the first is lost.
		Name: "lease with two changes not applied", Voters: []uint64{1, 2, 3}, Nodes: 5, ElectionTick: 5, Level: 2, Leases: true, Host: threads,
		Before:  steps(elected(2), beats(6), []step{split(2, 3, 4), say(change(0)), beat(), beat(), say(change(1)), beat(), heal(), tear(1), crash(2), split(1, 2, 4), restart(1), restart(2), slow(1)}, beats(4), []step{say(campaign(1)), beat(), say(campaign(1)), beat(), beat()}),
		Changes: []memberChange{{Text: "v4"}, {Text: "v5"}},
		Wishes:  []wish{campaign(4), propose(-1)},
		Splits:  [][]uint64{{1, 2}},
		Most:    [budgets]int{actBeat: 12, actSplit: 1},
		Brisk:   true,
	},
	{
		// Nodes 1 and 2 have two changes in their logs and have applied neither; the others have both.
		Name: "two nodes with two changes not applied", Voters: []uint64{1, 2, 3}, Nodes: 5, ElectionTick: 5, Level: 2, Host: threads,
		Before:  steps(elected(2), []step{split(2, 3, 4), say(change(0)), beat(), beat(), say(change(1)), beat(), heal(), tear(1), crash(2), slow(1), slow(2), split(1, 2), restart(1), restart(2)}, beats(4), []step{say(campaign(1)), beat(), say(campaign(1)), beat(), beat()}),
		Changes: []memberChange{{Text: "v4"}, {Text: "v5"}},
		Wishes:  []wish{propose(-1), campaign(4)},
		Most:    [budgets]int{actBeat: 8},
		Brisk:   true,
	},
	{
		// A joint configuration is to be left, and its leader falls.
		Name: "joint configuration left twice", Voters: []uint64{1, 2, 3}, Nodes: 4, ElectionTick: 3, Level: 2, Host: reportsFirst,
		Before:  elected(1),
		Changes: []memberChange{{Text: "v4 r3", Joint: pb.ConfChangeTransitionJointImplicit}},
		Wishes:  []wish{change(0)},
		Splits:  [][]uint64{{1}},
		Most:    with([budgets]int{actSlow: 1, actBeat: 8, actSplit: 1, actCrash: 1}),
		Brisk:   true,
	},
	{
		// All others have compacted what node 3 has to apply, and two of them are members
		// of a configuration that node 3 has not applied.
		Name: "stuck leader hands over to a voter to come", Voters: []uint64{1, 2, 3}, Nodes: 5, ElectionTick: 5, Level: 2, Leases: true, Host: threads,
		Before: steps(elected(1), beats(6), []step{say(propose(1)), beat(), say(change(0))}, beats(4),
			[]step{say(transfer(4)), beat(), beat(), say(compact(1)), say(compact(2)), say(compact(4)), say(compact(5)), split(3, 4), say(propose(-2)),
				crash(4), crash(3), heal(), restart(3)}, beats(8)),
		Changes: []memberChange{{Text: "v4 v5 r1 r2", Joint: pb.ConfChangeTransitionJointImplicit}},
		Wishes:  []wish{propose(-1)},
		Most:    [budgets]int{actBeat: 4, actStart: 2, actCrash: 1},
		Brisk:   true,
	},
	{
		// The grantors of a leader's lease restart, and forget what they have granted.
		Name: "grantors restart while the leader has its lease", Voters: []uint64{1, 2, 3}, Nodes: 3, ElectionTick: 5, Leases: true, Host: threads,
		Before: steps(elected(1), beats(6), []step{split(1), crash(2)}),
		Wishes: []wish{campaign(3), propose(-1)},
		Most:   [budgets]int{actCrash: 1, actStart: 2, actBeat: 8},
	},
}
