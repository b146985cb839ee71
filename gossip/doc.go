// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package gossip lets the members of a group complete each other's payloads.
//
// The leader sends each follower a few units of an entry (see package ecraft).
// That is enough for the entry to be safe, but not for a follower to apply it.
// The rest comes from the other followers, so that the leader's link is not
// used twice:
//
//   - Push. Who sends what to whom follows from the entry's header. As soon as
//     its own units are durable, a follower sends them to those that Targets
//     names. Nobody asks, and the payload is there one one-way delay later. A
//     Deferred queue can hold pushes back, to leave the links to the leader.
//   - Pull. What did not come, because a peer is dead or a message was lost, is
//     asked for. A Puller decides whom to ask, and finds out when an entry
//     cannot be had any more: then the node needs a snapshot.
//
// A Store holds the units that came and the payloads that were made of them, in
// memory and within a budget. Neither ever goes into the log, so all of it may
// be forgotten at any time, and a restarted node begins with nothing.
//
// Units come from peers, and peers are not trusted. Each unit has a checksum;
// the payload has one too, which the leader put into the header. A peer whose
// units pass the first and make the payload fail the second is found out, if
// the payload can be had without it.
//
// The package does no I/O and reads no clock: ticks and messages come in as
// values, and what to send goes out as values. For the same inputs it decides
// the same.
package gossip
