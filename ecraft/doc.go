// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package ecraft is coded replication's knowledge of units: how a payload is cut into
// units, which member gets which, how units stand in an entry's Data, when enough are
// held, and how many each follower had best be sent. It knows nothing of Raft's state
// machine, reads no clock and does no I/O.
//
// # Strips
//
// A payload is cut into D data units, and Reed-Solomon coding adds parity units
// such that any D of all of them give the payload back. Each member but the
// leader has a slot, and each slot owns D units that no other slot has: its
// strip. This is the layout of a group of five, with D = 6:
//
//	         level 3   2        1
//	slot 0    0   4    8   12  16  20
//	slot 1    1   5    9   13  17  21
//	slot 2    2   6   10   14  18  22
//	slot 3    3   7   11   15  19  23
//
// A follower is sent units from the left end of its strip on: two at level 3,
// three at level 2, and at level 1, where it would be all six, the payload as it
// is. Any three followers at level 3 have six units, any two at level 2, any one
// at level 1. Units 0 to 5 are parts of the payload, so at level 3 only 6 and 7
// need be computed for all four followers together.
//
// Because no two strips share a unit, the holdings of some members add up, whether the
// members are at one level or not. More units for a member are the next ones to the
// right: no unit is sent in vain.
//
// An entry with so many acknowledgements commits if the members that may be left, any
// majority of the voters, hold D units (Covered). So level l needs l + N/2
// acknowledgements, the leader's among them, and 1/l of the payload's bytes per
// follower. No code can do with less: if N/2 of the members that answered are lost, the
// other l must hold the payload. Level 1 is Raft.
//
// # In this package
//
//   - Layout, Header, Strip: the units, who is assigned which, and some of them
//     with their checksums.
//   - Codeword makes units of a payload, Assembly a payload of units.
//   - Seal makes an entry's Data for one node, Parse takes it apart. The format
//     is docs/coded-envelope.md.
//   - Covered and CoveredSets say when enough is held.
//   - Policy says how many units each follower is sent. Package adaptive has the
//     one that measures, package papers those of published systems.
//
// A node's units follow from its log alone. The header of an entry, the same on every
// node, assigns a number of units to each slot: a node that stores the entry stores its
// units. More units come as riders in later entries, and stored entries are never
// rewritten.
package ecraft
