// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	theirs "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

var upstream = library{
	name: "upstream",
	sentinels: []error{
		theirs.ErrProposalDropped, theirs.ErrStepLocalMsg, theirs.ErrStepPeerNotFound, theirs.ErrCompacted,
		theirs.ErrSnapOutOfDate, theirs.ErrUnavailable, theirs.ErrSnapshotTemporarilyUnavailable, theirs.ErrStopped,
	},
	errSnapshotLater: theirs.ErrSnapshotTemporarilyUnavailable,
	errCompacted:     theirs.ErrCompacted,

	setLogger: func(l raft.Logger) { theirs.SetLogger(l) },
	newCore: func(c raft.Config) (core, error) {
		rn, err := theirs.NewRawNode(upstreamConfig(c))
		if err != nil {
			return nil, err
		}
		return upstreamCore{rn}, nil
	},
	newMemory: func() memory { return theirs.NewMemoryStorage() },
	startNode: func(c raft.Config, peers []raft.Peer) node {
		return upstreamNode{theirs.StartNode(upstreamConfig(c), upstreamPeers(peers))}
	},
	restartNode: func(c raft.Config) node { return upstreamNode{theirs.RestartNode(upstreamConfig(c))} },

	describeReady: func(rd raft.Ready, f raft.EntryFormatter) string {
		return theirs.DescribeReady(toUpstreamReady(rd), theirs.EntryFormatter(f))
	},
	describeMessage: func(m *pb.Message, f raft.EntryFormatter) string {
		return theirs.DescribeMessage(m, theirs.EntryFormatter(f))
	},
	describeEntry: func(e *pb.Entry, f raft.EntryFormatter) string {
		return theirs.DescribeEntry(e, theirs.EntryFormatter(f))
	},
	describeEntries: func(ents []*pb.Entry, f raft.EntryFormatter) string {
		return theirs.DescribeEntries(ents, theirs.EntryFormatter(f))
	},
	describeHardState:  theirs.DescribeHardState,
	describeSoftState:  func(s raft.SoftState) string { return theirs.DescribeSoftState(toUpstreamSoft(s)) },
	describeConfState:  theirs.DescribeConfState,
	describeConfChange: theirs.DescribeConfChange,
	describeSnapshot:   theirs.DescribeSnapshot,
	describeState: func(st raft.StateType) string {
		defer func() { _ = recover() }() // upstream knows no name for numbers that are no state
		return stateText(theirs.StateType(st))
	},
	mustSync:         theirs.MustSync,
	isEmptyHardState: theirs.IsEmptyHardState,
	isEmptySnap:      theirs.IsEmptySnap,
	isLocalMsg:       theirs.IsLocalMsg,
	isResponseMsg:    theirs.IsResponseMsg,
	isLocalMsgTarget: theirs.IsLocalMsgTarget,
}

// upstreamConfig has every field that upstream's Config has.
func upstreamConfig(c raft.Config) *theirs.Config {
	return &theirs.Config{
		ID:                          c.ID,
		ElectionTick:                c.ElectionTick,
		HeartbeatTick:               c.HeartbeatTick,
		Storage:                     c.Storage,
		Applied:                     c.Applied,
		AsyncStorageWrites:          c.AsyncStorageWrites,
		MaxSizePerMsg:               c.MaxSizePerMsg,
		MaxCommittedSizePerReady:    c.MaxCommittedSizePerReady,
		MaxUncommittedEntriesSize:   c.MaxUncommittedEntriesSize,
		MaxInflightMsgs:             c.MaxInflightMsgs,
		MaxInflightBytes:            c.MaxInflightBytes,
		CheckQuorum:                 c.CheckQuorum,
		PreVote:                     c.PreVote,
		ReadOnlyOption:              theirs.ReadOnlyOption(c.ReadOnlyOption),
		Logger:                      c.Logger,
		DisableProposalForwarding:   c.DisableProposalForwarding,
		DisableConfChangeValidation: c.DisableConfChangeValidation,
		StepDownOnRemoval:           c.StepDownOnRemoval,
		TraceLogger:                 c.TraceLogger,
	}
}

func upstreamPeers(peers []raft.Peer) []theirs.Peer {
	out := make([]theirs.Peer, len(peers))
	for i, p := range peers {
		out[i] = theirs.Peer(p)
	}
	return out
}

