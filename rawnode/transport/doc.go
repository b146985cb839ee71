// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package transport carries messages between nodes over TCP, with or without
// TLS.
//
// # Connections
//
// Between two nodes there are up to four connections in each direction, one for
// each wire.Class, so that a heartbeat never waits behind an append, nor an
// append behind a snapshot. Each carries messages one way, from the node that
// dialed; it is dialed when there is something to send, and again, with growing
// pauses, after it broke. One connection serves all groups of a node.
//
// # Bounds
//
// Each connection has a queue with a bound in bytes. What finds no room, or
// waits when the connection breaks, is dropped and reported to its group, which
// is all that a Raft core needs. What a peer sends waits in the network until
// its receive budget has room. A peer that stops reading, and one that sends
// more than is looked at, cost their budgets and nothing else.
//
// # Trust
//
// With Config.TLS, a connection is between two nodes that have shown
// certificates with their ids; see package certs. Without, who a peer is rests
// on its word: that is for networks in which everybody is trusted.
//
// Either way a connection must begin with a hello that names this cluster, this
// node and a known peer, within a few seconds; then each message must come from
// that peer, go to this node, belong to the connection's class, and be of a kind
// that the peer may send. Whatever else is read is counted and ends the
// connection. A refusal is counted by reason, and told to the other end in
// words.
//
// DESIGN.md, beside the code, says why.
package transport
