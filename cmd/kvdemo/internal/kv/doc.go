// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package kv is the replicated state of kvdemo: for each group a map from keys
// to values, all in one Pebble database. DESIGN.md tells more.
//
// [Open] opens the database, [DB.Group] the state of a group: a [Store], which
// is a rawnode.StateMachine. Commands are made by [Command.Encode]; what comes of
// one is a [Result], the same at every replica.
//
// # The log is its write-ahead log
//
// Pebble runs without a WAL of its own. Each batch of commands is written
// together with the log index it brings the state to, so after a crash each
// group comes back as of the last flush and says which index that was; its Raft
// log replays the rest. [Store.Durable] follows the flushes while the store runs:
// up to there the log may be compacted.
//
// # Generations
//
// A snapshot from another node replaces a group's state at once. It is written
// beside that state, as a new generation of keys, and becomes the state by one
// write, so a crash leaves the old state or the new one, never a mixture.
//
// # Checksums
//
// Each value carries a CRC-32C over its key and itself, from where the command
// entered to every read, in snapshots too: what a client gets is what was put,
// or an error.
package kv
