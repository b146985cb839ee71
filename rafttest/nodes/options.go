// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"io"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

// options shapes a run, beyond the draws of its seed. The zero value draws
// everything.
type options struct {
	// Trace receives the story as it goes; nil: nobody listens.
	Trace io.Writer
	// Core is the library under the nodes: replica.Weft if nil. Upstream's
	// library draws from crypto/rand.Reader: for the same story twice, a caller
	// sets the reader, and runs one seed at a time.
	Core replica.NewCore
	// Bug plants a mistake, to see the mistake found.
	Bug bug

	// Gates adds gateways. Brief, with Gates, has a small cluster go through as much in a quarter of the time.
	Gates, Brief bool
	// Joints has coding, leases and changes of the members meet.
	Joints bool

	// tune changes the draws of the seed, for scenarios.
	tune func(*plan)
}

// result is how a run went.
type result struct {
	seeds.Outcome
	// Reached counts the events of the run.
	Reached reach
	// Joints counts the events of joints, and Gates those of gateways.
	Joints jointReach
	Gates  gateReach
}

// Counts implements seeds.Result.
func (r result) Counts() any { return r.Reached }

// The invariants, by name.
const (
	electionSafety   = "election safety"      // at most one leader of a group in a term
	sameCommands     = "same commands"        // replicas apply the same commands, with the same results
	equalStates      = "equal states"         // and are equal in the end
	atMostOnce       = "at most once"         // a command takes effect once, however often it was tried
	sessionOrder     = "session order"        // commands of a session take effect in order
	verdicts         = "verdicts"             // what was refused has no effect; a call ends once, and in time
	nothingLost      = "nothing lost"         // what was acknowledged stays
	linearizability  = "linearizability"      // of what clients saw
	fresh            = "fresh"                // a read sees all writes that its policy says
	logMatching      = "log matching"         // an entry is the same in each log
	logKept          = "log kept"             // a log has, after a crash, what was durable
	commitDurability = "commit durability"    // committed: on the disks of a majority
	coverage         = "coverage"             // committed: any half of the voters can restore it
	onePlace         = "one place, one entry" // entries follow each other, and a leader's follow its last
	budgets          = "budgets"              // no queue is longer than its bound
	liveness         = "liveness"             // in the end, all works again within a bound
	damage           = "damage"               // a damaged log gives out nothing that was not written
	namesExact       = "names are exact"      // a joined message equals its original; only nodes that know names get any
	noFailure        = "no failure"           // no node panics, fails, or refuses an honest message
	noGap            = "no gap"               // scenarios: the time without a write is bounded
	definite         = "definite outcome"     // scenarios: no outcome is unknown
	goodput          = "goodput"              // scenarios: overload does not stop the work
)

// bug is a mistake, planted to see whether it is found.
type bug int

// The planted bugs.
const (
	noBug           bug = iota
	termIgnored         // a leader appends what was sent to the leader of another term
	lostOrigins         // snapshots leave out which batches were applied
	lostSessions        // snapshots leave out the sessions of clients
	noSessions          // a command that was tried twice takes effect twice
	followerBarrier     // a read waits for what its own node knows to be committed
	noWait              // a read gets its barrier, and does not wait for it
	noFsync             // writes are not synced
	earlyAck            // a write is acknowledged when queued
	ownEarly            // a leader's own write is
	noQueueBudget       // commands are queued without a bound
	noInboxBudget       // messages are queued without a bound
	noLinkBudget        // messages for a peer that does not read are kept
	applyAgain          // a restart applies entries of the state again
	newerBody           // the body of a snapshot is newer than its header
	refusedLate         // an open call is told of a refusal
	wildClocks          // clocks run at rates far beyond the bound of leases
	clockOfTicks        // leases go by when the last tick was
	tickedReads         // so do reads that rest on a permit
	latePermit          // permits are published when a tick passes, and not after each turn
	cutLog              // a node goes on with a log that damage has cut
	earlyUnbounded      // entries are applied before the log has them, however many
	stateAhead          // a node starts with a log that is behind its state
	endOfBugs
)

var bugNames = [endOfBugs]string{"none", "term-ignored", "lost-origins", "lost-sessions", "no-sessions", "follower-barrier",
	"no-wait", "no-fsync", "early-ack", "own-early", "no-queue-budget", "no-inbox-budget", "no-link-budget", "apply-again", "newer-body",
	"refused-late", "wild-clocks", "ticked-clock", "ticked-reads", "late-permit", "cut-log", "early-unbounded", "state-ahead"}

// String returns the bug's name.
func (b bug) String() string { return bugNames[b] }