type upstreamCore struct{ *theirs.RawNode }

func (c upstreamCore) Bootstrap(peers []raft.Peer) error {
	return c.RawNode.Bootstrap(upstreamPeers(peers))
}
func (c upstreamCore) Ready() raft.Ready   { return fromUpstreamReady(c.RawNode.Ready()) }
func (c upstreamCore) Advance(raft.Ready)  { c.RawNode.Advance(theirs.Ready{}) }
func (c upstreamCore) Status() raft.Status { return fromUpstreamStatus(c.RawNode.Status()) }
func (c upstreamCore) BasicStatus() raft.BasicStatus {
	return fromUpstreamBasic(c.RawNode.BasicStatus())
}
func (c upstreamCore) statusText() string { return c.RawNode.Status().String() }

func (c upstreamCore) ReportSnapshot(id uint64, st raft.SnapshotStatus) {
	c.RawNode.ReportSnapshot(id, theirs.SnapshotStatus(st))
}

func (c upstreamCore) WithProgress(visit func(uint64, raft.ProgressType, tracker.Progress)) {
	c.RawNode.WithProgress(func(id uint64, typ theirs.ProgressType, pr tracker.Progress) {
		visit(id, raft.ProgressType(typ), pr)
	})
}

type upstreamNode struct{ theirs.Node }

func (n upstreamNode) Status() raft.Status { return fromUpstreamStatus(n.Node.Status()) }

func (n upstreamNode) ReportSnapshot(id uint64, st raft.SnapshotStatus) {
	n.Node.ReportSnapshot(id, theirs.SnapshotStatus(st))
}

func (n upstreamNode) tryReady() (raft.Ready, bool) {
	rd, ok := taken(n.Ready())
	return fromUpstreamReady(rd), ok
}

// fromUpstreamReady shares upstream's slices and pointers, except for those of ReadStates, which is nil if and only if
// upstream's is, and of SoftState.
func fromUpstreamReady(rd theirs.Ready) raft.Ready {
	out := raft.Ready{
		HardState:        rd.HardState,
		Entries:          rd.Entries,
		Snapshot:         rd.Snapshot,
		CommittedEntries: rd.CommittedEntries,
		Messages:         rd.Messages,
		MustSync:         rd.MustSync,
	}
	if rd.SoftState != nil {
		out.SoftState = new(fromUpstreamSoft(*rd.SoftState))
	}
	if rd.ReadStates != nil {
		out.ReadStates = make([]raft.ReadState, len(rd.ReadStates))
		for i, rs := range rd.ReadStates {
			out.ReadStates[i] = raft.ReadState(rs)
		}
	}
	return out
}

func toUpstreamReady(rd raft.Ready) theirs.Ready {
	out := theirs.Ready{
		HardState:        rd.HardState,
		Entries:          rd.Entries,
		Snapshot:         rd.Snapshot,
		CommittedEntries: rd.CommittedEntries,
		Messages:         rd.Messages,
		MustSync:         rd.MustSync,
	}
	if rd.SoftState != nil {
		out.SoftState = new(toUpstreamSoft(*rd.SoftState))
	}
	if rd.ReadStates != nil {
		out.ReadStates = make([]theirs.ReadState, len(rd.ReadStates))
		for i, rs := range rd.ReadStates {
			out.ReadStates[i] = theirs.ReadState(rs)
		}
	}
	return out
}

func fromUpstreamSoft(s theirs.SoftState) raft.SoftState {
	return raft.SoftState{Lead: s.Lead, RaftState: raft.StateType(s.RaftState)}
}

func toUpstreamSoft(s raft.SoftState) theirs.SoftState {
	return theirs.SoftState{Lead: s.Lead, RaftState: theirs.StateType(s.RaftState)}
}

func fromUpstreamBasic(s theirs.BasicStatus) raft.BasicStatus {
	return raft.BasicStatus{
		ID:             s.ID,
		HardState:      s.HardState,
		SoftState:      fromUpstreamSoft(s.SoftState),
		Applied:        s.Applied,
		LeadTransferee: s.LeadTransferee,
	}
}

func fromUpstreamStatus(s theirs.Status) raft.Status {
	return raft.Status{BasicStatus: fromUpstreamBasic(s.BasicStatus), Config: s.Config, Progress: s.Progress}
}
