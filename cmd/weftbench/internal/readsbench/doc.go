// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package readsbench compares ways to serve linearizable reads, in virtual time.
//
// Every node is a real core ([github.com/weftraft/weft/rafttest/vnet]) with links that take time,
// and clients near the node. A client asks only the node near the client; the node answers from its
// own state if the policy allows:
//
//	client -> node near it -> policy: which index must the node have applied?
//	                            `-> answered when it has
//
// A policy uses the core as far as the core has the policy's operations. A policy beyond the core,
// for example a quorum read, is a small driver beside the core, with messages of its own on the
// same links. Each answer is checked: a read must see every version that was in an answer before
// the read began.
//
//	network.go   sites, and the round trips between them
//	group.go     a group of nodes, and its callbacks
//	replica.go   the host of a node: its view of the log, and reads that wait
//	clients.go   clients, and the check of their answers
//	policy.go    the policies, as rows
//	quorum.go    quorum reads and Quorum Leases
//	published.go Bodega as published
//	cells.go     throughput and latency, cell by cell
//	holds.go     the delay of reads by a write of their key
//	tuning.go    the tuner, while the load moves
//	failing.go   a responder fails: writes that wait, and the effect on reads elsewhere
//	figures.go   loads of figures of papers, and a roster that changes
//	scale.go     reads a second by the number of replicas
package readsbench
