// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// Shared is the part of *raft.RawNode whose signatures are the same in Weft and
// in upstream's library.
type Shared interface {
	// The comments of rawnode.RawNode describe each method.
	Tick()
	TickQuiesced()
	Step(m *pb.Message) error
	Campaign() error
	Propose(data []byte) error
	ProposeConfChange(cc pb.ConfChangeI) error
	ApplyConfChange(cc pb.ConfChangeI) *pb.ConfState
	ReadIndex(rctx []byte)
	TransferLeader(transferee uint64)
	ForgetLeader() error
	ReportUnreachable(id uint64)
	HasReady() bool
}

// Core is one Raft state machine with asynchronous storage writes, whichever
// library it comes from. Like a RawNode it does nothing by itself and is used
// by one goroutine at a time.
type Core interface {
	Shared
	// Ready returns what is to be done; see [Ready].
	Ready() Ready
	// ResumeAppends sends a member what raft.Config.Pace has held back and permits now. Upstream's library holds nothing
	// back.
	ResumeAppends(id uint64)
	// ReportSnapshot says whether the last snapshot for a member arrived.
	ReportSnapshot(id uint64, ok bool)
	// State returns the node's view of itself.
	State() CoreState
	// Members returns the configuration in force and, at a leader, the progress of each
	// member.
	Members() (tracker.Config, map[uint64]tracker.Progress)
	// Err returns nil, or why the core is out of service: its storage failed, or lacks what it must have.
	Err() error
}

// Ready is the work a Core asks of its host. All values in a Ready are shared with the core
// and constant.
type Ready struct {
	// Changed tells that the core's term, vote, commit index, role or leader may
	// have changed.
	Changed bool
	// ReadStates are confirmed reads.
	ReadStates []raft.ReadState
	// Messages are for peers and may leave at once.
	Messages []*pb.Message
	// Append, or nil, is a MsgStorageAppend: something to write, and responses
	// to deliver when everything written so far is durable.
	Append *pb.Message
	// Apply, or nil, is a MsgStorageApply: entries to apply, and responses to
	// deliver when they are.
	Apply *pb.Message
}

// CoreState is a node's view of itself.
type CoreState struct {
	Term    uint64
	Commit  uint64
	Applied uint64
	Lead    uint64 // 0 if no leader is known
	Role    raft.StateType
}

// NewCore makes a core from a configuration in Weft's terms. [Weft] and
// [Upstream] are the two there are. AsyncStorageWrites and
// DisableProposalForwarding are set by the caller.
type NewCore func(raft.Config) (Core, error)

// sortMessages splits the messages of a library's Ready.
func sortMessages(reads []raft.ReadState, messages []*pb.Message) Ready {
	rd := Ready{ReadStates: reads, Messages: messages}
	for n := len(messages); n > 0; n-- {
		switch m := messages[n-1]; m.GetTo() {
		case raft.LocalAppendThread:
			rd.Append = m
		case raft.LocalApplyThread:
			rd.Apply = m
		default:
			rd.Messages = messages[:n]
			return rd
		}
	}
	rd.Messages = nil
	return rd
}
