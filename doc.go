// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package weft is the front door of this module: a replicated service in a few lines.
//
// A [Node] is one process of a cluster. [Open] takes the cluster's number, the node's id, a
// directory and addresses, once, and opens everything that groups share: the log engine, the
// transport, the budget for waiting commands, and the balancer of leaders. A [Group] is one
// replicated state machine at a node: [Group.Propose] replicates a command and returns the
// result of the state machine at this node. After [Group.Read] returns, a read of the state is
// linearizable. [Replicate] makes a group of a state with three methods, and [Replicated.View]
// reads it:
//
//	node, err := weft.Open(weft.Options{Cluster: 7, ID: 1, Dir: "data", Peers: peers})
//	group, err := weft.Replicate(node, 1, newState)
//	result, err := group.Propose(ctx, command)
//	err = group.View(ctx, func(s state) { ... })
//
// [Node.Group] takes a state machine of any kind, such as one with a database.
//
// # Members
//
// The addresses of the members are replicated: [Group.AddVoter] takes an id and an address, and
// every node dials by the replicated addresses from then on, also after a restart of all nodes.
// A node that was started with another [Options.Listen] tells the group by itself.
// [Options.Peers] says where to look first.
//
// # Gateways
//
// With [Options.Gateway] the process is a gateway: its groups have [Group.Propose] and
// [Group.Query], and no replica.
//
// # Copies
//
// [Group.Snapshot] writes the state to a file, and [Restore] begins a new cluster, of any
// size, with such a file. After the loss of a majority [Recover] begins anew with the
// state of one survivor.
//
// # Below
//
// Package rawnode has the host of one group, with all its settings ([Configure],
// [Group.Host]); docs/service.md shows a service from its first line to its backups.
package weft
