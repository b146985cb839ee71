// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package replica is the part of a host that decides: what becomes a log entry, where a
// proposal goes, what became of a proposal, which reads wait for which index, and what may
// be dropped from the log.
//
// A [Core] is one Raft state machine, of this module's library ([Weft]) or of
// go.etcd.io/raft ([Upstream]). A [Replica] is a core and all decisions around it. It has
// no goroutine, no clock and no I/O but reads of the log: inputs in, [Output] out.
// Simulators run a replica as it is; rawnode.Host runs one with goroutines, queues, a disk
// and a network.
//
// Package rawnode re-exports what users of a host need, and says there what it means to
// them; the design is in rawnode/DESIGN.md.
package replica
