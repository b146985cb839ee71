// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"strconv"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

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

// appendLeases appends the text of a message of leases.
func appendLeases(b, context []byte) []byte {
	switch context[0] {
	case 'l':
		if q, err := leases.ParseMessage(context[1:]); err == nil {
			return appendLeasesMessage(b, &q)
		}
	case 'n':
		if x, err := leases.ParseNote(context[1:]); err == nil {
			return fmt.Appendf(b, " note %v", x)
		}
	}
	return b
}

func appendLeasesMessage(b []byte, q *leases.Message) []byte {
	number := func(before string, n uint64) { b = strconv.AppendUint(append(b, before...), n, 10) }
	nonce := func(before string, x leases.Nonce) {
		b = strconv.AppendUint(append(b, before...), uint64(x.Boot), 16)
		number("/", x.Counter)
	}
	number(" t", uint64(q.Term))
	nonce(" ask ", q.Request)
	nonce(" answer {", q.Answer.Nonce)
	b = append(append(b, ' '), q.Answer.For.String()...)
	number(" ", uint64(q.Answer.Seq))
	nonce("} revoke ", q.Revoke)
	nonce(" confirm ", q.Confirm)
	number(" report {", uint64(q.Report.Known))
	number(" ", uint64(q.Report.Adopted))
	number("} news {", uint64(q.News.Newest))
	number(" ", uint64(q.News.Least))
	number("} rosters ", uint64(len(q.Lists)))
	return b
}
