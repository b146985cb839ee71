// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package storage is a durable log engine: one append-only log on disk, shared by any
// number of Raft groups, with a raft.Storage for each.
//
// # Model
//
// An [Engine] owns a directory. All writes of all groups go through one queue to one
// writer, which lays them as frames into the current segment file and syncs once for
// all waiting writes (group commit). A [Group] keeps its hard state, its snapshot, an
// index of its log and recent entries in memory; older entries are read back from the
// segments.
//
// A write takes effect in memory when queued: the Storage methods show the write at
// once, as [raft.MemoryStorage] would. The write is durable when its callback runs. A
// Raft core with asynchronous storage writes needs no more, because the core reads from
// Storage only entries reported stable, and tells peers nothing before.
//
// # After a crash
//
// One [Write] is one frame, and survives whole or not at all. A prefix of the queue
// survives: all writes whose callbacks reported success, and perhaps some later ones. A
// tail torn by the crash is cut and reported in [Recovery]. Damage before the tail is
// an error with the place, the group and the index ([DamageError]); the engine never
// drops damaged data silently.
//
// # Failure
//
// After a failed write or sync the disk's contents are unknown, so nothing is retried:
// the engine refuses all further writes with [ErrFailed], and only a new Open finds out
// how far the log goes.
//
// A full disk is not a failure. Writes wait, nothing is acknowledged, and
// [Group.Stalled] gives the reason, early enough for a host to stop taking on work;
// with room again, writes go on by themselves.
//
// Applied state and the bodies of snapshots are the host's; the engine keeps a
// snapshot's metadata and, if the host wants, a small body.
package storage
