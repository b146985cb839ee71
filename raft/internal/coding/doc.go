// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package coding is coded replication: an extension of Raft, behind the seam that
// raft/extension.go describes. docs/coded-protocol.md has the words, the steps of an
// entry from proposal to payload, the messages and the rules.
//
// A leader wraps a large payload in an envelope. Its header says, once and for
// all, how many units of the payload each member is assigned; the body is the
// receiver's own. A node that stores the entry stores the units assigned to it,
// whichever leader sent them: what a node holds is a function of its log, and an
// acknowledgement stays an index. More units for an entry travel as riders in a
// later entry, a carrier.
//
// # Where things are
//
// The parts of coding are values, and each file needs only files above it. From the
// bottom, what every node has:
//
//	node.go       what every part sees of its node, and its messages
//	spans.go      where the log is coded
//	riders.go     which entries carry units of which others
//	ledger.go     what the headers in the log say
//	cover.go      the commit rule: what any half can decode
//	accounts.go   what members say of themselves
//	payloads.go   the payloads that this node can produce, for its host and for others
//	units.go      units come, and are kept
//	want.go       what a node lacks, and asks for
//	push.go       followers push units to each other
//	note.go       entries come into the log
//	report.go     what this node says of itself
//	recovery.go   what the winner of an election does before it leads
//	parts.go      all these together
//
// What a leader has besides:
//
//	slots.go      the followers by slot
//	unplaced.go   entries that have no place in the log yet
//	check.go      what is committed must be safe under other members
//	forms.go      each receiver's form of an entry
//	raise.go      more units for entries that are late: fallback and hedge
//	seal.go       the leader's own form of an entry
//	voters.go     a vote only for members that read envelopes
//	members.go    changes of members wait until what is committed is safe
//	stuck.go      snapshots for members that nobody can complete
//	leading.go    all these together
//
// And what Raft calls:
//
//	coder.go      a node that codes; roles and ticks
//	brakes.go     forms, brakes and reads
//	news.go       news of the log and of the members
//	pass.go       units of voters' pushes, passed on to learners and in zones
//	messages.go   what messages tell, and carry, for coding
//	settled.go    members in force, told to candidates
//	status.go     what hosts see and set
//	invariants.go what always holds
package coding
