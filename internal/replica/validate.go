// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3/confchange"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// Messages are checked before they reach a core. Weft's core checks for itself; upstream's
// core panics at some of the faults below, and no peer may be able to cause a panic.

// fromPeers are the types of Raft messages that may come from the network by
// themselves. Proposals, transfers and snapshots have bodies of their own.
var fromPeers = map[pb.MessageType]bool{
	pb.MsgApp: true, pb.MsgAppResp: true,
	pb.MsgVote: true, pb.MsgVoteResp: true, pb.MsgPreVote: true, pb.MsgPreVoteResp: true,
	pb.MsgHeartbeat: true, pb.MsgHeartbeatResp: true,
	pb.MsgReadIndex: true, pb.MsgReadIndexResp: true, pb.MsgTimeoutNow: true,
}

// checkRaft reports what is wrong with a message by itself.
func checkRaft(from, to uint64, m *pb.Message) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %v from node %d: %s", ErrBadMessage, m.GetType(), from, fmt.Sprintf(format, args...))
	}
	typ, units := m.GetType(), wire.AboutUnits(m)
	known := fromPeers[typ] || units || wire.AboutLeases(m)
	termless := known && !fromPeers[typ]
	switch {
	case !known:
		return bad("this type does not come from peers")
	case m.GetFrom() != from || m.GetTo() != to:
		return bad("it says that it goes from %d to %d", m.GetFrom(), m.GetTo())
	case m.GetTerm() == 0 && typ != pb.MsgReadIndex && !termless:
		return bad("it has no term")
	case termless && (m.GetTerm() != 0 || slices.Contains(m.Entries, nil)):
		return bad("it has term %d and %d entries, want no term, and none that is missing", m.GetTerm(), len(m.Entries))
	case m.GetTerm() == math.MaxUint64:
		return bad("no term can follow %d", m.GetTerm())
	case len(m.Responses) > 0 || !raft.IsEmptySnap(m.Snapshot):
		return bad("it carries what this type does not have")
	}
	switch typ {
	case pb.MsgApp:
		return checkAppended(m, bad)
	case pb.MsgReadIndex, pb.MsgReadIndexResp:
		if len(m.Entries) != 1 || m.Entries[0] == nil {
			return bad("it has %d contexts, want 1", len(m.Entries))
		}
	case pb.MsgHeartbeatResp:
		if n := len(m.Context); n != 0 && n != 8 {
			return bad("it has a context of %d bytes, want none or 8", n)
		}
	}
	if typ != pb.MsgReadIndex && typ != pb.MsgReadIndexResp && !units && len(m.Entries) > 0 {
		return bad("it carries entries")
	}
	return nil
}

// checkAppended reports what is wrong with the entries of a MsgApp.
func checkAppended(m *pb.Message, bad func(string, ...any) error) error {
	if m.GetIndex() > math.MaxUint64-uint64(len(m.Entries))-1 {
		return bad("no entries can follow index %d", m.GetIndex())
	}
	term := m.GetLogTerm()
	if term > m.GetTerm() {
		return bad("it follows an entry of term %d, later than its own, %d", term, m.GetTerm())
	}
	for i, e := range m.Entries {
		want := m.GetIndex() + 1 + uint64(i)
		switch {
		case e == nil:
			return bad("entry %d of %d is missing", i+1, len(m.Entries))
		case e.GetIndex() != want:
			return bad("entry %d of %d has index %d, want %d", i+1, len(m.Entries), e.GetIndex(), want)
		case e.GetTerm() < term || e.GetTerm() > m.GetTerm() || e.GetTerm() == 0:
			return bad("entry %d of %d has term %d, want %d to %d", i+1, len(m.Entries), e.GetTerm(), max(term, 1), m.GetTerm())
		}
		term = e.GetTerm()
	}
	return nil
}

// checkSnapshot reports the fault of a MsgSnap, and returns the host's state inside.
func checkSnapshot(from, to uint64, m *pb.Message) (*hostState, error) {
	bad := func(format string, args ...any) (*hostState, error) {
		return nil, fmt.Errorf("%w: snapshot from node %d: %s", ErrBadMessage, from, fmt.Sprintf(format, args...))
	}
	meta := m.GetSnapshot().GetMetadata()
	switch {
	case m.GetType() != pb.MsgSnap || m.GetFrom() != from || m.GetTo() != to:
		return bad("it is a %v from %d to %d", m.GetType(), m.GetFrom(), m.GetTo())
	case len(m.Entries) > 0 || len(m.Responses) > 0:
		return bad("it carries what this type does not have")
	case meta.GetIndex() == 0 || meta.GetTerm() == 0 || meta.GetTerm() > m.GetTerm() || m.GetTerm() == math.MaxUint64:
		return bad("it is of index %d, term %d, and was sent in term %d", meta.GetIndex(), meta.GetTerm(), m.GetTerm())
	}
	h, err := decodeHostState(m.GetSnapshot().GetData())
	if err != nil {
		return bad("%v", err)
	}
	if h.at != (logMark{term: meta.GetTerm(), index: meta.GetIndex()}) || h.conf.Equivalent(meta.GetConfState()) != nil {
		return bad("the host's state in it is of index %d, term %d, %v", h.at.index, h.at.term, h.conf)
	}
	t := tracker.MakeProgressTracker(1, 0)
	if _, _, err := confchange.Restore(confchange.Changer{Tracker: t, LastIndex: meta.GetIndex()}, h.conf); err != nil {
		return bad("its configuration %v is impossible: %v", h.conf, err)
	}
	return h, nil
}
