// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package world is the one simulated world of this project: what the simulators
// of cores, of whole nodes, of hosts, and of the cluster that users test with
// have in common. A simulator adds its plan, its clients and its invariants.
//
//   - [Agenda]: virtual time, and what is to happen;
//   - [Draws]: randomness from a seed, in streams that do not disturb each other;
//   - [Network] and [Link]: delays, rates, losses, order, copies, cuts, and links that are
//     slow or held up;
//   - [Disk]: files that survive a crash in part, room that runs out, bytes that are
//     damaged. Its [Spindle] may be slow, or hang;
//   - [CPU]: a processor with costs, which may be slow;
//   - [Drive]: a replica.Replica, as a rawnode.Host runs it with goroutines: turns,
//     steps of the state machine, and snapshots in chunks. What else a host has is
//     behind [Surroundings];
//   - counters of what was reached, and a runner of many seeds.
//
// A run is a function of its seed. Nothing here looks at a clock, draws from a
// shared source, or depends on the order of a map.
package world
