// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"strconv"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// tellMessage adds a line about a message that reached a node, or did not.
func (s *sim) tellMessage(node uint64, verb string, m *pb.Message) {
	s.story.Write(node, func(line []byte) []byte { return appendMessage(append(line, verb...), m) })
}

// appendMessage appends the fields of a message that are set, in a few
// characters each.
func appendMessage(b []byte, m *pb.Message) []byte {
	number := func(before string, n uint64) { b = strconv.AppendUint(append(b, before...), n, 10) }
	number(" ", m.GetFrom())
	number(">", m.GetTo())
	b = append(append(b, ' '), typeName(m.GetType())...)
	number(" t", m.GetTerm())
	if m.Index != nil || m.LogTerm != nil {
		number(" at ", m.GetIndex())
		number("/", m.GetLogTerm())
	}
	if n := len(m.GetEntries()); n > 0 {
		number(" +", uint64(n))
	}
	if m.GetCommit() != 0 {
		number(" c", m.GetCommit())
	}
	if m.GetReject() {
		b = fmt.Appendf(b, " reject hint %d", m.GetRejectHint())
	}
	if s := m.GetSnapshot(); s != nil {
		b = fmt.Appendf(b, " snap %d/%d", s.GetMetadata().GetIndex(), s.GetMetadata().GetTerm())
	}
	if m.GetType() == raft.MsgLeases {
		b = appendLeases(b, m.GetContext())
	}
	return b
}

// typeName returns the name of a message type without its beginning.
func typeName(t pb.MessageType) string {
	switch t {
	case raft.MsgUnits:
		return "Units"
	case raft.MsgUnitsAsk:
		return "UnitsAsk"
	case raft.MsgLeases:
		return "Leases"
	}
	return pb.MessageType_name[int32(t)][3:]
}
