// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire is what nodes say to each other: addressed messages, and the
// frames that carry them on a connection.
//
// # Messages
//
// A [Message] is for a group, from a node, to a node, and has one [Body]: a
// Raft message, a proposal on its way to the leader and the verdict on it, a
// wish for a transfer of leadership, a piece of a snapshot and the word that it
// arrived, the list of a group's first members, a question where a log ends. The kind of the body decides its [Class], and the class decides which
// connection it travels on, so that nothing small waits behind something large.
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
// A connection begins with a hello, which says who dials, which class of
// messages will come, and which kinds the dialer understands; the answer
// accepts it or says in words why not. Both also announce [Capabilities]. After that frames of messages follow, in
// one direction only: the other direction has connections of its own.
//
// Nothing in a frame is trusted. Decoding refuses every length that goes beyond
// the frame and every value out of its range, and never panics. Large payloads
// are copied neither into a frame nor, by [DecodeShared], out of it.
package wire
