// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"errors"

	raft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// upstream is upstream's library. The other adapter is made from this file:
// see the go:generate line of side.go.
type upstream struct{}

func (upstream) name() string       { return "upstream" }
func (upstream) setLogger(l logger) { raft.SetLogger(l) }
func (upstream) newMemory() memory  { return raft.NewMemoryStorage() }

func (upstream) newCore(c config) (core, error) {
	rn, err := raft.NewRawNode(upstreamConfig(c))
	if err != nil {
		return nil, err
	}
	return upstreamCore{rn}, nil
}

func (upstream) startNode(c config, peers []peer) node {
	return upstreamNode{raft.StartNode(upstreamConfig(c), upstreamPeers(peers))}
}

func (upstream) restartNode(c config) node {
	return upstreamNode{raft.RestartNode(upstreamConfig(c))}
}

func upstreamConfig(c config) *raft.Config {
	return &raft.Config{
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
		ReadOnlyOption:              raft.ReadOnlyOption(c.ReadOnlyOption),
		Logger:                      c.Logger,
		DisableProposalForwarding:   c.DisableProposalForwarding,
		DisableConfChangeValidation: c.DisableConfChangeValidation,
		StepDownOnRemoval:           c.StepDownOnRemoval,
		TraceLogger:                 c.TraceLogger,
	}
}

func upstreamPeers(peers []peer) []raft.Peer {
	out := make([]raft.Peer, len(peers))
	for i, p := range peers {
		out[i] = raft.Peer(p)
	}
	return out
}

var upstreamSentinels = []struct {
	name string
	err  error
}{
	{"ErrProposalDropped", raft.ErrProposalDropped},
	{"ErrStepLocalMsg", raft.ErrStepLocalMsg},
	{"ErrStepPeerNotFound", raft.ErrStepPeerNotFound},
	{"ErrCompacted", raft.ErrCompacted},
	{"ErrSnapOutOfDate", raft.ErrSnapOutOfDate},
	{"ErrUnavailable", raft.ErrUnavailable},
	{"ErrSnapshotTemporarilyUnavailable", raft.ErrSnapshotTemporarilyUnavailable},
	{"ErrStopped", raft.ErrStopped},
}

func (upstream) sentinel(err error) string {
	for _, s := range upstreamSentinels {
		switch {
		case err == s.err: //nolint:errorlint // hosts compare with == too, so identity is part of the behaviour
			return s.name
		case errors.Is(err, s.err):
			return "wrapped " + s.name
		}
	}
	return ""
}

func (upstream) errSnapshotLater() error { return raft.ErrSnapshotTemporarilyUnavailable }

type upstreamCore struct{ *raft.RawNode }

func (c upstreamCore) bootstrap(peers []peer) error {
	return c.Bootstrap(upstreamPeers(peers))
}

func (c upstreamCore) reportSnapshot(id uint64, st int) {
	c.ReportSnapshot(id, raft.SnapshotStatus(st))
}

func (c upstreamCore) ready() ready        { return fromUpstreamReady(c.Ready()) }
func (c upstreamCore) advance()            { c.Advance(raft.Ready{}) }
func (c upstreamCore) status() status      { return fromUpstreamStatus(c.Status()) }
func (c upstreamCore) basicStatus() status { return fromUpstreamBasic(c.BasicStatus()) }
func (c upstreamCore) statusText() string  { return c.Status().String() }

func (c upstreamCore) withProgress(visit func(id uint64, typ byte, pr tracker.Progress)) {
	c.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) { visit(id, byte(typ), pr) })
}

func fromUpstreamReady(rd raft.Ready) ready {
	out := ready{
		HardState:        rd.HardState,
		Entries:          rd.Entries,
		Snapshot:         rd.Snapshot,
		CommittedEntries: rd.CommittedEntries,
		Messages:         rd.Messages,
		MustSync:         rd.MustSync,
	}
	if rd.SoftState != nil {
		out.SoftState = &softState{Lead: rd.Lead, RaftState: uint64(rd.RaftState)}
	}
	if rd.ReadStates != nil {
		out.ReadStates = make([]readState, len(rd.ReadStates))
		for i, rs := range rd.ReadStates {
			out.ReadStates[i] = readState(rs)
		}
	}
	return out
}

