// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package replica is the part of a host that decides: the contents of log entries, the
// receiver and the fate of a proposal, the index a read waits for, and the entries to drop
// from the log.
//
// A [Core] is one Raft state machine, of this module's library ([Weft]) or of
// go.etcd.io/raft ([Upstream]). A [Replica] is a core and all decisions around it. It has
// no goroutine, no clock and no I/O but reads of the log: inputs in, [Output] out.
// Simulators run a replica as it is; rawnode.Host runs one with goroutines, queues, a disk
// and a network.
//
// A dozen files have the methods of Replica, the ways through it: requests, reads, queries, leasing and snapshots take calls;
// receive, polling and replica take messages and time; leading, sending, appending and applying say what is to be done. Each
// other file is about a part: a value with the facts, its own state, and a few functions of what is around it. No part
// names Replica.
//
// A [Gateway] has the users' side of a replica, and no core: it takes commands and queries for a group of which it has no
// replica.
//
// Package rawnode re-exports the names that users of a host need, with comments for users;
// the design is in rawnode/DESIGN.md.
package replica
