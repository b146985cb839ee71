// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package exhaust explores small groups of real cores exhaustively: every raft.RawNode of
// three to five nodes, with coded entries, leases and changes of the members, in every
// order of events up to a bound. Random schedules (package rafttest) go far and see a
// part; an exploration goes a short way, and leaves nothing out on it.
//
// # Paths
//
// A scenario begins close to where parts of the protocol meet, for example with a coded
// entry in flight as a voter is added. Its beginning is itself a schedule of real cores, so
// each path could happen. From there messages travel in rounds: whatever was sent in one
// round arrives in the next. Hosts write, apply and report at once. When no message is under way,
// all that may happen next is tried: the next wish of a client or an operator, a tick, the
// restart of a node, the end of a split, the arrival of a late message, a slow host that
// applies at last.
//
// Everything else is a deviation: a message is held back, and arrives late or never, or it
// arrives twice; a node's reports are lost on the way; a node crashes, or power fails while it
// writes entries; a disk hangs, and what it was to write is lost with the process; the group is
// split; a host that is handed a change of the members does not apply it; a wish, a tick or a late
// message comes while messages are under way. The bound of an exploration is the number of
// deviations in a path: all paths with one deviation are explored, then all with two, and
// so on. Few deviations are enough for most bugs, and between deviations a path is as long
// as it needs to be. A scenario with Orders delivers the messages of a round in every
// order, at no cost; without, messages for one receiver arrive in order of sender and time.
// scenarios bound each kind of deviation, and ticks, as well (scenario.Most). Nothing goes
// wrong before a message that the scenario calls dull, such as a heartbeat.
//
// # Folding
//
// Worlds are folded by a hash of 64 bits, so that each is expanded once. With ten million
// worlds the odds that any two share a hash by accident are one in 300,000.
//
// RawNode cannot be copied, and cannot be set to a state. But a node is a function of its
// own inputs: messages, ticks, calls of its host, readings of its clock. So the
// exploration keeps, for each node, the states that it was in, and for each state
// what each input did. A world is a tuple of such states, with the messages under way. What an
// input does is computed once, on a core that is in the state or is brought there again by
// its inputs; from then on all worlds with this state of the node share the answer. A few
// thousand states of nodes make a hundred thousand worlds. To replay whole worlds was the
// alternative: it costs the length of the path for each world, a hundred times as much. So
// was a hash of each node's sequence of inputs in place of its state: exact without
// further argument, but two orders of two acknowledgements would then be two states for
// good.
//
// States of a node are equal if their prints are: hashes of everything reachable from the
// RawNode, unexported fields included, of the disk, and of the host's position. Left out
// is what no input changes or what other fields determine (print.go lists it). This is exact as
// long as that list is right. Tests keep it so: one gives new cores the inputs of states and compares
// prints, so a core with a choice of its own, or with memory that the print misreads, is
// seen; another takes states that were reached in two ways, and compares what further
// inputs do to a core of either way.
//
// # Reductions
//
// What happens at different nodes in one round commutes, and the queue of a round is kept in
// order of receivers, so both orders lead to one world. A crash is tried right behind
// the last input of the node, because nothing that the node does not see can tell a later
// crash apart. A host can be slow only at the moment at which it is handed a
// change. None of these leaves out a path with another outcome.
//
// # Invariants
//
// In every world: at most one leader in a term; logs match; a leader has all that was
// committed before its term; nodes commit and apply the same entries; a Ready has
// consecutive entries behind the log, none of them at or below the commit index; a disk has the units
// that headers assign to its node, counted from what is stored; every node that may yet
// lead can restore each committed coded entry from any majorities that it may lead with; a
// node that would answer a read by its lease now would not miss a write whose client may
// have been told, nor does any answer to a read miss one of before the question; no core panics, and each starts from its disk. Where a path ends, all
// nodes come up and connect, hosts apply, and within 120 ticks a leader must have committed
// and applied one more entry.
package exhaust
