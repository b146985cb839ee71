// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import "fmt"

// Bug is a mistake that is made on purpose, in a host or around a library.
type Bug byte

// The mistakes. All but the first are a library's: the fact of the same number
// forbids each to the library.
const (
	NoBug Bug = iota
	// ReusedReadIDs: the host numbers read requests from 1 again after a
	// restart (fact 14).
	ReusedReadIDs
	// NeedsContext: a part of each entry travels in the message's Context
	// (fact 1).
	NeedsContext
	// NeedsBeatContext: heartbeats without Context do not count (fact 1).
	NeedsBeatContext
	// OwnFirstByte: entries begin with a byte of the library's (fact 2).
	OwnFirstByte
	// CodesVetoed: all payloads are coded (fact 3).
	CodesVetoed
	// HandsOutCoded: entries of other members are handed out as stored (fact
	// 4).
	HandsOutCoded
	// RewritesStored: an append begins with an entry that is stored (fact 5).
	RewritesStored
	// LocalsFirst: messages to the storage threads come first (fact 6).
	LocalsFirst
	// CountsAnswers: each append wants its own acknowledgement (fact 7).
	CountsAnswers
	// SendsNewTypes: messages of a type that raftpb does not name (fact 8).
	SendsNewTypes
	// MatchAhead: Progress.Match is more than a member has (fact 9).
	MatchAhead
	// HoldsBack: committed entries are handed out late (fact 12).
	HoldsBack
	// MarshalsAgain: changes of the members are marshalled anew (fact 13).
	MarshalsAgain
	// TrustsOrder: what arrives twice or late is taken for new (fact 14).
	TrustsOrder
	bugs
)

var bugNames = [bugs]string{"NoBug", "ReusedReadIDs", "NeedsContext", "NeedsBeatContext", "OwnFirstByte", "CodesVetoed",
	"HandsOutCoded", "RewritesStored", "LocalsFirst", "CountsAnswers", "SendsNewTypes", "MatchAhead", "HoldsBack",
	"MarshalsAgain", "TrustsOrder"}

// String returns the constant's name.
func (b Bug) String() string {
	if b < bugs {
		return bugNames[b]
	}
	return fmt.Sprintf("Bug(%d)", byte(b))
}

// wrap puts a mistake around a core.
func (b Bug) wrap(c Core, m *machine) Core {
	switch b {
	case NeedsContext:
		return &contextual{Core: c}
	case NeedsBeatContext:
		return beatContextual{c}
	case OwnFirstByte:
		return &recoder{Core: c, to: mark, from: unmark}
	case CodesVetoed:
		return &recoder{Core: c, to: flipBody, from: flipBody}
	case HandsOutCoded:
		own := map[string]bool{}
		return &recoder{Core: c,
			to: func(d []byte) []byte { own[string(d)] = true; return flipBody(d) },
			from: func(d []byte) []byte {
				if flipped := flipBody(d); own[string(flipped)] {
					return flipped
				}
				return d
			}}
	case RewritesStored:
		return rewriter{c, m.disk}
	case LocalsFirst:
		return localsFirst{c}
	case CountsAnswers:
		return &answerCounter{Core: c, sent: map[uint64][]uint64{}}
	case SendsNewTypes:
		return newTypes{c, m}
	case MatchAhead:
		return matchAhead{c}
	case HoldsBack:
		return &holder{Core: c, m: m}
	case MarshalsAgain:
		return remarshaller{c}
	case TrustsOrder:
		return orderTruster{c, m.disk}
	}
	return c
}
