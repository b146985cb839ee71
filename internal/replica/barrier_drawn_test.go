// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// barrierModel is all that a barrier of voter 1 of three needs around it: a group, of which only
// where its voters' logs end is known.
type barrierModel struct {
	*facts
	t     *rapid.T
	b     barrier
	ends  map[uint64]uint64       // by voter
	asked [][]byte                // rounds, answered or not
	polls []wire.LogEnd           // questions of quorum rounds
	to    []uint64                // whom they are for
	floor map[*pendingCall]uint64 // what was committed when the read began
	open  int                     // reads
}

func (m *barrierModel) drain()                             {}
func (m *barrierModel) askCore(_ question, context []byte) { m.asked = append(m.asked, context) }
func (m *barrierModel) askLogEnd(to, number uint64) {
	m.polls, m.to = append(m.polls, wire.LogEnd{Boot: m.b.boot, Number: number}), append(m.to, to)
}

func (m *barrierModel) finish(c *pendingCall, d Done) {
	if c.ended {
		m.t.Fatalf("a read ends twice")
	}
	c.ended = true
	m.open--
	if d.Index < m.floor[c] || m.applied.at.index < d.Index {
		m.t.Fatalf("a read ends at index %d: %d was committed when it began, %d is applied", d.Index, m.floor[c], m.applied.at.index)
	}
}

// read begins a read, at any voucher.
func (m *barrierModel) read(policy ReadPolicy, spans string) {
	c := &pendingCall{}
	m.floor[c] = m.state.Commit
	m.open++
	m.b.await(waitingRead{call: c, policy: policy, spans: spans, begun: m.ticks}, policy.question(spans))
}

// commit appends entries to the logs of a majority, which commits them.
func (m *barrierModel) commit(voters []uint64) {
	m.state.Commit++
	for _, id := range voters {
		m.ends[id] = m.state.Commit
	}
	m.last = m.ends[1]
}

// answer answers a round, which may be an old one, as of now.
func (m *barrierModel) answer(context []byte) {
	m.b.confirmed([]raft.ReadState{{Index: m.state.Commit, RequestCtx: context}})
}

func (m *barrierModel) flush() {
	m.b.start()
	m.b.release()
}

// A read ends once, at an index that is applied and not before what was committed when the read
// began, whatever is answered, by whom, how late and how often, while leaders and members change.
// If all is answered, every read ends.
func TestBarrierServesNoStaleRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conf := func() *pb.ConfState { return &pb.ConfState{Voters: []uint64{1, 2, 3}} }
		f := &facts{cfg: Config{Settings: Settings{ID: 1, ElectionTick: 10, HeartbeatTick: 1}}, heard: map[uint64]uint64{}}
		m := &barrierModel{facts: f, t: t, ends: map[uint64]uint64{}, floor: map[*pendingCall]uint64{}}
		m.b = newBarrier(f, m, rapid.Bool().Draw(t, "leases"), 7)
		f.state.Lead, f.applied.conf = 2, conf()
		m.b.leaderChanged()
		majorities := [][]uint64{{1, 2}, {1, 3}, {2, 3}, {1, 2, 3}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"read", "read", "flush", "flush", "tick", "commit", "answer", "end", "apply", "leader", "members"}).Draw(t, "step") {
			case "read":
				policy := rapid.SampledFrom([]ReadPolicy{ReadIndex{}, AtResponder{}, LeaderLease{}, QuorumRead{}}).Draw(t, "policy")
				m.read(policy, rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "spans"))
			case "flush":
				m.flush()
			case "tick":
				f.ticks += rapid.Uint64Range(1, 4).Draw(t, "ticks")
			case "commit":
				m.commit(rapid.SampledFrom(majorities).Draw(t, "voters"))
			case "answer":
				if len(m.asked) > 0 {
					m.answer(rapid.SampledFrom(m.asked).Draw(t, "round"))
				}
			case "end":
				if len(m.polls) > 0 {
					i := rapid.IntRange(0, len(m.polls)-1).Draw(t, "question")
					end := m.polls[i]
					end.Index = m.ends[m.to[i]]
					m.b.ended(m.to[i], end)
				}
			case "apply":
				f.applied.at.index = rapid.Uint64Range(f.applied.at.index, f.state.Commit).Draw(t, "applied")
				m.b.release()
			case "leader":
				f.state.Lead = rapid.SampledFrom([]uint64{raft.None, 2, 3}).Draw(t, "leader")
				m.b.leaderChanged()
			case "members":
				f.applied.conf = conf()
			}
		}
		f.state.Lead = 2
		m.b.leaderChanged()
		f.applied.at.index = f.state.Commit
		for range 40 {
			m.flush()
			for _, context := range m.asked {
				m.answer(context)
			}
			f.ticks++
		}
		if m.open > 0 || len(m.b.rounds)+len(m.b.others) > 0 {
			t.Fatalf("%d reads have not ended, rounds %v, lanes %v", m.open, slices.Collect(maps.Keys(m.b.rounds)), m.b.others)
		}
	})
}
