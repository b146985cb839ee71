// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package loop is a replicated key-value server written by hand on go.etcd.io/raft,
// following that library's README: the yardstick for Host.
//
// The server is meant to be neither slow nor clever. The loop syncs an entry before
// its acknowledgement, lets a leader send while the leader writes, batches entries
// that are ready together, and writes the state to Pebble without a second log, as
// kvdemo does. Host has, and the loop has not:
//
//   - a definite answer for a write without a result, and sessions that apply a
//     repeated write once;
//   - changes of the members, and streamed snapshots: the loop builds a snapshot in
//     memory and sends it as a single message;
//   - queues bounded in bytes, and early refusals: the loop waits, and drops messages;
//   - heartbeats apart from large messages, and TLS;
//   - one log for several groups;
//   - a start that reads a part of the log: the loop reads its whole log, and keeps
//     the log in memory;
//   - protection against hostile or damaged messages from peers.
package loop
