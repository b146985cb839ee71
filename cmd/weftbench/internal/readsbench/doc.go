// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package readsbench compares ways to serve linearizable reads, in virtual time.
//
// Every node is a real core ([github.com/weftraft/weft/rafttest/vnet]) with links that
// take time, and clients near it. A client asks the node near it and nobody else; the
// node answers from its own state when the policy lets it:
//
//	client -> node near it -> policy: which index must the node have applied?
//	                            `-> answered when it has
//
// What a policy asks of the core is the core's. What the core does not know, such as a
// quorum read, is a small driver beside the core, with messages of its own on the same
// links. Each answer is checked: a read must see all that a client was told before the
// read began.
//
//	network.go   sites, and the round trips between them
//	group.go     a group of nodes, and what it tells
//	replica.go   what the host of a node knows of the log, and reads that wait
//	clients.go   clients, and the check of what they are told
//	policy.go    the policies, as rows
//	quorum.go    quorum reads and Quorum Leases
//	published.go Bodega as published
//	cells.go     throughput and latency, cell by cell
//	holds.go     how long a write delays reads of its key
//	tuning.go    the tuner, while the load moves
//	failing.go   a responder fails: what writes wait, and what reads elsewhere notice
//	scale.go     reads a second by the number of replicas
package readsbench
