// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// paperGroup is a group whose messages wait until a test delivers them. Node 1
// is the node under test in most.
type paperGroup struct {
	t     *testing.T
	nodes map[uint64]*paperNode
	wire  []*pb.Message // sent and not yet delivered, in order
}

// paperNode is one node: its state machine of Raft, its disk, what it applied.
type paperNode struct {
	*raft.RawNode
	disk    *raft.MemoryStorage
	applied []string
	reads   []raft.ReadState
}

// least draws the least election timeout: 10 ticks at every node.
type least struct{}

func (least) IntN(int) int { return 0 }

// paper starts the voters 1 to n, each with a snapshot at index 1, term 1.
func paper(t *testing.T, n uint64, edit ...func(*raft.Config)) *paperGroup {
	g := &paperGroup{t: t, nodes: map[uint64]*paperNode{}}
	cs := &pb.ConfState{}
	for id := uint64(1); id <= n; id++ {
		cs.Voters = append(cs.Voters, id)
	}
	for id := uint64(1); id <= n; id++ {
		g.start(id, cs, edit...)
	}
	return g
}

func (g *paperGroup) start(id uint64, cs *pb.ConfState, edit ...func(*raft.Config)) *paperNode {
	disk := raft.NewMemoryStorage()
	require.NoError(g.t, disk.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: cs}}))
	require.NoError(g.t, disk.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}))
	n := &paperNode{disk: disk}
	g.nodes[id] = n
	g.boot(id, edit...)
	return n
}

// boot starts a node from its disk: at first, and after a crash.
func (g *paperGroup) boot(id uint64, edit ...func(*raft.Config)) {
	c := config(g.nodes[id].disk)
	c.ID, c.Rand = id, least{}
	for _, e := range edit {
		e(c)
	}
	g.nodes[id].RawNode = newNode(g.t, c)
}

// work has every node write, send and apply what it can.
func (g *paperGroup) work() {
	for id := uint64(1); id <= uint64(len(g.nodes)); id++ {
		n := g.nodes[id]
		for n.HasReady() {
			rd := n.Ready()
			if rd.Snapshot != nil {
				require.NoError(g.t, n.disk.ApplySnapshot(rd.Snapshot))
				n.applied = append(n.applied, "snapshot "+string(rd.Snapshot.GetData()))
			}
			if rd.HardState != nil {
				require.NoError(g.t, n.disk.SetHardState(rd.HardState))
			}
			require.NoError(g.t, n.disk.Append(rd.Entries))
			g.wire = append(g.wire, rd.Messages...)
			n.reads = append(n.reads, rd.ReadStates...)
			for _, e := range rd.CommittedEntries {
				switch {
				case e.GetType() == pb.EntryConfChangeV2:
					cc := &pb.ConfChangeV2{}
					require.NoError(g.t, proto.Unmarshal(e.GetData(), cc))
					n.ApplyConfChange(cc)
				case len(e.GetData()) > 0:
					n.applied = append(n.applied, string(e.GetData()))
				}
			}
			n.Advance(rd)
		}
	}
}

// deliver delivers messages until none is left, but those that lose says are
// lost. What was lost is gone.
func (g *paperGroup) deliver(lose ...func(m *pb.Message) bool) {
	for g.work(); len(g.wire) > 0; g.work() {
		m := g.wire[0]
		g.wire = g.wire[1:]
		lost := g.nodes[m.GetTo()] == nil
		for _, l := range lose {
			lost = lost || l(m)
		}
		if !lost {
			_ = g.nodes[m.GetTo()].Step(m) // some tests deliver what must be refused
		}
	}
}

// cut loses everything to and from the nodes.
func cut(ids ...uint64) func(m *pb.Message) bool {
	return func(m *pb.Message) bool {
		for _, id := range ids {
			if m.GetFrom() == id || m.GetTo() == id {
				return true
			}
		}
		return false
	}
}

// only loses everything but messages of some types.
func only(types ...pb.MessageType) func(m *pb.Message) bool {
	return func(m *pb.Message) bool {
		for _, t := range types {
			if m.GetType() == t {
				return false
			}
		}
		return true
	}
}

func (g *paperGroup) tick(id uint64, n int) {
	for range n {
		g.nodes[id].Tick()
	}
}

// elect has a node win an election, heard by all but those that are cut off.
func (g *paperGroup) elect(id uint64, lose ...func(m *pb.Message) bool) {
	g.t.Helper()
	require.NoError(g.t, g.nodes[id].Campaign())
	g.deliver(lose...)
	require.Equal(g.t, raft.StateLeader, g.role(id))
}

func (g *paperGroup) propose(id uint64, command string) {
	g.t.Helper()
	require.NoError(g.t, g.nodes[id].Propose([]byte(command)))
}

func (g *paperGroup) change(id uint64, cc *pb.ConfChangeV2) {
	g.t.Helper()
	require.NoError(g.t, g.nodes[id].ProposeConfChange(cc))
}

func (g *paperGroup) role(id uint64) raft.StateType { return g.nodes[id].BasicStatus().RaftState }
func (g *paperGroup) term(id uint64) uint64         { return g.nodes[id].BasicStatus().GetTerm() }
func (g *paperGroup) vote(id uint64) uint64         { return g.nodes[id].BasicStatus().GetVote() }
func (g *paperGroup) commit(id uint64) uint64       { return g.nodes[id].BasicStatus().GetCommit() }

// log returns a node's log on disk as "index/term", behind the snapshot.
func (g *paperGroup) log(id uint64) (out []string) {
	disk := g.nodes[id].disk
	first, _ := disk.FirstIndex()
	last, _ := disk.LastIndex()
	for i := first; i <= last; i++ {
		term, err := disk.Term(i)
		require.NoError(g.t, err)
		out = append(out, fmt.Sprintf("%d/%d", i, term))
	}
	return out
}

// sent removes and returns the messages of a type that wait.
func (g *paperGroup) sent(typ pb.MessageType) (out []*pb.Message) {
	g.work()
	rest := g.wire[:0:0]
	for _, m := range g.wire {
		if m.GetType() == typ {
			out = append(out, m)
		} else {
			rest = append(rest, m)
		}
	}
	g.wire = rest
	return out
}

// say has node 1 hear a message; what is not given is absent.
func (g *paperGroup) say(typ pb.MessageType, from, term uint64, rest ...func(*pb.Message)) {
	g.t.Helper()
	m := &pb.Message{Type: typ.Enum(), From: new(from), To: new(uint64(1)), Term: new(term)}
	for _, r := range rest {
		r(m)
	}
	require.NoError(g.t, g.nodes[1].Step(m))
	g.work()
}

// behind says which entry a message's entries follow, or a candidate's log ends with.
func behind(index, term uint64) func(*pb.Message) {
	return func(m *pb.Message) { m.Index, m.LogTerm = new(index), new(term) }
}

// entries adds entries of these terms.
func entries(terms ...uint64) func(*pb.Message) {
	return func(m *pb.Message) {
		for i, term := range terms {
			m.Entries = append(m.Entries, &pb.Entry{Index: new(m.GetIndex() + 1 + uint64(i)), Term: new(term)})
		}
	}
}

func committing(index uint64) func(*pb.Message) {
	return func(m *pb.Message) { m.Commit = new(index) }
}
