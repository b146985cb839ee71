// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// group is a few nodes that code, without time: messages are delivered until
// there are none.
type group struct {
	t     testing.TB
	nodes map[uint64]*codingNode
	down  map[uint64]bool
	drop  func(m *pb.Message) bool
	// stepped hears of each message that a node has taken, before its host does
	// anything about it.
	stepped func(m *pb.Message)
	events  map[raft.CodingEventKind]int
	policy  func() ecraft.Policy
	memory  int         // of each node; 0: the default
	gap     int         // of each node's gossip
	prefix  int         // the clear prefix
	logger  raft.Logger // of each node
	// hostChecks is Config.DisableConfChangeValidation.
	hostChecks bool
	// busy hears that a host is asked for a snapshot, and says that it has none yet.
	busy func(id uint64) bool
	// reads hears that a node reads its storage from an entry on.
	reads func(id, lo uint64)
	// reports says that hosts report that snapshots have arrived.
	reports bool
	// late hears that a host is handed a change, and says that the host reports it before it applies it.
	late func(cc *pb.ConfChangeV2) bool
	// again says that a node that starts does not say what its host has applied.
	again bool
}

// slowStorage is the storage of a host that takes its time to make a snapshot.
type slowStorage struct {
	*raft.MemoryStorage
	g  *group
	id uint64
}

func (s slowStorage) Snapshot() (*pb.Snapshot, error) {
	if s.g.busy != nil && s.g.busy(s.id) {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return s.MemoryStorage.Snapshot()
}

func (s slowStorage) Entries(lo, hi, most uint64) ([]*pb.Entry, error) {
	if s.g.reads != nil {
		s.g.reads(s.id, lo)
	}
	return s.MemoryStorage.Entries(lo, hi, most)
}

type codingNode struct {
	id      uint64
	rn      *raft.RawNode
	storage *raft.MemoryStorage
	applied [][]byte
	index   uint64
	conf    *pb.ConfState
	outbox  []*pb.Message
}

func (g *group) RecordCoding(e raft.CodingEvent) { g.events[e.Kind] += max(e.Count, 1) }

func newGroup(t testing.TB, n int) *group {
	g := &group{t: t, nodes: map[uint64]*codingNode{}, down: map[uint64]bool{}, events: map[raft.CodingEventKind]int{}}
	g.policy = func() ecraft.Policy { return ecraft.Levelled{} }
	var voters []uint64
	for i := range n {
		voters = append(voters, uint64(i+1))
	}
	for _, id := range voters {
		g.nodes[id] = &codingNode{id: id, storage: newStorage(t, voters...), index: 1}
		g.start(id)
	}
	return g
}

func (g *group) start(id uint64) {
	n := g.nodes[id]
	c := config(slowStorage{n.storage, g, id})
	if c.ID = id; !g.again {
		c.Applied = n.index
	}
	c.CheckQuorum, c.PreVote, c.DisableConfChangeValidation = true, true, g.hostChecks
	c.Rand = rand.New(rand.NewPCG(id, 1))
	if g.logger != nil {
		c.Logger = g.logger
	}
	c.Coding = &raft.Coding{Threshold: 64, Policy: g.policy(), Recorder: g, Memory: g.memory, GossipGap: g.gap, GossipDelay: g.gap, ClearPrefix: g.prefix}
	n.rn = newNode(g.t, c)
	g.down[id] = false
}

// startPlain starts a node without coding.
func (g *group) startPlain(id uint64) {
	n := g.nodes[id]
	c := config(n.storage)
	c.ID, c.Applied = id, n.index
	c.CheckQuorum, c.PreVote = true, true
	c.Rand = rand.New(rand.NewPCG(id, 1))
	n.rn = newNode(g.t, c)
	g.down[id] = false
}

// stop kills a node; everything it wrote stays.
func (g *group) stop(ids ...uint64) {
	for _, id := range ids {
		g.down[id] = true
	}
}

// settle delivers messages until there are none.
func (g *group) settle() {
	for moved := true; moved; {
		moved = false
		for _, id := range g.ids() {
			n := g.nodes[id]
			if g.down[id] {
				continue
			}
			for n.rn.HasReady() {
				moved = true
				g.handle(n)
			}
			for _, m := range n.outbox {
				if to := g.nodes[m.GetTo()]; to != nil && !g.down[m.GetTo()] && (g.drop == nil || !g.drop(m)) {
					err := to.rn.Step(m)
					if err != nil {
						g.t.Logf("node %d: %v", to.id, err)
					}
					if g.stepped != nil {
						g.stepped(m)
					}
					if g.reports && m.GetType() == pb.MsgSnap {
						n.rn.ReportSnapshot(to.id, raft.SnapshotFinish)
					}
				}
			}
			n.outbox = nil
		}
	}
}

func (g *group) handle(n *codingNode) {
	t := g.t
	rd := n.rn.Ready()
	if !raft.IsEmptySnap(rd.Snapshot) {
		require.NoError(t, n.storage.ApplySnapshot(rd.Snapshot))
		n.index = rd.Snapshot.GetMetadata().GetIndex()
		n.applied = decodeAll(rd.Snapshot.GetData())
	}
	require.NoError(t, n.storage.Append(rd.Entries))
	if !raft.IsEmptyHardState(rd.HardState) {
		require.NoError(t, n.storage.SetHardState(rd.HardState))
	}
	n.outbox = append(n.outbox, rd.Messages...)
	for _, e := range rd.CommittedEntries {
		require.Equal(t, n.index+1, e.GetIndex())
		n.index = e.GetIndex()
		switch e.GetType() {
		case pb.EntryConfChange, pb.EntryConfChangeV2:
			var cc pb.ConfChangeV2
			require.NoError(t, proto.Unmarshal(e.GetData(), &cc)) // all changes here are of version 2
			if g.late == nil || !g.late(&cc) {
				n.conf = n.rn.ApplyConfChange(&cc)
			}
		default:
			if len(e.GetData()) > 0 {
				n.applied = append(n.applied, bytes.Clone(e.GetData()))
			}
		}
	}
	n.rn.Advance(rd)
}

func encodeAll(all [][]byte) []byte { return bytes.Join(all, []byte("|")) }
func decodeAll(b []byte) [][]byte   { return bytes.Split(b, []byte("|")) }

func (g *group) ids() []uint64 {
	var ids []uint64
	for id := range g.nodes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (g *group) tick(n int) {
	for range n {
		for _, id := range g.ids() {
			if !g.down[id] {
				g.nodes[id].rn.Tick()
			}
		}
		g.settle()
	}
}

func (g *group) elect(id uint64) {
	require.NoError(g.t, g.nodes[id].rn.Campaign())
	g.settle()
	require.Equal(g.t, raft.StateLeader, g.nodes[id].rn.BasicStatus().RaftState)
}

// payload returns a payload that is like no other.
func payload(i, size int) []byte {
	b := fmt.Appendf(nil, "payload %d of %d bytes ", i, size)
	return bytes.Repeat(b, size/len(b)+1)[:size]
}

func (g *group) propose(id uint64, data []byte) {
	require.NoError(g.t, g.nodes[id].rn.Propose(data))
	g.settle()
}

func (g *group) requireApplied(want [][]byte, ids ...uint64) {
	g.t.Helper()
	for _, id := range ids {
		require.Equal(g.t, len(want), len(g.nodes[id].applied), "node %d", id)
		for i := range want {
			require.Equal(g.t, want[i], g.nodes[id].applied[i], "node %d, payload %d", id, i)
		}
	}
}

func TestCodedEntriesReachEveryNode(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			g := newGroup(t, n)
			g.elect(1)
			var want [][]byte
			for i := range 20 {
				p := payload(i, 1+i*97)
				want = append(want, p)
				g.propose(1, p)
			}
			g.tick(2)
			g.requireApplied(want, g.ids()...)
			if n > 2 {
				require.NotZero(t, g.events[raft.CodingEncoded])
				require.NotZero(t, g.events[raft.CodingPushed])
				require.Zero(t, g.events[raft.CodingAsked])
			}
			t.Log(g.events)
		})
	}
}

