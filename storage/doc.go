// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package storage is a durable log engine: one append-only log on disk, shared
// by any number of Raft groups, each of which it serves as a raft.Storage.
//
// # Model
//
// An [Engine] owns a directory. All writes of all groups go through one queue
// to one writer, which lays them as frames into the current segment file and
// syncs once for everything it found waiting (group commit). A [Group] keeps
// its hard state, its snapshot and an index of its log in memory, with recent
// entries themselves; older entries are read back from the segments.
//
// A write takes effect in memory when it is queued: the Storage methods show it
// at once, as [raft.MemoryStorage] would. It is durable when its callback runs.
// That is what a Raft core with asynchronous storage writes needs: it reads
// from Storage only what it was told is stable, and tells peers nothing before.
//
// # What a crash leaves
//
// One [Write] is one frame, so it survives whole or not at all. What survives
// is a prefix of the queue: everything whose callback reported success, and
// perhaps some writes behind it. A tail torn by the crash is cut and reported
// in [Recovery]. Damage before the tail is an error that names the place, the
// group and the index ([DamageError]); the engine never drops it silently.
//
// # Failure
//
// After a failed write or sync nothing is known about what the disk holds, so
// nothing is retried: the engine refuses all further writes with [ErrFailed],
// and only a new Open finds out how far the log goes.
//
// A full disk is not a failure. Writes wait, nothing is acknowledged, and
// [Group.Stalled] says why, early enough that a host can stop taking on work;
// when there is room again, writes go on by themselves.
//
// Applied state and the bodies of snapshots are the host's; the engine keeps a
// snapshot's metadata and, if the host wants, a small body.
package storage
