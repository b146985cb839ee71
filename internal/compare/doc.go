// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package compare finds replicas that differ: a state machine with a clock, randomness or the order
// of a map in it, or a machine whose memory lost a bit, leaves replicas that answer differently, and
// Raft, which replicates commands alone, cannot notice.
//
// The comparison is made by commands in the log:
//
//  1. The leader proposes a [Check] from time to time, if there were commands since the last one. The
//     check names the voters. The entry with the check is the last of its batch (see internal/replica),
//     so each replica stands between two calls of Apply with the state of one and the same index.
//  2. There each replica notes two numbers. Number one sums up the commands since the last check and
//     their results: a few nanoseconds for each command, in [Window]. Number two sums up the state,
//     which is set aside, forked, and read in the background; at most one state is read at a time,
//     and a leader waits 100 times as long as the reading took before the next check. A state that
//     offers no number two is compared by results alone.
//  3. Each replica proposes its [Digest]. A replica that was interrupted, restored or restarted since
//     the last check does not know all results, and says so.
//  4. Each replica applies the digests in the order of the log, so that all come to the same verdict
//     without further messages ([Comparison]): a replica that differs from what more than half of the
//     voters have is wrong; if no more than half agree, somebody is wrong, and nobody knows who.
//
// Results are summed up from check to check. Rejected: one sum over all results since the beginning.
// Checkpoints and snapshots would have to carry that sum, in a format of their own in each state
// machine, and replicas that have differed once would differ in it always, mended or not. The sum of
// a window also says between which two indexes of the log the difference began. What a window misses,
// because a replica restarted in it, the state's own number finds at the next check.
//
// Rejected: direct messages with digests, to the leader. A verdict in the log reaches learners and
// nodes that were away, survives the leader, and needs no message format.
//
// A difference of results is reported. A difference of states also puts the wrong replica out of
// service, because its reads would be wrong; but only if the majority agrees, because
// otherwise a single mistake in a program would stop all replicas.
package compare
