// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"io"

	"github.com/weftraft/weft/rafttest/internal/seeds"
)

// options shapes a run, beyond the draws of its seed. The zero value draws
// everything.
type options struct {
	// Trace receives the story, one line an event, as it goes. nil: nobody
	// listens; the last lines still stand in Result.Story if the run fails.
	Trace io.Writer
	// Bug plants a bug in the simulated hosts, to see the bug found.
	Bug bug
	// Depose has leaders crash before their term is on disk, start again, and
	// campaign.
	Depose bool
	// Outside leaves out the invariants about disks, so that a bug shows only
	// by its effects on others: by Raft's promises.
	Outside bool
	// Coded turns coding on: entries travel as units, at least at some nodes
	// and for some of the time.
	Coded bool
	// Falls has leaders die while coded entries are under way, and units pushed
	// by followers get lost. Falls needs Coded.
	Falls bool
	// Brief has runs be short, with a few entries and a few acts of bad luck. It
	// needs Coded.
	Brief bool
	// Early has cores hand out entries before their hosts have stored the entries: see core_early.go.
	Early bool
	// Leases turns leases on. Whether entries are coded is drawn then.
	Leases bool
	// Joints has brief runs with coding and leases, in which these and changes of the
	// members are under way at once.
	Joints bool
	// Quick has runs of joints consist of a few acts, and end when the cluster is live again.
	Quick bool
	// Beyond is by how many times the bound clocks may drift; 0 means 1.
	Beyond float64
	// Bare leaves out the faults of links, disks and machines that report no error:
	// old seeds were named before there were any.
	Bare bool
	// Skip leaves acts of a brief run out, by bit.
	Skip uint64
}

// runResult is how a run went.
type runResult struct {
	seeds.Outcome
	// Reached counts the events of the run.
	Reached reach
	// Coded counts the events due to coding, Leased the events due to leases.
	Coded  codedReach
	Leased leasedReach
	// Joints counts the events of joints.
	Joints jointReach
	// Early counts the events due to early applies.
	Early earlyReach
}

// Counts implements seeds.Result.
func (r runResult) Counts() any { return r.Reached }

// The invariants, by name.
const (
	electionSafety     = "election safety"     // at most one leader a term
	logMatching        = "log matching"        // index and term name an entry and all before it
	leaderCompleteness = "leader completeness" // a leader's log has all that was committed before its term
	stateMachineSafety = "state machine safety"
	commitDurability   = "commit durability" // committed: durable at a majority, in the leader's term
	commitMonotony     = "commit monotony"
	voteOnce           = "one vote a term"
	stateMonotony      = "hard state monotony"
	honestUnits        = "honest units"        // units are of the entry they are said to be of
	durableFirst       = "durable before sent" // votes and acknowledgements vouch for what is on disk
	appliesInOrder     = "apply order"         // each index once, in order, in a run of a process
	equalStates        = "equal states"        // replicas that applied as much are equal
	nothingLost        = "acknowledged writes stay"
	linearizability    = "linearizability"
	fresh              = "fresh"                // a read has what somebody may have seen before it began
	onePlace           = "one place, one entry" // entries follow each other, and a leader's follow its last
	leaseMajority      = "lease of a majority"  // of each set of voters that counts
	liveness           = "liveness"
	noPanic            = "no panic"
	assignedHeld       = "assigned means held"
	coverage           = "coverage"       // committed: any half of the voters can restore it
	recoverability     = "recoverability" // committed: whoever may lead can restore it
	budget             = "budget"         // no buffer is larger than it may be
	paced              = "paced"          // a leader sends what its host has permitted
	accepted           = "honest messages are accepted"
	rest               = "rest" // who has nothing to do sends heartbeats and nothing else
)

// bug is a mistake of a host, planted to see whether it is found.
type bug int

// The planted bugs.
const (
	noBug           bug = iota
	ackBeforeSync       // answers leave when a write is made, not when it is durable
	forgetVote          // the vote does not survive a restart
	losesSynced         // a crash takes synced entries
	applyAgain          // a restart applies entries within the checkpoint again
	staleReads          // reads do not ask the leader
	readBeforeWait      // reads ask, but do not wait until the index is applied
	noSessions          // a command that was sent twice is applied twice
	silentLoss          // the loss of a snapshot is not reported
	forgetConf          // a restart takes the founding members for the members
	loseSessions        // snapshots leave the sessions out
	earlyUnbounded      // entries are handed out before they are stored, however many
	earlyCheckpoint     // a checkpoint is made of what is not written
)

var bugNames = [...]string{"none", "ack-before-sync", "forget-vote", "lose-synced", "apply-again",
	"stale-reads", "read-before-wait", "no-sessions", "silent-loss", "forget-conf", "lose-sessions", "early-unbounded", "early-checkpoint"}

// String returns the bug's name.
func (b bug) String() string { return bugNames[b] }
