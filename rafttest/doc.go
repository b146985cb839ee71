// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package rafttest runs whole clusters in one goroutine, in virtual time, from
// one seed, and looks after every step whether Raft's promises hold.
//
//	r := rafttest.Run(42, rafttest.Options{Trace: os.Stdout})
//	if r.Err != nil {
//		// r.Story has the last lines; Run(42, ...) shows it all again.
//	}
//
// # The model
//
// A run has up to seven nodes. A node is a machine with a disk, a clock that
// may run fast or slow, and a process, which runs [raft.RawNode] in the plainest
// host there can be. (What a rawnode.Host decides runs in package nodes.) All else
// is simulated:
//
//   - The disk is a stream of records. What is written is seen at once, and
//     durable when a sync that began later ends. A crash leaves what is durable
//     and a prefix of the rest. Syncs take time; some take long.
//   - The network carries bytes, encoded and decoded as in real life, with
//     delay, a bandwidth with a queue, loss, duplication and reordering. Nodes
//     are cut off, in one direction or both, alone or in groups.
//   - Processes are killed, machines lose power, also in the middle of a write,
//     processes are paused and wake up to all that came in the meantime.
//   - Operators change the members, in all the ways there are, and move
//     leadership.
//   - Clients put, get, and compare and swap, through any node, and try again
//     elsewhere when they get no answer.
//
// A seed first draws a plan: how large the cluster is, how it is configured,
// which of the faults there are, and how strong (swarm testing: a run in which
// everything goes wrong at once hides what only shows when little does). Then
// it runs for six seconds of virtual time with faults. Then the faults end, all
// nodes or a sufficient number of them run, and the cluster must elect a
// leader, take a proposal at each member, and bring them all to one state
// within a bounded time. Then nobody asks for anything, and nodes send heartbeats
// and nothing else.
//
// Whatever a run does is a function of its seed: there is no goroutine, no
// clock and no order of a map in it. So a finding is a number.
//
// # The invariants
//
// The constants of type string name them; check.go and the files check_*.go say how
// each is checked. Those which look into disks ([commitDurability],
// [durableFirst], and [stateMonotony] at restarts) can be left out with
// Options.Outside, to see what a mistake does to others. In the end the history
// of the clients is checked for linearizability by porcupine, key by key.
//
// # To add to it
//
// A fault is a mean time between (or a chance) in plan, drawn in drawFaults; a
// method of faults that makes it happen; a line in faults.begin; and a counter
// in [reach], which keeps the tests red until it is reached. It must end when
// the calm begins. An invariant is a method of checker, called where the step is
// made, and a constant for its name.
//
// A planted bug ([bug]) shows that an invariant finds something: new ones have
// one in bugs_test.go.
//
// What hosts must know, and the simulator's host does, is in README.md.
package rafttest
