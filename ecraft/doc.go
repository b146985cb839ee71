// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package ecraft has what coded replication needs to know about units: how a payload is cut into
// units, which units a member gets, how they stand in an entry's Data, when enough are held, and
// how many each follower gets. The package knows nothing of Raft's state machine, reads no clock
// and does no I/O.
//
// # Strips
//
// A payload is cut into D data units, and Reed-Solomon coding adds parity units such that any D of
// all units give the payload back. Each member except the leader has a slot, and each slot owns D
// units that belong to no other slot: its strip. This is the layout of a group of five, with D = 6:
//
//	         level 3   2        1
//	slot 0    0   4    8   12  16  20
//	slot 1    1   5    9   13  17  21
//	slot 2    2   6   10   14  18  22
//	slot 3    3   7   11   15  19  23
//
// A follower is sent units from the left end of its strip on: two at level 3, three at level 2, and
// at level 1, instead of all six, the payload itself. Any three followers at level 3 have six
// units, any two at level 2, any one at level 1. Units 0 to 5 are parts of the payload, so at level
// 3 only units 6 and 7 must be computed for all four followers together.
//
// Because no two strips share a unit, the holdings of members add up, whether the members are at
// one level or not. A member that gets more units gets the next units to the right: no unit is sent
// in vain.
//
// An entry with a number of acknowledgements commits if any majority of the voters holds D units
// (Covered), because any majority may be the members that are left. So level l needs l + N/2
// acknowledgements, the leader's among them, and 1/l of the payload's bytes per follower. No code
// needs fewer bytes: if N/2 of the members that answered are lost, the other l must hold the
// payload. Level 1 is Raft.
//
// # In this package
//
//   - Layout, Header, Strip: the units, their assignment to members, and runs of units with
//     their checksums.
//   - Codeword makes units of a payload, Assembly a payload of units.
//   - Seal makes an entry's Data for one node, Parse takes the Data apart. The format
//     is in the head of seal.go.
//   - Covered and CoveredSets decide whether enough units are held.
//   - Policy chooses the number of units for each follower. Package adaptive has the policy
//     that measures, package papers the policies of published systems.
//
// A node's units follow from its log alone. The header of an entry, the same on every node, assigns
// a number of units to each slot: a node that stores the entry stores its units. More units come as
// riders in later entries, and stored entries are never rewritten.
package ecraft
