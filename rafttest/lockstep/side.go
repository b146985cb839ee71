// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"context"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

//go:generate sh -c "sed -f weft.sed side_upstream.go | gofmt > side_weft.go"

// The two libraries have the same API but, to the compiler, different types. The types in this file
// belong to neither library, and both adapters convert from and to them. The types of raftpb and
// tracker are shared already.

// library is one of the two libraries: its functions, and the constructors of its nodes.
type library interface {
	name() string
	setLogger(logger)

	newCore(config) (core, error)
	newMemory() memory
	// startNode and restartNode may panic, as both libraries do.
	startNode(config, []peer) node
	restartNode(config) node

	// sentinel names the exported error that err is, with a leading "wrapped" for an error that
	// wraps the exported error; empty for any other error.
	sentinel(err error) string
	// refused reports whether err says that a message was refused as malformed, or that storage
	// failed: Weft returns such errors where upstream panics.
	refused(err error) bool
	// errSnapshotLater is ErrSnapshotTemporarilyUnavailable.
	errSnapshotLater() error

	describer
}

// describer is the set of a library's functions that need no node.
type describer interface {
	describeReady(ready, formatter) string
	describeMessage(*pb.Message, formatter) string
	describeEntry(*pb.Entry, formatter) string
	describeEntries([]*pb.Entry, formatter) string
	describeHardState(*pb.HardState) string
	describeSoftState(softState) string
	describeConfState(*pb.ConfState) string
	describeConfChange(pb.ConfChangeI) string
	describeSnapshot(*pb.Snapshot) string
	describeState(uint64) (text string, json []byte)
	mustSync(st, prev *pb.HardState, entries int) bool
	isEmptyHardState(*pb.HardState) bool
	isEmptySnap(*pb.Snapshot) bool
	isLocalMsg(pb.MessageType) bool
	isResponseMsg(pb.MessageType) bool
	isLocalMsgTarget(uint64) bool
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
	TransferLeader(uint64)
	ForgetLeader() error
	ReadIndex([]byte)
	HasReady() bool

	bootstrap([]peer) error
	reportSnapshot(id uint64, st int)
	ready() ready
	advance()
	status() status
	basicStatus() status
	statusText() string
	withProgress(func(id uint64, typ byte, pr tracker.Progress))
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
	Stop()

	// tryReady takes a Ready if the node offers a Ready at this moment.
	tryReady() (ready, bool)
	reportSnapshot(id uint64, st int)
	status() status
}

// storage is Storage.
type storage interface {
	InitialState() (*pb.HardState, *pb.ConfState, error)
	Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error)
	Term(uint64) (uint64, error)
	LastIndex() (uint64, error)
	FirstIndex() (uint64, error)
	Snapshot() (*pb.Snapshot, error)
}

// memory is a MemoryStorage.
type memory interface {
	storage
	SetHardState(*pb.HardState) error
	ApplySnapshot(*pb.Snapshot) error
	CreateSnapshot(i uint64, cs *pb.ConfState, data []byte) (*pb.Snapshot, error)
	Compact(uint64) error
	Append([]*pb.Entry) error
}

// logger is Logger.
type logger interface {
	Debug(v ...any)
	Debugf(format string, v ...any)
	Error(v ...any)
	Errorf(format string, v ...any)
	Info(v ...any)
	Infof(format string, v ...any)
	Warning(v ...any)
	Warningf(format string, v ...any)
	Fatal(v ...any)
	Fatalf(format string, v ...any)
	Panic(v ...any)
	Panicf(format string, v ...any)
}

// config is upstream's Config, field for field.
type config struct {
	Storage     storage
	Logger      logger
	TraceLogger any

	ID, Applied                             uint64
	ElectionTick, HeartbeatTick             int
	PreVote, CheckQuorum, StepDownOnRemoval bool
	ReadOnlyOption                          int
	AsyncStorageWrites                      bool

	MaxInflightMsgs                 int
	MaxInflightBytes, MaxSizePerMsg uint64
	MaxCommittedSizePerReady        uint64
	MaxUncommittedEntriesSize       uint64
	DisableProposalForwarding       bool
	DisableConfChangeValidation     bool
}

// formatter is EntryFormatter.
type formatter func([]byte) string

// peer is Peer.
type peer struct {
	ID      uint64
	Context []byte
}

// softState is SoftState.
type softState struct {
	Lead      uint64
	RaftState uint64
}

// readState is ReadState.
type readState struct {
	Index      uint64
	RequestCtx []byte
}

// ready is Ready. Slices and pointers are the library's own, except for
// ReadStates, which is nil if and only if the library's is.
type ready struct {
	SoftState        *softState
	HardState        *pb.HardState
	ReadStates       []readState
	Entries          []*pb.Entry
	Snapshot         *pb.Snapshot
	CommittedEntries []*pb.Entry
	Messages         []*pb.Message
	MustSync         bool
}

// status is Status, or BasicStatus with Config and Progress left empty.
type status struct {
	ID             uint64
	HardState      *pb.HardState
	SoftState      softState
	Applied        uint64
	LeadTransferee uint64
	Config         tracker.Config
	Progress       map[uint64]tracker.Progress
}

// The roles, with the numbers of both libraries.
const (
	stateFollower uint64 = iota
	stateCandidate
	stateLeader
	statePreCandidate
)

// The addresses of the storage threads, the same in both libraries (checked by TestThreads).
const (
	appendThread = ^uint64(0)
	applyThread  = appendThread - 1
)
