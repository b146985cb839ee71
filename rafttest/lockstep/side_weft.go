// Code generated from side_upstream.go; DO NOT EDIT.

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"errors"

	"github.com/weftraft/weft/raft"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// weft is Weft's library. This file is made from side_upstream.go: see the
// go:generate line of side.go.
type weft struct{}

func (weft) name() string       { return "weft" }
func (weft) setLogger(l logger) { raft.SetLogger(l) }
func (weft) newMemory() memory  { return raft.NewMemoryStorage() }

func (weft) newCore(c config) (core, error) {
	rn, err := raft.NewRawNode(weftConfig(c))
	if err != nil {
		return nil, err
	}
	return weftCore{rn}, nil
}

func (weft) startNode(c config, peers []peer) node {
	return weftNode{raft.StartNode(weftConfig(c), weftPeers(peers))}
}

func (weft) restartNode(c config) node {
	return weftNode{raft.RestartNode(weftConfig(c))}
}

func weftConfig(c config) *raft.Config {
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

func weftPeers(peers []peer) []raft.Peer {
	out := make([]raft.Peer, len(peers))
	for i, p := range peers {
		out[i] = raft.Peer(p)
	}
	return out
}

var weftSentinels = []struct {
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

func (weft) sentinel(err error) string {
	for _, s := range weftSentinels {
		switch {
		case err == s.err: //nolint:errorlint // hosts compare with == too, so identity is part of the behaviour
			return s.name
		case errors.Is(err, s.err):
			return "wrapped " + s.name
		}
	}
	return ""
}

func (weft) errSnapshotLater() error { return raft.ErrSnapshotTemporarilyUnavailable }

type weftCore struct{ *raft.RawNode }

func (c weftCore) bootstrap(peers []peer) error {
	return c.Bootstrap(weftPeers(peers))
}

func (c weftCore) reportSnapshot(id uint64, st int) {
	c.ReportSnapshot(id, raft.SnapshotStatus(st))
}

func (c weftCore) ready() ready        { return fromWeftReady(c.Ready()) }
func (c weftCore) advance()            { c.Advance(raft.Ready{}) }
func (c weftCore) status() status      { return fromWeftStatus(c.Status()) }
func (c weftCore) basicStatus() status { return fromWeftBasic(c.BasicStatus()) }
func (c weftCore) statusText() string  { return c.Status().String() }

func (c weftCore) withProgress(visit func(id uint64, typ byte, pr tracker.Progress)) {
	c.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) { visit(id, byte(typ), pr) })
}

func fromWeftReady(rd raft.Ready) ready {
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

func toWeftReady(rd ready) raft.Ready {
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

func fromWeftBasic(s raft.BasicStatus) status {
	return status{
		ID:             s.ID,
		HardState:      s.HardState,
		SoftState:      softState{Lead: s.Lead, RaftState: uint64(s.RaftState)},
		Applied:        s.Applied,
		LeadTransferee: s.LeadTransferee,
	}
}

func fromWeftStatus(s raft.Status) status {
	out := fromWeftBasic(s.BasicStatus)
	out.Config, out.Progress = s.Config, s.Progress
	return out
}

type weftNode struct{ raft.Node }

func (n weftNode) tryReady() (ready, bool) {
	select {
	case rd := <-n.Ready():
		return fromWeftReady(rd), true
	default:
		return ready{}, false
	}
}

func (n weftNode) reportSnapshot(id uint64, st int) {
	n.ReportSnapshot(id, raft.SnapshotStatus(st))
}

func (n weftNode) status() status { return fromWeftStatus(n.Status()) }

func (weft) describeReady(rd ready, f formatter) string {
	return raft.DescribeReady(toWeftReady(rd), raft.EntryFormatter(f))
}

func (weft) describeMessage(m *pb.Message, f formatter) string {
	return raft.DescribeMessage(m, raft.EntryFormatter(f))
}

func (weft) describeEntry(e *pb.Entry, f formatter) string {
	return raft.DescribeEntry(e, raft.EntryFormatter(f))
}

func (weft) describeEntries(ents []*pb.Entry, f formatter) string {
	return raft.DescribeEntries(ents, raft.EntryFormatter(f))
}

func (weft) describeSoftState(s softState) string {
	return raft.DescribeSoftState(raft.SoftState{Lead: s.Lead, RaftState: raft.StateType(s.RaftState)})
}

func (weft) describeState(s uint64) (string, []byte) {
	defer func() { _ = recover() }() // upstream knows no name for numbers that are no state
	st := raft.StateType(s)
	json, _ := st.MarshalJSON() // neither library returns an error here
	return st.String(), json
}

func (weft) describeHardState(hs *pb.HardState) string      { return raft.DescribeHardState(hs) }
func (weft) describeConfState(cs *pb.ConfState) string      { return raft.DescribeConfState(cs) }
func (weft) describeConfChange(cc pb.ConfChangeI) string    { return raft.DescribeConfChange(cc) }
func (weft) describeSnapshot(s *pb.Snapshot) string         { return raft.DescribeSnapshot(s) }
func (weft) mustSync(st, prev *pb.HardState, ents int) bool { return raft.MustSync(st, prev, ents) }
func (weft) isEmptyHardState(hs *pb.HardState) bool         { return raft.IsEmptyHardState(hs) }
func (weft) isEmptySnap(s *pb.Snapshot) bool                { return raft.IsEmptySnap(s) }
func (weft) isLocalMsg(t pb.MessageType) bool               { return raft.IsLocalMsg(t) }
func (weft) isResponseMsg(t pb.MessageType) bool            { return raft.IsResponseMsg(t) }
func (weft) isLocalMsgTarget(id uint64) bool                { return raft.IsLocalMsgTarget(id) }
