// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package transport carries messages between nodes over TCP.
//
// # Connections
//
// Between two nodes there are up to three connections in each direction, one
// for each wire.Class, so that a heartbeat never waits behind an append, nor an
// append behind a snapshot. Each carries messages one way, from the node that
// dialed; it is dialed when there is something to send, and again, with growing
// pauses, after it broke. One connection serves all groups of a node.
//
// # Bounds
//
// Each connection has a queue with a bound in bytes. What finds no room, or
// waits when the connection breaks, is dropped and reported to its group, which
// is all that a Raft core needs. A peer that stops reading costs its queue and
// one frame.
//
// # Trust
//
// A connection must begin with a hello that names this cluster, this node and a
// known peer, within a few seconds; then each message must come from that peer,
// go to this node and belong to the connection's class. Whatever else is read
// is counted and ends the connection. Who a peer is rests on its word: run nodes
// on a network that you trust, or give Listener and Dial that authenticate, such
// as those of crypto/tls.
package transport
