// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package rawnode is everything around a Raft core that users of a Raft library
// write by hand: the loop that feeds it, the log, the network, proposals with
// results, linearizable reads, snapshots, restarts.
//
// # From the inside out
//
// A core is one Raft state machine, of this module's library ([Weft]) or of
// go.etcd.io/raft ([Upstream]). Both satisfy [RawNode].
//
// A replica is a core and all decisions around it: what becomes a log entry,
// where a proposal goes, what became of it, which reads wait for which index,
// what may be dropped from the log. It has no goroutine, no clock and no I/O, so that
// simulators run it as it is; it is internal to this module.
//
// A [Host] runs a replica, one turn at a time, and has stages that write, apply,
// send and restore, each behind a queue. It is what programs use:
//
//	host, err := rawnode.New(rawnode.Config{...})
//	result, err := host.Propose(ctx, command)   // at any node
//	err = host.Read(ctx)                        // then read the state machine
//
// The log is a storage.Group or anything else that is a [Log]; the state is the
// user's [StateMachine]; the network is a [Transport], such as that of package
// transport.
//
// # What a caller can rely on
//
// A command is applied at most once, at all replicas in the same order, and
// Propose returns what the state machine at this node returned for it. If it
// returns an error, that is a [CallError], and its verdict is [ErrRefused] (no
// effect, now or later) or [ErrUnknown]. No call outlives its deadline.
//
// DESIGN.md, beside the code, says why.
package rawnode
