// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package adaptive has the policy that measures: for each entry that a leader appends, the policy
// picks the units of every follower such that the entry commits early and later entries are not
// held up.
//
// # Inputs
//
// The inputs are times of the leader's own clock only ([ecraft.Observer]): the time at which a
// message with entries or a heartbeat left for a follower, with its bytes, the time of the answer,
// and the time for which the follower, by its own report, held the message before the answer. Members
// also report how busy their processors are ([ecraft.ProcessorObserver]).
//
// # Estimates
//
//	link.go     a follower's answer takes base + held + cost * queued bytes
//	nic.go      bytes that wait at the leader's interface, whatever their link
//	cost.go     the cost of a byte at the interface
//	slow.go     connections that are slower than the interface
//	silence.go  the usual silences of a follower, and when a follower is lost
//	jitter.go   each follower's own delay, and that of the k-th answer beyond the k-th shortest trip
//	crowd.go    the delay of the latest message of a crowd
//
// # Choice
//
//	assign.go   every level is a candidate: its cost is the time to the last
//	            answer needed, the delay of later entries through the interface,
//	            and the delay of the entries behind in the log
//	uneven.go   a further candidate for unlike followers: shares that differ
//	            from follower to follower
//	processors.go  where processors are busy, full copies and the choice by links
//	            have turns, and the times to commit decide
//	load.go     what tells one load from another, and the form that processors suggest
//	trials.go   groups of one process try together,
//	lanes.go    but for those whose links are others
//	relief.go   a backlog that the interface cannot carry is worked off
//	pace.go     entries that a follower missed leave at a pace of their own
//
// The candidate with the least cost wins. [Policy] describes the treatment of failures. README.md
// has each constant: its purpose, and the measured effect of half and twice the constant.
package adaptive
