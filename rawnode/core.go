// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	upstream "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
)

// RawNode is satisfied by *raft.RawNode of both libraries. The type parameters are the types that
// each library declares for itself. [Weft] and [Upstream] hide these types behind an interface,
// which a [Host] drives.
type RawNode[Ready, BasicStatus, Status, Peer, SnapshotStatus, ProgressType any] interface {
	// Tick advances the node's clock by a tick.
	Tick()
	// TickQuiesced advances the node's clock by a tick without any other effect: the node measures
	// the silence of its leader, and does not campaign.
	TickQuiesced()
	// Step lets a message of a peer or of a local storage thread arrive.
	Step(m *pb.Message) error
	// Campaign makes the node try to become leader.
	Campaign() error
	// Propose proposes data for the log.
	Propose(data []byte) error
	// ProposeConfChange proposes a change of the member set.
	ProposeConfChange(cc pb.ConfChangeI) error
	// ApplyConfChange puts a committed change into force.
	ApplyConfChange(cc pb.ConfChangeI) *pb.ConfState
	// ReadIndex asks for the index up to which a linearizable read must wait.
	ReadIndex(rctx []byte)
	// TransferLeader asks the leader to hand leadership to a member.
	TransferLeader(transferee uint64)
	// ForgetLeader makes a follower forget its leader.
	ForgetLeader() error
	// ReportUnreachable says that a message to a member was not sent.
	ReportUnreachable(id uint64)
	// HasReady reports whether Ready would ask for anything.
	HasReady() bool

	// Bootstrap begins a group with these members, in an empty log.
	Bootstrap(peers []Peer) error
	// Ready returns the entries, messages and states to be written, sent and applied.
	Ready() Ready
	// Advance says that all work of a Ready is done. With asynchronous storage writes Advance is
	// not called.
	Advance(rd Ready)
	// BasicStatus returns the node's view of itself, without the members' progress.
	BasicStatus() BasicStatus
	// Status returns the node's view of itself and, at a leader, the members' progress.
	Status() Status
	// WithProgress calls visitor for each member that a leader knows.
	WithProgress(visitor func(id uint64, typ ProgressType, pr tracker.Progress))
	// ReportSnapshot says how sending a snapshot to a member ended.
	ReportSnapshot(id uint64, status SnapshotStatus)
}

var (
	_ RawNode[raft.Ready, raft.BasicStatus, raft.Status, raft.Peer, raft.SnapshotStatus, raft.ProgressType]                         = (*raft.RawNode)(nil)
	_ RawNode[upstream.Ready, upstream.BasicStatus, upstream.Status, upstream.Peer, upstream.SnapshotStatus, upstream.ProgressType] = (*upstream.RawNode)(nil)
)

// Weft makes cores of this module's own library, for [ReplicaConfig].Core.
func Weft(cfg raft.Config) (replica.Core, error) { return replica.Weft(cfg) }

// Upstream makes cores of go.etcd.io/raft/v3, for [ReplicaConfig].Core. Rand and Clock of the
// configuration have no counterpart in go.etcd.io/raft/v3 and are not used; Coding and Leases are
// refused.
//
// The library go.etcd.io/raft/v3 panics where its storage fails. The core catches panics of this
// kind only, and the host fails with the storage's error.
func Upstream(cfg raft.Config) (replica.Core, error) { return replica.Upstream(cfg) }

// FindCoded returns the first coded entry of a log, or 0 if there is none. A node without
// coding must not be started on a log with a coded entry, because the node would take units
// for commands: first call [Host.Densify], and wait until the node's log is dense. clear is
// raft.Coding.ClearPrefix. FindCoded reads the whole log.
func FindCoded(log raft.Storage, clear int) (uint64, error) { return replica.FindCoded(log, clear) }

// Budget bounds the bytes of commands that wait, over all groups that share the budget, and of entries that arrive while
// the node cannot write: with many groups at a node, the sum of the bounds of each group would exceed the memory of the node.
// Commands beyond the budget are refused with [ErrOverloaded], and a command that is larger than
// the whole budget with [ErrTooLarge]. Methods Limit, Used and Refused return the bound, the bytes
// in use, and the number of commands refused. A nil Budget bounds nothing.
type Budget = replica.Budget

// NewBudget makes a budget of so many bytes.
func NewBudget(bytes int64) *Budget { return replica.NewBudget(bytes) }
