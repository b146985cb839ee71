// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"context"
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// library is one of the two libraries. The two have the same API but, to the compiler, different types: the harness
// uses Weft's, and the adapter of upstream converts. The types of raftpb and tracker are shared already.
type library struct {
	name string
	// sentinels are the exported errors, in the order of sentinelNames.
	sentinels []error
	// errSnapshotLater is ErrSnapshotTemporarilyUnavailable, errCompacted ErrCompacted.
	errSnapshotLater, errCompacted error

	setLogger func(raft.Logger)
	newCore   func(raft.Config) (core, error)
	newMemory func() memory
	// startNode and restartNode may panic, as both libraries do.
	startNode   func(raft.Config, []raft.Peer) node
	restartNode func(raft.Config) node

	describeReady      func(raft.Ready, raft.EntryFormatter) string
	describeMessage    func(*pb.Message, raft.EntryFormatter) string
	describeEntry      func(*pb.Entry, raft.EntryFormatter) string
	describeEntries    func([]*pb.Entry, raft.EntryFormatter) string
	describeHardState  func(*pb.HardState) string
	describeSoftState  func(raft.SoftState) string
	describeConfState  func(*pb.ConfState) string
	describeConfChange func(pb.ConfChangeI) string
	describeSnapshot   func(*pb.Snapshot) string
	// describeState returns the text and the JSON of a role.
	describeState    func(raft.StateType) string
	mustSync         func(st, prev *pb.HardState, entries int) bool
	isEmptyHardState func(*pb.HardState) bool
	isEmptySnap      func(*pb.Snapshot) bool
	isLocalMsg       func(pb.MessageType) bool
	isResponseMsg    func(pb.MessageType) bool
	isLocalMsgTarget func(uint64) bool
}

// core is a RawNode.
type core interface {
	Tick()
	TickQuiesced()
	Campaign() error
	Propose([]byte) error
	ProposeConfChange(pb.ConfChangeI) error
	ApplyConfChange(pb.ConfChangeI) *pb.ConfState
	Step(*pb.Message) error
	ReportUnreachable(uint64)
	ReportSnapshot(uint64, raft.SnapshotStatus)
	TransferLeader(uint64)
	ForgetLeader() error
	ReadIndex([]byte)
	HasReady() bool
	Bootstrap([]raft.Peer) error
	Ready() raft.Ready
	Advance(raft.Ready)
	Status() raft.Status
	BasicStatus() raft.BasicStatus
	WithProgress(func(uint64, raft.ProgressType, tracker.Progress))

	// statusText is the library's text of the status.
	statusText() string
}

// node is a Node.
type node interface {
	Tick()
	Campaign(context.Context) error
	Propose(context.Context, []byte) error
	ProposeConfChange(context.Context, pb.ConfChangeI) error
	Step(context.Context, *pb.Message) error
	Advance()
	ApplyConfChange(pb.ConfChangeI) *pb.ConfState
	TransferLeadership(ctx context.Context, lead, transferee uint64)
	ForgetLeader(context.Context) error
	ReadIndex(context.Context, []byte) error
	ReportUnreachable(uint64)
	ReportSnapshot(uint64, raft.SnapshotStatus)
	Status() raft.Status
	Stop()

	// tryReady takes a Ready if the node offers a Ready at this moment.
	tryReady() (raft.Ready, bool)
}

// memory is a MemoryStorage.
type memory interface {
	raft.Storage
	SetHardState(*pb.HardState) error
	ApplySnapshot(*pb.Snapshot) error
	CreateSnapshot(i uint64, cs *pb.ConfState, data []byte) (*pb.Snapshot, error)
	Compact(uint64) error
	Append([]*pb.Entry) error
}

var sentinelNames = [...]string{
	"ErrProposalDropped", "ErrStepLocalMsg", "ErrStepPeerNotFound", "ErrCompacted", "ErrSnapOutOfDate", "ErrUnavailable",
	"ErrSnapshotTemporarilyUnavailable", "ErrStopped",
}

// sentinel names the exported error that err is, with a leading "wrapped" for an error that wraps the exported error;
// empty for any other error.
func (l library) sentinel(err error) string {
	for i, s := range l.sentinels {
		switch {
		case err == s: //nolint:errorlint // hosts compare with == too, so identity is part of the behaviour
			return sentinelNames[i]
		case errors.Is(err, s):
			return "wrapped " + sentinelNames[i]
		}
	}
	return ""
}

// refused reports whether Weft says by err that a message was refused as malformed, or that storage failed: upstream
// panics there.
func refused(err error) bool {
	return errors.Is(err, raft.ErrMalformedMessage) || errors.Is(err, raft.ErrStorage)
}

var weft = library{
	name: "weft",
	sentinels: []error{
		raft.ErrProposalDropped, raft.ErrStepLocalMsg, raft.ErrStepPeerNotFound, raft.ErrCompacted, raft.ErrSnapOutOfDate,
		raft.ErrUnavailable, raft.ErrSnapshotTemporarilyUnavailable, raft.ErrStopped,
	},
	errSnapshotLater: raft.ErrSnapshotTemporarilyUnavailable,
	errCompacted:     raft.ErrCompacted,

	setLogger: raft.SetLogger,
	newCore: func(c raft.Config) (core, error) {
		rn, err := raft.NewRawNode(&c)
		if err != nil {
			return nil, err
		}
		return weftCore{rn}, nil
	},
	newMemory:   func() memory { return raft.NewMemoryStorage() },
	startNode:   func(c raft.Config, peers []raft.Peer) node { return weftNode{raft.StartNode(&c, peers)} },
	restartNode: func(c raft.Config) node { return weftNode{raft.RestartNode(&c)} },

	describeReady:      raft.DescribeReady,
	describeMessage:    raft.DescribeMessage,
	describeEntry:      raft.DescribeEntry,
	describeEntries:    raft.DescribeEntries,
	describeHardState:  raft.DescribeHardState,
	describeSoftState:  raft.DescribeSoftState,
	describeConfState:  raft.DescribeConfState,
	describeConfChange: raft.DescribeConfChange,
	describeSnapshot:   raft.DescribeSnapshot,
	describeState:      stateText[raft.StateType],
	mustSync:           raft.MustSync,
	isEmptyHardState:   raft.IsEmptyHardState,
	isEmptySnap:        raft.IsEmptySnap,
	isLocalMsg:         raft.IsLocalMsg,
	isResponseMsg:      raft.IsResponseMsg,
	isLocalMsgTarget:   raft.IsLocalMsgTarget,
}

type weftCore struct{ *raft.RawNode }

func (c weftCore) statusText() string { return c.Status().String() }

type weftNode struct{ raft.Node }

func (n weftNode) tryReady() (raft.Ready, bool) { return taken(n.Ready()) }

// taken takes what a channel offers at this moment.
func taken[R any](offered <-chan R) (rd R, ok bool) {
	select {
	case rd = <-offered:
		return rd, true
	default:
		return rd, false
	}
}

// stateText returns a role's text and its JSON; neither library returns an error for the JSON.
func stateText[S interface {
	String() string
	MarshalJSON() ([]byte, error)
}](st S) string {
	json, _ := st.MarshalJSON()
	return st.String() + string(json)
}
