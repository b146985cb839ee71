// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

// bug is a mistake that is made on purpose, in a host or around a library.
type bug byte

// The mistakes. All but the first are a library's: the fact of the same number
// forbids each to the library.
const (
	noBug bug = iota
	// reusedReadIDs: the host numbers read requests from 1 again after a
	// restart (fact 14).
	reusedReadIDs
	// needsContext: a part of each entry travels in the message's Context
	// (fact 1).
	needsContext
	// needsBeatContext: heartbeats without Context do not count (fact 1).
	needsBeatContext
	// ownFirstByte: entries begin with a byte of the library's (fact 2).
	ownFirstByte
	// codesVetoed: all payloads are coded (fact 3).
	codesVetoed
	// handsOutCoded: entries of other members are handed out as stored (fact
	// 4).
	handsOutCoded
	// rewritesStored: an append begins with an entry that is stored (fact 5).
	rewritesStored
	// sendsLocalsFirst: messages to the storage threads come first (fact 6).
	sendsLocalsFirst
	// countsAnswers: each append wants its own acknowledgement (fact 7).
	countsAnswers
	// sendsNewTypes: messages of a type that raftpb does not name (fact 8).
	sendsNewTypes
	// saysMatchAhead: Progress.Match is more than a member has (fact 9).
	saysMatchAhead
	// holdsBack: committed entries are handed out late (fact 12).
	holdsBack
	// marshalsAgain: changes of the members are marshalled anew (fact 13).
	marshalsAgain
	// trustsOrder: what arrives twice or late is taken for new (fact 14).
	trustsOrder
	bugs
)

var bugNames = [bugs]string{"NoBug", "ReusedReadIDs", "NeedsContext", "NeedsBeatContext", "OwnFirstByte", "CodesVetoed",
	"HandsOutCoded", "RewritesStored", "LocalsFirst", "CountsAnswers", "SendsNewTypes", "MatchAhead", "HoldsBack",
	"MarshalsAgain", "TrustsOrder"}

// String returns the constant's name.
func (b bug) String() string { return bugNames[b] }
