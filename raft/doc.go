// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package raft is a Raft state machine with the API and the behaviour of
// go.etcd.io/raft/v3 (v3.7): a host swaps the import path and goes on.
//
// # The model
//
// A group is a set of nodes that agree on one log of entries. Each node runs
// one state machine of this package. The state machine does nothing by itself:
// it has no goroutine, reads no clock, opens no socket and writes no file. The
// host feeds it ticks, proposals and the messages of other nodes, and asks it
// what is to be done in return:
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
// [RawNode] is that state machine. [Node] wraps it in a goroutine for hosts
// that call it from several. [Storage] is what the state machine reads of what
// the host has written. With [Config.AsyncStorageWrites] steps 1 and 3 become
// messages to local threads, and Advance becomes the answers to them, so that
// writing, applying and talking overlap.
//
// # Where things are
//
// A node is a follower, a candidate or a leader, and each role is a type with
// the fields that only this role has:
//
//	raft.go       what every role shares: identity, term, vote, log, members
//	step.go       a message arrives: whose term is right?
//	follower.go   appends, heartbeats and snapshots of a leader
//	candidate.go  campaigns and (pre-)votes counted
//	recover.go    a winner that may not lead yet
//	leader.go     the leader's clock and its switchboard, and from there
//	replicate.go  what a follower is sent, and what its answer tells
//	commit.go     when an entry is committed
//	propose.go    proposals and the limits on them
//	held.go       configuration changes that wait
//	reads.go      linearizable reads without a log entry
//	transfer.go   handing leadership over
//	vote.go       giving votes, and refusing them
//	electorate.go whose votes and acknowledgements count
//	conf.go       changes of the member set
//	log.go        the log: Storage, and behind it the tail not yet written
//	applying.go   committed entries on their way to the host
//	ready.go      Ready: what the host is asked to do, and its acknowledgement
//
// Coded replication is an extension: it stands behind one interface, and plain
// Raft reads without it.
//
//	coder.go        all that an extension may do to Raft
//	coder_plain.go  coding off
//	perform.go      where what an extension asks for is done
//	shown.go        what an extension sees
//
// Ways in, for a reader who knows Raft: how votes are counted is candidate.go
// (count) and electorate.go (tally); what commits is commit.go (committable), and
// electorate.go; what a follower does with an append is follower.go (handleAppend)
// and log.go (appendAfter); what coding may do to any of it is coder.go, and how it
// does so is package internal/coding, which begins with its doc.go.
// paper_test.go has Raft as a specification, one test a rule.
//
// Wire and configuration types are upstream's own packages raftpb, quorum,
// tracker and confchange, so nodes of both libraries talk to each other and
// read each other's disks.
//
// # What a host can rely on
//
// The state machine never asks for a message to be sent before the state that
// the message vouches for is durable: votes and acknowledgements wait behind
// the writes of their Ready. Entries, messages and snapshots that were handed
// out never change afterwards, and must not be changed by the host. Slices
// handed out have no spare capacity that the state machine would write to.
//
// Bad input ends in an error and changes nothing. A [Storage] that fails takes
// the node out of service: see [ErrStorage]. A panic means that an invariant
// broke, in this package or in the host's use of it.
//
// The protocol is that of Diego Ongaro's dissertation "Consensus: Bridging
// Theory and Practice" (2014); comments cite it as "thesis".
package raft
