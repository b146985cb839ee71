// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A leader refuses a proposal that would take many times its size to read, and does not
// read it first: once the proposal is in the log, every member must.
func TestProposalThatWouldTakeTooMuchMemoryIsRefused(t *testing.T) {
	const parts = 4 << 20
	id := wire.CommandID{Origin: 2, Boot: 1, Sequence: 1}
	batch := encodeBatch(id, 1, make([][]byte, 2))
	batch = binary.AppendUvarint(batch[:len(batch)-3], parts) // the count, and two empty commands
	batch = append(batch, make([]byte, parts)...)
	change := bytes.Repeat([]byte{8*2 + 2, 0}, parts)

	for want, p := range map[string]wire.Proposal{
		"a batch of 4194304 commands, the bound is 1048576": {ID: id, Data: batch},
		"4194304 changes at once, the bound is 65536":       {ID: id, Data: change, ConfChange: true},
	} {
		c := newCluster(t, Weft, 1, 2, 3)
		r := c.elect(1).r
		p.Number, p.Term = 1, r.state.Term
		bad := r.count.BadMessages
		var err error
		took := allocated(func() { err = r.Receive(wire.Message{Group: 7, From: 2, To: 1, Body: p}) })
		require.ErrorIs(t, err, ErrBadMessage)
		require.ErrorContains(t, err, want)
		require.Less(t, took, uint64(64<<10))
		require.Equal(t, bad+1, r.count.BadMessages)
		sends := r.Flush(c.now).Sends
		v, ok := sends[len(sends)-1].Body.(wire.Verdict)
		require.True(t, ok)
		require.Equal(t, wire.Malformed, v.Outcome)
		require.Contains(t, v.Reason, want)
	}
}

// An origin makes no batch that a leader would refuse for its number of commands.
func TestBatchesHaveABoundedNumberOfCommands(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	n := c.nodes[2]
	n.r.outbox.maxCommands = 10
	for range 25 {
		c.propose(2, "")
	}
	c.settle()
	require.Equal(t, uint64(3), n.r.count.Batches)
	c.run(1)
	require.Len(t, c.agree(), 25)
}

// A message with more entries than a receiver takes leaves as several.
func TestMessageOfVeryManyEntriesLeavesAsSeveral(t *testing.T) {
	const first, n = 100, 2*wire.MaxEntries + 7
	c := newCluster(t, Weft, 1, 2, 3)
	r := c.elect(1).r
	m := received(pb.MsgApp, func(m *pb.Message) {
		m.From, m.To, m.Term, m.LogTerm, m.Index, m.Commit = new(uint64(1)), new(uint64(2)), new(uint64(9)), new(uint64(3)), new(uint64(first-1)), new(uint64(50))
		for i := range uint64(n) {
			m.Entries = append(m.Entries, &pb.Entry{Term: new(3 + i/1000), Index: new(first + i)})
		}
	}).Body.(wire.Raft).Message
	r.out = Output{}
	r.send(m)
	require.Len(t, r.out.Sends, 3)
	index, term := uint64(first-1), uint64(3)
	for _, s := range r.out.Sends {
		part := s.Body.(wire.Raft)
		require.LessOrEqual(t, len(part.Entries), wire.MaxEntries)
		require.Equal(t, index, part.GetIndex())
		require.Equal(t, term, part.GetLogTerm())
		require.Equal(t, uint64(50), part.GetCommit())
		last := part.Entries[len(part.Entries)-1]
		index, term = last.GetIndex(), last.GetTerm()
	}
	require.Equal(t, uint64(first+n-1), index)
}

// What waits for a turn counts with all its bytes, whatever the message is: a query of a gateway, or what no correct member
// sends and a replica refuses.
func TestMessageCountsWithAllItsBytes(t *testing.T) {
	const size, objects = 1 << 20, 1 << 16
	big := make([]byte, size)
	unknown := &pb.Message{}
	unknown.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 2000, protowire.BytesType), big))
	entry := &pb.Entry{}
	entry.ProtoReflect().SetUnknown(unknown.ProtoReflect().GetUnknown())
	responses := &pb.Message{}
	for range objects / 8 {
		responses.Responses = append(responses.Responses, &pb.Message{})
	}
	for name, body := range map[string]wire.Body{
		"a query":                   wire.Query{Data: big},
		"the keys of a query":       wire.Query{Spans: big},
		"a reply":                   wire.Reply{Data: big},
		"a report":                  wire.Report{Entries: []wire.EntryResults{{Results: []wire.CommandResult{{Data: big}}}}},
		"a note":                    wire.Note{Data: big},
		"a want":                    wire.Want{Entries: make([]wire.EntryAt, objects)},
		"a fill without data":       wire.Fill{Data: make([][]byte, objects)},
		"names":                     wire.Named{Raft: wire.Raft{Message: &pb.Message{}}, Names: make([]wire.Name, objects)},
		"a snapshot in a heartbeat": wire.Raft{Message: &pb.Message{Snapshot: &pb.Snapshot{Data: big}}},
		"an unknown field":          wire.Raft{Message: unknown},
		"one of an entry":           wire.Raft{Message: &pb.Message{Entries: []*pb.Entry{entry}}},
		"responses":                 wire.Raft{Message: responses},
	} {
		require.GreaterOrEqual(t, MemoryOf(wire.Message{Body: body}), size, name)
	}
}
