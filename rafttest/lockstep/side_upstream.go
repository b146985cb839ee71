// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	theirs "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	ours "github.com/weftraft/weft/internal/theirs"
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

// upstreamConfig has every field that upstream's Config has. The disk has upstream's errors already.
func upstreamConfig(c raft.Config) *theirs.Config {
	u := ours.Config(&c)
	u.Storage, u.TraceLogger = c.Storage, c.TraceLogger
	return u
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
func (c upstreamCore) Ready() raft.Ready   { return ours.Ready(c.RawNode.Ready()) }
func (c upstreamCore) Advance(raft.Ready)  { c.RawNode.Advance(theirs.Ready{}) }
func (c upstreamCore) Status() raft.Status { return ours.Status(c.RawNode.Status()) }
func (c upstreamCore) BasicStatus() raft.BasicStatus {
	return ours.BasicStatus(c.RawNode.BasicStatus())
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

func (n upstreamNode) Status() raft.Status { return ours.Status(n.Node.Status()) }

func (n upstreamNode) ReportSnapshot(id uint64, st raft.SnapshotStatus) {
	n.Node.ReportSnapshot(id, theirs.SnapshotStatus(st))
}

func (n upstreamNode) tryReady() (raft.Ready, bool) {
	rd, ok := taken(n.Ready())
	return ours.Ready(rd), ok
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

func toUpstreamSoft(s raft.SoftState) theirs.SoftState {
	return theirs.SoftState{Lead: s.Lead, RaftState: theirs.StateType(s.RaftState)}
}
