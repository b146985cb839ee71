// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire is the messages between nodes, with their addresses, and the frames that
// carry messages on a connection.
//
// # Messages
//
// A [Message] is for a group, from a node, to a node, and has one [Body]: a Raft
// message, a proposal on its way to the leader and the verdict on it, a wish for a
// transfer of leadership, a piece of a snapshot and its receipt, the list of a group's
// first members, a question for the end of a log, a node's health, and what gateways and their
// homes tell each other. The kind of the body decides the
// [Class], and the class decides on the connection, so that small messages never wait
// behind large ones.
//
// # Frames
//
// A frame is a header of [HeaderLen] bytes and a payload:
//
//	0   2  magic "Wf"
//	2   1  version of the format
//	3   1  type: messages, hello, answer to a hello
//	4   4  length of the payload, little endian
//	8   4  CRC-32C of the payload, little endian
//	12     payload
//
// A connection begins with a hello, which names the dialer, the class of the messages
// to come, and the kinds understood by the dialer; the answer accepts the hello or
// gives a reason in words. Both also announce [Capabilities]. Frames of messages
// follow, in one direction only: the other direction has connections of its own.
//
// Nothing in a frame is trusted. Decoding refuses every length beyond the frame and
// every value out of range, and never panics. Large payloads are copied neither into a
// frame nor, by [DecodeShared], out of it.
package wire
