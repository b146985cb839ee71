// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/raft"
)

// said returns messages of each type that members of a group of five send each other: entries are coded, pushed, asked
// for, raised and recovered, voters come and go, and logs are cut.
func said(t testing.TB) (all []*pb.Message) {
	g := newGroup(t, 5)
	g.stepped = func(m *pb.Message) { all = append(all, proto.Clone(m).(*pb.Message)) }
	g.elect(1)
	g.propose(1, payload(0, 500))
	g.stop(4, 5)
	g.propose(1, payload(1, 500))
	g.tick(15) // raised
	g.start(4)
	g.start(5)
	g.tick(5)
	g.fresh(6, true)
	g.change(1, add(6))
	g.cut(1)
	g.tick(5)
	g.change(1, remove(4), remove(5))
	g.tick(20)
	g.propose(2, payload(2, 500))
	g.drop = func(m *pb.Message) bool {
		return m.GetType() == raft.MsgUnits || m.GetType() == pb.MsgApp && len(m.GetEntries()) == 0
	}
	g.propose(1, payload(3, 500))
	g.stop(1)
	g.drop = nil
	g.tick(40)
	return all
}

// Whatever a member sends to a node that codes, in whatever role, with fields that come from messages of others or from
// nowhere, the node does not panic, then or later, and its term and commit index do not fall.
func TestHostilePeerOfANodeThatCodes(t *testing.T) {
	messages := said(t)
	roles := map[string]func() (*group, uint64){
		"leader": func() (*group, uint64) {
			g := newGroup(t, 3)
			g.elect(1)
			g.propose(1, payload(0, 500))
			g.drop = func(m *pb.Message) bool { return m.GetTo() == 3 }
			g.propose(1, payload(1, 500))
			g.propose(1, payload(2, 500))
			return g, 1
		},
		"leader with a change that waits": func() (*group, uint64) {
			g := newGroup(t, 3)
			g.elect(1)
			g.propose(1, payload(0, 500))
			g.fresh(4, false)
			g.change(1, add(4))
			return g, 1
		},
		"follower": func() (*group, uint64) {
			g := newGroup(t, 3)
			g.elect(1)
			g.propose(1, payload(0, 500))
			g.drop = func(m *pb.Message) bool { return m.GetType() == raft.MsgUnits }
			g.propose(1, payload(1, 500))
			g.propose(1, payload(2, 500))
			return g, 2
		},
		"winner": func() (*group, uint64) {
			g, _ := recovering(t)
			return g, 2
		},
		"candidate": func() (*group, uint64) {
			g := newGroup(t, 3)
			g.elect(1)
			g.propose(1, payload(0, 500))
			g.drop = func(*pb.Message) bool { return true }
			g.propose(1, payload(1, 500))
			require.NoError(t, g.nodes[1].rn.Campaign())
			require.NoError(t, g.nodes[2].rn.ForgetLeader())
			require.NoError(t, g.nodes[2].rn.Campaign())
			g.settle()
			return g, 2
		},
	}
	for name, role := range roles {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				g, id := role()
				n := g.nodes[id]
				for range 15 {
					m := mutated(rt, messages)
					m.From, m.To = new(1+id%3), &id
					if rapid.Bool().Draw(rt, "of the present term") {
						if m.GetTerm() != 0 {
							m.Term = new(n.rn.BasicStatus().GetTerm())
						} else {
							m.LogTerm = new(n.rn.BasicStatus().GetTerm())
						}
					}
					before := n.rn.BasicStatus()
					_ = n.rn.Step(m)
					require.GreaterOrEqual(t, n.rn.BasicStatus().GetCommit(), before.GetCommit())
					require.GreaterOrEqual(t, n.rn.BasicStatus().GetTerm(), before.GetTerm())
					if rapid.Bool().Draw(rt, "work") {
						drain(t, n.rn, n.storage)
					}
					if rapid.Bool().Draw(rt, "tick") {
						n.rn.Tick()
					}
				}
			})
		})
	}
}

// mutated draws a message, with some fields in the place of its own.
func mutated(rt *rapid.T, messages []*pb.Message) *pb.Message {
	one := rapid.SampledFrom(messages)
	m := proto.Clone(one.Draw(rt, "message")).(*pb.Message)
	number := rapid.OneOf(rapid.Uint64Range(0, 12), rapid.Uint64())
	fields := []func(){
		func() { m.Type = one.Draw(rt, "type of").Type },
		func() { m.Term = new(number.Draw(rt, "term")) },
		func() { m.LogTerm = new(number.Draw(rt, "log term")) },
		func() { m.Index = new(number.Draw(rt, "index")) },
		func() { m.Commit = new(number.Draw(rt, "commit")) },
		func() { m.RejectHint = new(number.Draw(rt, "hint")) },
		func() { m.Reject = new(rapid.Bool().Draw(rt, "reject")) },
		func() { m.Context = slices.Clone(one.Draw(rt, "context of").Context) },
		func() { m.Context = rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(rt, "context") },
		func() { m.Entries = proto.Clone(one.Draw(rt, "entries of")).(*pb.Message).Entries },
		func() { m.Snapshot = proto.Clone(one.Draw(rt, "snapshot of")).(*pb.Message).Snapshot },
		func() {
			if n := len(m.Entries); n > 0 {
				e := m.Entries[rapid.IntRange(0, n-1).Draw(rt, "entry")]
				switch rapid.IntRange(0, 5).Draw(rt, "of the entry") {
				case 0:
					e.Index = new(number.Draw(rt, "entry index"))
				case 1:
					e.Term = new(number.Draw(rt, "entry term"))
				case 2:
					e.Data = nil
				case 3:
					e.Data = e.Data[:rapid.IntRange(0, len(e.Data)).Draw(rt, "cut")]
				case 4:
					if k := len(e.Data); k > 0 {
						e.Data[rapid.IntRange(0, k-1).Draw(rt, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
					}
				case 5:
					m.Entries = append(m.Entries, proto.Clone(e).(*pb.Entry))
				}
			}
		},
	}
	for range rapid.IntRange(0, 3).Draw(rt, "fields") {
		rapid.SampledFrom(fields).Draw(rt, "field")()
	}
	return m
}