func TestCodedEntriesSurviveTheLeader(t *testing.T) {
	for _, n := range []int{3, 4, 5, 7} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			g := newGroup(t, n)
			g.elect(1)
			var want [][]byte
			for i := range 10 {
				p := payload(i, 1000+i)
				want = append(want, p)
				if i == 5 { // from here on no gossip, and nobody hears of commits
					g.drop = func(m *pb.Message) bool {
						return m.GetType() == raft.MsgUnits || m.GetType() == pb.MsgApp && len(m.GetEntries()) == 0
					}
				}
				g.propose(1, p)
			}
			g.requireApplied(want, 1)
			dead := []uint64{1}
			for f := (n - 1) / 2; len(dead) < f; {
				dead = append(dead, uint64(1+len(dead)))
			}
			g.stop(dead...)
			g.drop = nil
			g.tick(40)
			last := g.nodes[uint64(n)]
			lead := last.rn.BasicStatus().Lead
			require.NotZero(t, lead)
			p := payload(99, 2000)
			want = append(want, p)
			g.propose(lead, p)
			g.tick(20)
			for _, id := range g.ids() {
				if !g.down[id] {
					g.requireApplied(want, id)
				}
			}
			require.NotZero(t, g.events[raft.CodingRecovery])
			for _, id := range dead {
				g.start(id)
			}
			g.tick(30)
			g.requireApplied(want, g.ids()...)
			t.Log(g.events)
		})
	}
}

// compact drops the log of a node up to index, with the state there as its
// snapshot.
func (g *group) compact(id, index uint64) {
	n := g.nodes[id]
	_, cs, err := n.storage.InitialState()
	require.NoError(g.t, err)
	_, err = n.storage.CreateSnapshot(index, cs, encodeAll(n.applied))
	require.NoError(g.t, err)
	require.NoError(g.t, n.storage.Compact(index))
}

// change proposes a configuration change of version 2.
func (g *group) change(id uint64, changes ...*pb.ConfChangeSingle) {
	cc := &pb.ConfChangeV2{Changes: changes}
	require.NoError(g.t, g.nodes[id].rn.ProposeConfChange(cc))
	g.settle()
}

func remove(id uint64) *pb.ConfChangeSingle {
	return &pb.ConfChangeSingle{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: &id}
}

// TestFiveToThreeRaisesWhatIsCommitted: entries coded for five, three of which
// restore them, are raised before two members leave for good; also where the
// leader has compacted them and knows them no more.
func TestFiveToThreeRaisesWhatIsCommitted(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted=%t", compacted), func(t *testing.T) {
			g := newGroup(t, 5)
			g.elect(1)
			var want [][]byte
			for i := range 10 {
				want = append(want, payload(i, 3000))
				g.propose(1, want[i])
			}
			g.tick(2)
			if compacted {
				g.compact(1, g.nodes[1].index)
			}
			g.change(1, remove(4), remove(5))
			g.tick(30)
			require.Equal(t, 3, len(g.nodes[1].rn.Status().Config.Voters[0]), "%v", g.nodes[1].rn.Status().Config)
			require.Empty(t, g.nodes[1].rn.Status().Config.Voters[1])
			require.NotZero(t, g.events[raft.CodingChecked])
			g.requireApplied(want, 1, 2, 3)
			t.Log(g.events)
		})
	}
}
