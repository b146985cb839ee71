// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodes runs whole nodes in one goroutine, in virtual time, from one
// seed, and looks after every step whether what they promise holds.
//
//	r := nodes.Run(42, nodes.Options{Trace: os.Stdout})
//	if r.Err != nil {
//		// r.Story has the last lines; Run(42, ...) shows it all again.
//	}
//
// Package rafttest, next door, runs cores on a model of a disk, and knows what Raft
// promises of their logs. Here nodes are as near to real ones as
// they can be in one goroutine, and are judged from outside.
//
// # What is real
//
//   - rawnode.Replica, one for each group at each node: batcher, router, outbox,
//     read barriers, transfers, snapshots, what the log may drop;
//   - storage.Engine, one for each node and shared by its groups, on pebble's
//     crashable file system: syncs, torn writes, recovery, a disk without room;
//   - the messages, through the wire's codec, with the sizes that they have there;
//   - the sessions of clients, from package session, in a small key-value store.
//
// # What is simulated
//
// What a rawnode.Host does with goroutines: a node here has a processor that
// does one piece of work at a time, a network card that its connections share, a
// disk, and queues with the bounds of a host's. What comes in while a node is
// busy waits, and is one turn, one entry, one write, as in real life. What work
// takes is in one table, [costs], fitted to real hosts by the command in fit.
//
// # A run
//
// A seed draws a plan: nodes, groups, bounds of all queues, costs, clients, and
// which faults there are and how strong. Machines lose power, at any operation
// on the file system too, and processes are killed; nodes are cut off, links are
// slow or held up, messages are lost or doubled; disks are slow, hang, or are full; a
// bit of a log is flipped, or a file cut; processors are slow; clocks
// drift, processes stand still; operators change members and move leadership.
// After two seconds of that the faults end, and within a bounded time each group
// must have a leader, take a command at every member, and be in one state.
//
// The constants of type string name the invariants. A planted [bug] shows that
// the simulator would see a mistake.
//
// Tests in this package also run scenarios, in which only what they ask for goes
// wrong: two hundred changes of the leader, more load than fits, members that
// change under load.
package nodes
