// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"fmt"
	"math"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// tallyConfig counts each option by the class of its value.
func (s *schedule) tallyConfig(c *raft.Config) {
	hit := func(name string, class any) { s.tally.Hit(fmt.Sprintf("config: %s=%v", name, class)) }
	hit("ElectionTick", class(uint64(c.ElectionTick), 2, 5))
	hit("HeartbeatTick", class(uint64(c.HeartbeatTick), 1))
	hit("AsyncStorageWrites", c.AsyncStorageWrites)
	hit("MaxSizePerMsg", class(c.MaxSizePerMsg, 0, 300, 1<<20))
	hit("MaxCommittedSizePerReady", class(c.MaxCommittedSizePerReady, 0, 900))
	hit("MaxUncommittedEntriesSize", class(c.MaxUncommittedEntriesSize, 0, 200, 3000))
	hit("MaxInflightMsgs", class(uint64(c.MaxInflightMsgs), 1, 8))
	hit("MaxInflightBytes", class(c.MaxInflightBytes, 0))
	hit("CheckQuorum", c.CheckQuorum)
	hit("PreVote", c.PreVote)
	hit("ReadOnlyOption", [...]string{"Safe", "LeaseBased", "unknown"}[c.ReadOnlyOption])
	hit("Logger", isSet(c.Logger))
	hit("DisableProposalForwarding", c.DisableProposalForwarding)
	hit("DisableConfChangeValidation", c.DisableConfChangeValidation)
	hit("StepDownOnRemoval", c.StepDownOnRemoval)
	hit("TraceLogger", isSet(c.TraceLogger))
}

func isSet(v any) string {
	if v == nil {
		return "nil"
	}
	return "set"
}

// class names the range of a value between the given bounds.
func class(v uint64, bounds ...uint64) string {
	for _, b := range bounds {
		switch {
		case v == b && b == 0:
			return "0"
		case v <= b:
			return fmt.Sprintf("<=%d", b)
		}
	}
	if v == math.MaxUint64 {
		return "max"
	}
	return fmt.Sprintf(">%d", bounds[len(bounds)-1])
}

var roleRows = [...]string{"role: follower", "role: candidate", "role: leader", "role: pre-candidate"}

var progressRows = [...]string{"progress: probe", "progress: replicate", "progress: snapshot"}

// tallyStatus counts the states of the nodes.
func (s *schedule) tallyStatus(st *raft.Status) {
	s.tally.Hit(roleRows[st.SoftState.RaftState])
	c := &st.Config
	if len(c.Voters[1]) > 0 {
		s.tally.Hit("members: joint")
		if len(c.LearnersNext) > 0 {
			s.tally.Hit("members: voters to become learners")
		}
	}
	if len(c.Learners) > 0 {
		s.tally.Hit("members: learners")
	}
	if st.LeadTransferee != 0 {
		s.tally.Hit("role: leader handing over")
	}
	if st.SoftState.RaftState == raft.StateLeader {
		s.tallyProgress(st)
	}
}

func (s *schedule) tallyProgress(st *raft.Status) {
	if _, voter := st.Config.Voters.IDs()[st.ID]; !voter {
		s.tally.Hit("role: leader that is no voter")
	}
	for _, pr := range st.Progress {
		s.tally.Hit(progressRows[pr.State])
		if pr.State == tracker.StateReplicate && pr.IsPaused() {
			s.tally.Hit("progress: window full")
		}
	}
}

var (
	outRows     = messageRows("message out: ")
	deliverRows = messageRows("message stepped: ")
)

func messageRows(prefix string) map[pb.MessageType]string {
	rows := map[pb.MessageType]string{}
	for t, name := range pb.MessageType_name {
		rows[pb.MessageType(t)] = prefix + name
	}
	return rows
}

// tallyReady counts the contents of a Ready.
func (s *schedule) tallyReady(rd *raft.Ready) {
	if len(rd.ReadStates) > 0 {
		s.tally.Hit("ready: read states")
	}
	if rd.Snapshot != nil {
		s.tally.Hit("ready: snapshot")
	}
	if len(rd.Entries) > 0 {
		s.tally.Hit("ready: entries")
	}
	if len(rd.CommittedEntries) > 0 {
		s.tally.Hit("ready: committed entries")
	}
	if !rd.MustSync {
		s.tally.Hit("ready: no sync needed")
	}
	for _, m := range rd.Messages {
		s.tally.Hit(outRows[m.GetType()])
		if m.GetType() == pb.MsgAppResp && m.GetReject() {
			s.tally.Hit("message out: MsgAppResp that rejects")
		}
	}
}

// tallyRefusal counts the reason for which Weft was allowed to refuse a message that upstream did
// not refuse.
func (s *schedule) tallyRefusal(upstream outcome) {
	switch {
	case upstream.panicked != nil:
		s.tally.Hit("refusals: upstream panics")
	case s.odd:
		s.tally.Hit("refusals: a malformed or stray message")
	default:
		s.tally.Hit("refusals: an impossible message, after safety was lost")
	}
}
