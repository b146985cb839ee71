// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package raft is a Raft state machine with the API and the behaviour of
// go.etcd.io/raft/v3 (v3.7): a host swaps the import path and goes on.
//
// # The model
//
// A group is a set of nodes that agree on one log of entries. Each node runs
// one state machine of this package. The state machine does nothing by itself:
// no goroutine, no clock, no socket and no file. The host feeds in ticks,
// proposals and the messages of other nodes, and gets work in return:
//
//	for {
//		select {
//		case <-ticker.C:
//			rn.Tick()
//		case m := <-inbox:
//			_ = rn.Step(m)
//		}
//		if rn.HasReady() {
//			rd := rn.Ready()
//			// 1. write rd.HardState, rd.Entries and rd.Snapshot (and sync, if rd.MustSync)
//			// 2. send rd.Messages
//			// 3. apply rd.Snapshot, then rd.CommittedEntries
//			rn.Advance(rd)
//		}
//	}
//
// [RawNode] is the state machine. [Node] wraps a RawNode in a goroutine, for
// hosts that call from several goroutines. [Storage] lets the state machine read the
// host's writes. With [Config.AsyncStorageWrites] steps 1 and 3 become messages
// to local threads, and the answers take the place of Advance, so that writing,
// applying and sending overlap.
//
// # Where things are
//
// A node is a follower, a candidate or a leader, and each role is a type with
// fields of its own. From log.go on, files know neither roles nor messages:
//
//	raft.go       what every role shares: identity, term, vote, log, members
//	step.go       a message arrives: whose term is right?
//	follower.go   appends, heartbeats and snapshots of a leader
//	candidate.go  campaigns and (pre-)votes counted
//	recover.go    the winner of an election that may not lead yet
//	leader.go     the leader's clock and its switchboard, and from there
//	replicate.go  appends to a follower, and its answers
//	commit.go     when an entry is committed
//	propose.go    proposals and the limits on them
//	held.go       configuration changes that wait
//	reads.go      linearizable reads without a log entry
//	transfer.go   handing leadership over
//	late.go       a leader whose disk hangs gives up leadership
//	placement.go  which members lead, by weights
//	vote.go       giving votes, and refusing them
//	conf.go       changes of the member set
//	news.go       what becomes of the log, told to the extension and the electorate
//	message.go    messages in the making; msgtype.go: kinds of messages
//	random.go     randomness, for timeouts and the number of a start
//	log.go        the log: Storage, and behind it the tail not yet written
//	applying.go   committed entries on their way to the host
//	early.go      entries that the host may apply before it has written them
//	tail.go       entries not yet written
//	entry.go      an entry: identity, sizes, copies, the change in it
//
// Package internal/electorate decides which members count, and while which changes of the
// members do: its doc lists the questions, and the reason for each answer.
//
// The host sees the state machine through rawnode.go, or node.go with its goroutine, and
//
//	config.go     the settings; coding_config.go and leases_config.go: those of extensions
//	storage.go    the log as the host keeps it, and memory.go: kept in memory
//	bootstrap.go  the first members; start.go: what a node reads of its log as it starts
//	ready.go      Ready: the host's work, and its acknowledgement
//	async.go      the same as messages to local threads
//	status.go     what a node shows; coding_status.go, leases_status.go and coding_events.go:
//	              what extensions show
//	describe.go   messages, entries and members as text; logger.go and trace.go: where text goes
//	state.go      the names of roles; errors.go: errors
//
// With the build tag invariants, invariants_on.go checks the invariants that fields state
// after each call; without, invariants_off.go does nothing.
//
// Coded replication and roster leases are extensions behind one interface, and
// plain Raft reads without them:
//
//	extension.go         everything an extension may do to Raft
//	extension_alone.go   both off
//	extension_both.go    leases, over coding or over neither
//	perform.go           the effects of an extension, carried out
//	shown.go             the log and the node as an extension sees them
//
// Ways in, for a reader who knows Raft:
//
//   - When a vote is given: vote.go (mayVote). How votes are counted: candidate.go (count), then
//     Tally of internal/electorate.
//   - What commits: commit.go (committable), then Committable of internal/electorate.
//   - What a follower does with an append: follower.go (handleAppend), then log.go
//     (firstNew, appendAfter).
//   - How a read is served: reads.go (readIndex, answerRead). By a lease: TakeRead of
//     internal/leasing.
//   - How a member is changed: propose.go (admitConfChange), then conf.go (applyConfChange).
//   - How a snapshot is sent: replicate.go (sendSnapshot), and taken: follower.go (handleSnapshot).
//   - How an entry is coded: brakes.go of internal/coding, Seal for the leader's own form, and Form
//     for the form of a follower. How many units each follower gets: assign in seal.go there, which
//     asks the Policy, by default that of package ecraft/adaptive.
//   - What coding may change: extension.go, then package internal/coding,
//     from its doc.go.
//   - What leases may change: extension.go, then package internal/leasing,
//     from its doc.go. Their rules, with the schedule behind each, are the page of package
//     leases.
//   - Raft as a specification, one test a rule: paper_test.go.
//
// Wire and configuration types are upstream's own packages raftpb, quorum,
// tracker and confchange, so nodes of both libraries talk to each other and
// read each other's disks.
//
// # What a host can rely on
//
// A message never leaves before the state it vouches for is durable: votes and
// acknowledgements wait behind the writes of their Ready. Entries, messages and
// snapshots handed out never change afterwards, and the host must not change
// them. The state machine does not write into the spare capacity of slices
// handed out.
//
// Bad input ends in an error and changes nothing. A [Storage] that fails takes
// the node out of service: see [ErrStorage]. A panic means that an invariant
// broke, in this package or in the host's use of it.
//
// The protocol is that of Diego Ongaro's dissertation "Consensus: Bridging
// Theory and Practice" (2014); comments cite it as "thesis".
package raft
