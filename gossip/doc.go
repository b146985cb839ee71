// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package gossip lets the members of a group complete each other's payloads.
//
// The leader sends each follower a few units of an entry (see package ecraft): enough
// for the entry to be safe, but not for a follower to apply the entry. The rest comes
// from the other followers, so that the leader's link is not used twice:
//
//   - Push. Senders and receivers follow from the entry's header. As soon as a follower's
//     own units are durable, it sends them to the members that Targets names, without a
//     question. The payload is there one one-way delay later. A Deferred queue can hold
//     pushes back, to leave the links to the leader.
//   - Pull. Units that did not come, because a peer is dead or a message was lost, are
//     asked for. A Puller decides which peer to ask, and finds out when no peer can
//     complete an entry any more: then the node needs a snapshot.
//
// A Store holds units and the payloads made of them, in memory and within a budget.
// Neither is written to the log, so all may be forgotten at any time, and a restarted
// node begins with an empty Store.
//
// Units come from peers, and peers are not trusted. Each unit has a checksum; the
// payload has another, which the leader put into the header. Units that pass the first
// checksum and make a payload that fails the second are dropped and asked for again,
// and the error names the peers that sent them.
//
// The package does no I/O and reads no clock: ticks and messages come in as
// values, and what to send goes out as values. For the same inputs it decides
// the same.
package gossip
