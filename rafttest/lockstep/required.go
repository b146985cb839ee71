// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
)

// required returns the rows of a tally that the schedules of a test run must have hit, so that a
// harness which no longer reaches a state fails.
func required() []string {
	rows := make([]string, 0, 200)
	for _, op := range ops {
		rows = append(rows, op.row)
	}
	rows = append(rows, startNames[:]...)
	rows = append(rows, roleRows[:]...)
	rows = append(rows, progressRows[:]...)
	for t, row := range deliverRows {
		rows = append(rows, row)
		if leaves(t) {
			rows = append(rows, outRows[t])
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(requiredLists), "\n") {
		group, names, _ := strings.Cut(line, ": ")
		for _, name := range strings.Split(names, "; ") {
			rows = append(rows, group+": "+name)
		}
	}
	return rows
}

// leaves reports whether messages of a type are ever in a Ready: messages of the other types go
// only from a host to its node.
func leaves(t pb.MessageType) bool {
	switch t {
	case pb.MsgHup, pb.MsgBeat, pb.MsgUnreachable, pb.MsgSnapStatus, pb.MsgCheckQuorum, pb.MsgForgetLeader,
		pb.MsgStorageAppendResp, pb.MsgStorageApplyResp:
		return false
	}
	return true
}

const requiredLists = `
config: ElectionTick=<=2; ElectionTick=<=5; ElectionTick=>5; HeartbeatTick=<=1; HeartbeatTick=>1
config: AsyncStorageWrites=true; AsyncStorageWrites=false
config: MaxSizePerMsg=0; MaxSizePerMsg=<=300; MaxSizePerMsg=<=1048576; MaxSizePerMsg=max
config: MaxCommittedSizePerReady=0; MaxCommittedSizePerReady=<=900; MaxCommittedSizePerReady=>900
config: MaxUncommittedEntriesSize=0; MaxUncommittedEntriesSize=<=200; MaxUncommittedEntriesSize=<=3000; MaxUncommittedEntriesSize=max
config: MaxInflightMsgs=<=1; MaxInflightMsgs=<=8; MaxInflightMsgs=>8; MaxInflightBytes=0; MaxInflightBytes=>0
config: CheckQuorum=true; CheckQuorum=false; PreVote=true; PreVote=false; ReadOnlyOption=Safe; ReadOnlyOption=LeaseBased
config: Logger=nil; Logger=set; TraceLogger=nil; TraceLogger=set
config: DisableProposalForwarding=true; DisableProposalForwarding=false
config: DisableConfChangeValidation=true; DisableConfChangeValidation=false
config: StepDownOnRemoval=true; StepDownOnRemoval=false
restart: with Applied; without Applied; with another configuration
crash: with writes lost; with nothing lost
role: leader handing over; leader that is no voter
progress: window full
members: joint; joint, left by itself; learners; voters to become learners
conf change: nil; V2 that leaves; V2 ConfChangeTransitionAuto; V2 ConfChangeTransitionJointImplicit; V2 ConfChangeTransitionJointExplicit
conf change: V1 ConfChangeAddNode; V1 ConfChangeRemoveNode; V1 ConfChangeUpdateNode; V1 ConfChangeAddLearnerNode
conf change: applied; rejected by the host
ready: read states; snapshot; entries; committed entries; no sync needed; described
message out: MsgAppResp that rejects
message stepped: of a later version
storage: snapshot created; log compacted; a compaction under way; out of service; no start on a broken disk
stories: a campaign before a change is applied
errors: raft proposal dropped; raft: cannot step as peer not found; raft: cannot step raft local message
errors: can't bootstrap a nonempty Storage; must provide at least one peer to Bootstrap
refusals: upstream panics; a malformed or stray message
`