func toUpstreamReady(rd ready) raft.Ready {
	out := raft.Ready{
		HardState:        rd.HardState,
		Entries:          rd.Entries,
		Snapshot:         rd.Snapshot,
		CommittedEntries: rd.CommittedEntries,
		Messages:         rd.Messages,
		MustSync:         rd.MustSync,
	}
	if ss := rd.SoftState; ss != nil {
		out.SoftState = &raft.SoftState{Lead: ss.Lead, RaftState: raft.StateType(ss.RaftState)}
	}
	if rd.ReadStates != nil {
		out.ReadStates = make([]raft.ReadState, len(rd.ReadStates))
		for i, rs := range rd.ReadStates {
			out.ReadStates[i] = raft.ReadState(rs)
		}
	}
	return out
}

func fromUpstreamBasic(s raft.BasicStatus) status {
	return status{
		ID:             s.ID,
		HardState:      s.HardState,
		SoftState:      softState{Lead: s.Lead, RaftState: uint64(s.RaftState)},
		Applied:        s.Applied,
		LeadTransferee: s.LeadTransferee,
	}
}

func fromUpstreamStatus(s raft.Status) status {
	out := fromUpstreamBasic(s.BasicStatus)
	out.Config, out.Progress = s.Config, s.Progress
	return out
}

type upstreamNode struct{ raft.Node }

func (n upstreamNode) tryReady() (ready, bool) {
	select {
	case rd := <-n.Ready():
		return fromUpstreamReady(rd), true
	default:
		return ready{}, false
	}
}

func (n upstreamNode) reportSnapshot(id uint64, st int) {
	n.ReportSnapshot(id, raft.SnapshotStatus(st))
}

func (n upstreamNode) status() status { return fromUpstreamStatus(n.Status()) }

func (upstream) describeReady(rd ready, f formatter) string {
	return raft.DescribeReady(toUpstreamReady(rd), raft.EntryFormatter(f))
}

func (upstream) describeMessage(m *pb.Message, f formatter) string {
	return raft.DescribeMessage(m, raft.EntryFormatter(f))
}

func (upstream) describeEntry(e *pb.Entry, f formatter) string {
	return raft.DescribeEntry(e, raft.EntryFormatter(f))
}

func (upstream) describeEntries(ents []*pb.Entry, f formatter) string {
	return raft.DescribeEntries(ents, raft.EntryFormatter(f))
}

func (upstream) describeSoftState(s softState) string {
	return raft.DescribeSoftState(raft.SoftState{Lead: s.Lead, RaftState: raft.StateType(s.RaftState)})
}

func (upstream) describeState(s uint64) (string, []byte) {
	defer func() { _ = recover() }() // upstream knows no name for numbers that are no state
	st := raft.StateType(s)
	json, _ := st.MarshalJSON() // neither library returns an error here
	return st.String(), json
}

func (upstream) describeHardState(hs *pb.HardState) string      { return raft.DescribeHardState(hs) }
func (upstream) describeConfState(cs *pb.ConfState) string      { return raft.DescribeConfState(cs) }
func (upstream) describeConfChange(cc pb.ConfChangeI) string    { return raft.DescribeConfChange(cc) }
func (upstream) describeSnapshot(s *pb.Snapshot) string         { return raft.DescribeSnapshot(s) }
func (upstream) mustSync(st, prev *pb.HardState, ents int) bool { return raft.MustSync(st, prev, ents) }
func (upstream) isEmptyHardState(hs *pb.HardState) bool         { return raft.IsEmptyHardState(hs) }
func (upstream) isEmptySnap(s *pb.Snapshot) bool                { return raft.IsEmptySnap(s) }
func (upstream) isLocalMsg(t pb.MessageType) bool               { return raft.IsLocalMsg(t) }
func (upstream) isResponseMsg(t pb.MessageType) bool            { return raft.IsResponseMsg(t) }
func (upstream) isLocalMsgTarget(id uint64) bool                { return raft.IsLocalMsgTarget(id) }
