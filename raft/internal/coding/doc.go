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
//	coder.go      what every node that codes knows, and the news of roles and ticks
//	messages.go   what Raft's own messages tell, and carry, for coding
//	ledger.go     what the headers in the log say
//	note.go       entries come into the log, leave it, are applied
//	riders.go     which entries carry units of which others
//
//	leading.go    what a leader knows besides
//	seal.go       a leader makes envelopes
//	forms.go      and makes them over for each receiver
//	cover.go      the commit rule: what any half can decode
//	raise.go      more units for entries that are late: fallback and hedge
//
//	exchange.go   followers complete each other's payloads
//	want.go       what a node lacks, and asks for
//	unwrap.go     payloads are put in on the way to the host
//
//	recovery.go   what the winner of an election does before it leads
//	members.go    changes of members wait until what is committed is safe
//	headers.go    what others know of entries that are compacted
//	report.go     what members say of themselves
//	stuck.go      snapshots for members that nobody can complete
//	voters.go     a vote only for members that read envelopes
//	settled.go    members in force, told to candidates
//	foreign.go    envelopes that a node is not set up to read
//	spans.go      where the log is coded
package coding
