// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"strconv"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft/internal/electorate"
)

// The Describe functions write protocol state for people. Their texts are part
// of the API: hosts print them and tests compare them.

// EntryFormatter renders an entry's payload. nil means as a quoted string.
type EntryFormatter func([]byte) string

// DescribeHardState describes a hard state; a vote for nobody is left out.
func DescribeHardState(hs *pb.HardState) string {
	vote := ""
	if v := hs.GetVote(); v != None {
		vote = fmt.Sprintf(" Vote:%d", v)
	}
	return fmt.Sprintf("Term:%d%s Commit:%d", hs.GetTerm(), vote, hs.GetCommit())
}

// DescribeSoftState describes a soft state.
func DescribeSoftState(ss SoftState) string {
	return "Lead:" + strconv.FormatUint(ss.Lead, 10) + " State:" + ss.RaftState.String()
}

// DescribeConfState describes a configuration.
func DescribeConfState(state *pb.ConfState) string {
	return fmt.Sprintf("Voters:%v VotersOutgoing:%v Learners:%v LearnersNext:%v AutoLeave:%v",
		state.GetVoters(), state.GetVotersOutgoing(), state.GetLearners(), state.GetLearnersNext(), state.GetAutoLeave())
}

// DescribeSnapshot describes a snapshot without its data.
func DescribeSnapshot(snap *pb.Snapshot) string {
	id := snapshotID(snap)
	return fmt.Sprintf("Index:%d Term:%d ConfState:%s", id.Index, id.Term, DescribeConfState(snap.GetMetadata().GetConfState()))
}

// DescribeMessage describes a message, on one line if there is at most one entry.
func DescribeMessage(m *pb.Message, f EntryFormatter) string {
	var b strings.Builder
	describeMessage(&b, "", m, f)
	return b.String()
}

func describeMessage(b *strings.Builder, indent string, m *pb.Message, f EntryFormatter) {
	put := func(format string, args ...any) { fmt.Fprintf(b, format, args...) }
	put("%s%s->%s %v Term:%d Log:%d/%d", indent, describeNode(m.GetFrom()), describeNode(m.GetTo()),
		m.GetType(), m.GetTerm(), m.GetLogTerm(), m.GetIndex())
	if m.GetReject() {
		put(" Rejected (Hint: %d)", m.GetRejectHint())
	}
	if c := m.GetCommit(); c != 0 {
		put(" Commit:%d", c)
	}
	if v := m.GetVote(); v != None {
		put(" Vote:%d", v)
	}
	switch ents := m.GetEntries(); len(ents) {
	case 0:
	case 1:
		put(" Entries:[%s]", DescribeEntry(ents[0], f))
	default:
		put(" Entries:[")
		for _, e := range ents {
			put("\n%s  %s", indent, DescribeEntry(e, f))
		}
		put("\n%s]", indent)
	}
	if s := m.GetSnapshot(); !IsEmptySnap(s) {
		put("\n%s  Snapshot: %s", indent, DescribeSnapshot(s))
	}
	if rs := m.GetResponses(); len(rs) > 0 {
		put(" Responses:[")
		for _, r := range rs {
			put("\n")
			describeMessage(b, indent+"  ", r, f)
		}
		put("\n%s]", indent)
	}
}

// nodeNames are senders and targets other than members.
var nodeNames = map[uint64]string{None: "None", LocalAppendThread: "AppendThread", LocalApplyThread: "ApplyThread"}

func describeNode(id uint64) string {
	if name, ok := nodeNames[id]; ok {
		return name
	}
	return strconv.FormatUint(id, 16)
}

// DescribeEntry describes an entry: term, index, type, and its payload or, for
// a configuration change, the changes.
func DescribeEntry(e *pb.Entry, f EntryFormatter) string {
	text := describePayload(e, f)
	if text != "" {
		text = " " + text
	}
	return fmt.Sprintf("%v %s%s", idOf(e), e.GetType(), text)
}

func describePayload(e *pb.Entry, f EntryFormatter) string {
	switch {
	case electorate.IsChange(e):
		cc, err := electorate.Unmarshal(e)
		if err != nil {
			return err.Error()
		}
		return pb.ConfChangesToString(cc.Changes)
	case e.GetType() != pb.EntryNormal:
		return ""
	case f != nil:
		return f(e.GetData())
	default:
		return strconv.Quote(string(e.GetData()))
	}
}

// DescribeEntries describes entries, each on a line.
func DescribeEntries(ents []*pb.Entry, f EntryFormatter) string {
	var b strings.Builder
	for _, e := range ents {
		b.WriteString(DescribeEntry(e, f) + "\n")
	}
	return b.String()
}

// DescribeConfChange describes a configuration change, the same way on every
// platform and in every build.
func DescribeConfChange(cc pb.ConfChangeI) string {
	v2 := cc.AsV2()
	var b strings.Builder
	fmt.Fprintf(&b, "transition:%v", v2.GetTransition())
	for _, c := range v2.GetChanges() {
		fmt.Fprintf(&b, " changes:{type:%v node_id:%d}", c.GetType(), c.GetNodeId())
	}
	if ctx := v2.GetContext(); len(ctx) > 0 {
		fmt.Fprintf(&b, " context:%q", ctx)
	}
	return b.String()
}
