// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
)

// StateType is a node's role.
type StateType uint64

// The roles. A pre-candidate asks whether it could win; see [Config.PreVote].
const (
	StateFollower StateType = iota
	StateCandidate
	StateLeader
	StatePreCandidate
)

// String returns the constant's name.
func (st StateType) String() string {
	switch st {
	case StateFollower:
		return "StateFollower"
	case StateCandidate:
		return "StateCandidate"
	case StateLeader:
		return "StateLeader"
	case StatePreCandidate:
		return "StatePreCandidate"
	}
	return fmt.Sprintf("StateType(%d)", uint64(st))
}

// MarshalJSON returns the constant's name as a JSON string.
func (st StateType) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%q", st.String()), nil
}

// SoftState is state that need not be kept: the leader, and this node's role.
type SoftState struct {
	// Lead is the leader known to this node, or [None].
	Lead uint64
	// RaftState is this node's role.
	RaftState StateType
}

// hardState is pb.HardState as a value: comparable, and not shared.
type hardState struct{ term, vote, commit uint64 }

func hardStateOf(st *pb.HardState) hardState {
	return hardState{term: st.GetTerm(), vote: st.GetVote(), commit: st.GetCommit()}
}

// proto returns the hard state for the host, which owns the result.
func (h hardState) proto() *pb.HardState {
	return &pb.HardState{Term: &h.term, Vote: &h.vote, Commit: &h.commit}
}

// IsEmptyHardState reports whether st is nil or all zero: nothing to write.
func IsEmptyHardState(st *pb.HardState) bool { return hardStateOf(st) == hardState{} }
