// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package hosts runs Raft libraries in two hosts that treat them as large
// programs do, in virtual time, from seeds, and looks whether they still agree.
//
// Programs that stand on a Raft library rely on more than its documentation
// says, and do things to its messages and entries that its authors may not
// expect: they cut fields off, rebuild messages, look into payloads, throw
// answers away. A library that is to take another's place must bear all of it.
// README.md lists such facts. The two hosts here act by them:
//
//   - [etcdLike] writes in its Ready loop, sends appends through a stream that
//     keeps only entries and commit index of a message in sequence, applies
//     beside the loop, and reads by read index.
//   - [cockroachLike] writes asynchronously, looks at the first bytes of every
//     entry it appends or loads, keeps large payloads outside the log, merges
//     heartbeats, counts messages in arrays by type, and truncates, throttles
//     and transfers by Progress.Match.
//
// The same suite runs on go.etcd.io/raft, on this module's core, and on this
// core with coded entries: what upstream's library does not pass is no fact.
//
// # A run
//
// [run] founds a group of three to five, lets clients put and get through any
// member, operators replace members, and faults happen: torn writes and
// crashes, pauses of seconds, links cut or lossy, streams broken. Then the
// faults end; the group must elect a leader, answer at each member, and come to
// one state. All that clients saw must be linearizable, and each payload that is
// applied is compared with what was proposed, byte for byte.
//
// A [bug] breaks one rule on purpose, in the host or in a wrapper around the
// library: each is found, so a rule that is broken shows.
package hosts
