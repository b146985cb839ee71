// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package rawnode is the part around a Raft core that users of a Raft library write by
// hand: the loop that feeds the core, the log, the network, proposals with results,
// linearizable reads, snapshots, restarts.
//
// # From the inside out
//
// A core is one Raft state machine, of this module's library ([Weft]) or of
// go.etcd.io/raft ([Upstream]). Both satisfy [RawNode].
//
// A replica is a core and all decisions around the core: the contents of log entries, the
// receiver and the fate of a proposal, the index a read waits for, the entries to drop from
// the log. A replica has no goroutine, no clock and no I/O, so that simulators run a
// replica unchanged; the type is internal to this module.
//
// A [Host] runs a replica, one turn at a time, and has stages that write, apply,
// send and restore, each behind a queue. Programs use a Host:
//
//	host, err := rawnode.New(rawnode.Config{...})
//	result, err := host.Propose(ctx, command)   // at any node
//	_, err = host.Read(ctx)                     // then read the state machine
//
// The log is a storage.Group or any other [Log]; the state is the user's [StateMachine];
// the network is a [Transport], for example from package transport.
//
// A [Gateway] takes commands, and queries to the state machine, at a process without a replica.
//
// # Zones
//
// Where bytes between places such as data centres are dear or slow, nodes may say in which zone
// they stand (Zone of the configuration of package transport). A leader then sends the data of a
// whole entry, of 512 bytes and more, to one member in each other zone, the relay. The other members
// there are sent the entry without its data, and get the data from the relay. In the leader's own
// zone voters are sent whole entries, and learners have a relay.
//
//   - The relay is the voter with the largest weight (see [Placement]), or a learner if the zone has
//     no voter.
//   - If the relay is silent for a fifth of an election timeout, members ask the leader. A relay that
//     is silent again and again is passed by.
//   - Heartbeats, votes and acknowledgements go directly. Nodes without a zone, and of earlier
//     versions, are sent whole entries.
//   - Coded entries have no relays: the units that the members of a zone lack together come once
//     from other zones, and are passed on there (Zone of raft.Coding).
//
// # What a caller can rely on
//
// A command is applied at most once, at all replicas in the same order, and Propose returns
// the result of the state machine at this node. An error of Propose is a [CallError], and
// its verdict is [ErrRefused] (no effect, now or later) or [ErrUnknown]. No call outlives
// its deadline.
//
// DESIGN.md, beside the code, gives the reasons.
package rawnode
