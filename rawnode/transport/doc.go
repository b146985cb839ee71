// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package transport carries messages between nodes over TCP, with or without
// TLS.
//
// # Connections
//
// Between two nodes there are up to four connections in each direction, one for each
// wire.Class, so that a heartbeat never waits behind an append, nor an append behind a
// snapshot. Each carries messages one way, from the dialing node. A node dials when
// there is something to send, and again, with growing pauses, after a break. One
// connection serves all groups of a node.
//
// # Bounds
//
// Each connection has a queue with a bound in bytes. Messages without room, and
// messages waiting when the connection breaks, are dropped and reported to their group;
// a Raft core needs no more. A peer's bytes wait in the network until its receive
// budget has room. A peer that stops reading, or sends too much, costs its budget and
// nothing else.
//
// # Trust
//
// With Config.TLS, both nodes of a connection have shown certificates with their ids;
// see [Files]. Without TLS, a peer's identity is its word: only for networks with
// trusted members.
//
// A connection must begin with a hello that names this cluster, this node and a known
// peer, within a few seconds; then each message must come from that peer, go to this
// node, belong to the connection's class, and be of a kind allowed to the peer. Any
// other input is counted and ends the connection. A refusal is counted by reason, and
// told to the other end in words.
//
// DESIGN.md, beside the code, says why.
package transport
