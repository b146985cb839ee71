// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package adaptive has the policy that measures: for each entry a leader
// appends, it picks the units of every follower such that the entry commits
// early and later entries are not held up.
//
// # What it sees
//
// Nothing but times of the leader's own clock ([ecraft.Observer]): when a message
// with entries or a heartbeat left for a follower and how many bytes it had,
// when the answer came, and for how long the follower said that it had held the
// message before it answered.
//
// # What it makes of that
//
//	link.go     a follower's answer takes base + held + cost * queued bytes
//	nic.go      bytes that wait at the leader's interface, whatever their link
//	cost.go     what a byte costs there
//	slow.go     which connection is slower than the interface
//	silence.go  how long a follower is silent at times, and when one is lost
//	jitter.go   how much later than the k-th least base the k-th answer comes
//	crowd.go    and how late the latest of a crowd of messages is
//
// # How it chooses
//
//	assign.go   every level is a candidate: its cost is the time to the last
//	            answer needed, the delay of later entries through the interface,
//	            and the delay of those behind it in the log
//	uneven.go   one more candidate, where followers are unlike: shares that
//	            differ from follower to follower
//	relief.go   a backlog that the interface cannot carry is worked off
//	pace.go     what a follower missed leaves at a pace of its own
//
// The candidate with the least cost wins. [Policy] says how failures fit in.
// README.md has each constant: what it is for, and what half and twice of it do,
// measured.
package adaptive
