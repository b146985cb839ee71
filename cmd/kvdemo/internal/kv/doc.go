// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package kv is the replicated state machine of kvdemo: a map from keys to
// values in one Pebble database.
//
// # The log is its write-ahead log
//
// Pebble runs without a WAL of its own. Each batch of commands is written
// together with the log index it brings the state to, so after a crash Pebble
// comes back as of its last flush and says which index that was
// ([Store.Applied]); the Raft log replays the rest. [Store.Durable] follows the
// flushes while the store runs: up to there the log may be compacted. A WAL
// here would write each value once more and make nothing safer.
//
// # Generations
//
// A snapshot from another node replaces everything at once. It is restored into
// a directory beside the running one, flushed, and takes its place by one
// rename, so a crash leaves the old state or the new one, never a mixture.
// Readers and outgoing snapshots hold on to the generation they began with.
//
// # Checksums
//
// Each value is stored with a CRC-32C over its key and itself, which travels in
// snapshots too and is compared at every read: what a client gets is what was
// put, or an error.
package kv
