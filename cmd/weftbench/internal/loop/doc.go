// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package loop is a replicated key-value server as one writes it by hand on
// go.etcd.io/raft, following that library's README: the yardstick that Host is
// measured with.
//
// It is meant to be neither slow nor clever. It syncs what must be synced before
// it is acknowledged, lets a leader send while it writes, batches what is ready
// together, and writes its state to Pebble without a second log, as kvdemo does.
// What it does not do, and Host does:
//
//   - say of a write that got no answer whether it can still happen, or apply it
//     once if the client repeats it;
//   - change the members, or stream a snapshot: one that is needed is built and
//     sent as a single message, in memory;
//   - bound its queues by bytes, or refuse early: it waits, and drops messages;
//   - keep heartbeats apart from large messages, or use TLS;
//   - share a log between several groups;
//   - start without reading its whole log, which it also keeps in memory;
//   - survive hostile or damaged messages from peers.
package loop
