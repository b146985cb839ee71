// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package fetch is how a follower gets a snapshot from the nearest complete member, and goes on
// where it broke off. It is pure: time comes as an argument, and the surroundings send messages,
// read states and restore them.
//
// # The messages
//
//	leader L             follower F                members S, R, L
//	   | Offer(term, index, {S R})                      |
//	   |---------------------->|  Fetch(ask)            |
//	   |                       |----------------------->|
//	   |                       |  ChunkStatus(ok)       |
//	   |                       |<-----------------------|  S is first: the nearest
//	   |                       |  Fetch(take 0 until w) |
//	   |                       |----------------------->|
//	   |                       |  Chunk 0 with a header, Chunk 1, ...
//	   |      Fetch(lives)     |<-----------------------|
//	   |<----------------------|  Fetch(take n until n+w)
//	   |                       |----------------------->|
//	   |                       |          ...           |
//	   |  ChunkStatus(ok)      |  ChunkStatus(ok)       |
//	   |<----------------------|----------------------->|
//
// The leader's core decides that F needs a snapshot, of an index or later. F decides on the
// source: it asks all, and takes the first that agrees, which is near and has nothing to do. The
// leader is asked as well, but has more to do than the others: a member that answers within twice
// the leader's time, and before the next tick, is preferred. A leader whose follower does not know these messages sends the
// snapshot without being asked, as before.
//
// A node with many groups takes and sends some snapshots at a time. So F asks nobody until its surroundings have a
// place for the snapshot, and tells L meanwhile that it lives; L has nothing open for it. A source may have F wait for
// chunks, too, and until its state is open, and says ChunkStatus(ok) now and then, which F takes for a sign of life. F asks for the next chunks before
// the last ones have been read, and always when they have, so a source need not keep room for chunks that were not asked for.
//
// # What vouches for the body
//
// Every snapshot is of a state that its source has applied, and so of a committed prefix of the
// log. The leader of a term has everything that was committed in that term and before, so its
// follower may restore a state which a source has applied in that term or before. A source
// therefore refuses if its own term, looked at after it opened the state, is later than the
// offer's. Without this rule a leader that has been replaced, and does not know, counts F's state
// as a copy of its own log, which may differ. The follower refuses a header that is older than the
// offer, or that belongs to another group; package replica checks all the rest, as for a
// snapshot of the leader's. The state of an offer's term remains good for a leader of a later
// term: an election in the middle breaks nothing off, unless the new leader offers a later index, as its log may begin
// behind the state that is on its way.
//
// # Memory, and breaks
//
// The follower asks for at most 16 chunks (window) beyond those that its state machine has taken, and
// a source keeps the chunks that were not taken yet, so both ends are bounded. If chunks are lost
// because a connection broke, F asks for the first missing chunk again, and gets it as long as the
// source lives and has kept the view of its state open: for half of the patience with a silent
// end. F gives a silent source up after a quarter, and begins anew with another source, because the
// bodies of two members may differ.
package fetch
