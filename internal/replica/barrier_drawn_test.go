// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"maps"
	"slices"
	"testing"
	"time"

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
	asked []asking                // rounds, answered or not
	polls []asking                // questions of quorum rounds, likewise
	floor map[*pendingCall]uint64 // what was committed when the read began
	open  int                     // reads
}

// asking is a question to the core, by context, or to a voter, by number, and the least answer.
type asking struct {
	context    []byte
	to, number uint64
	least      uint64
}

func (m *barrierModel) drain() {}

func (m *barrierModel) askCore(_ question, context []byte) {
	m.asked = append(m.asked, asking{context: context, least: m.state.Commit})
}

func (m *barrierModel) askLogEnd(to, number uint64) {
	m.polls = append(m.polls, asking{to: to, number: number, least: m.ends[to]})
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

// answer answers a round, which may be an old one, as of some time since it was asked.
func (m *barrierModel) answer(a asking, index uint64) {
	m.b.confirmed([]raft.ReadState{{Index: index, RequestCtx: a.context}})
}

func (m *barrierModel) flush() {
	m.b.start()
	m.b.release()
}

// A read ends once, at an index that is applied and not before what was committed when the read
// began, whatever is answered, by whom, how late and how often, while leaders and members change.
// If all is answered, every read ends. A hundred draws at a time are too few to see a read that joins a round under way.
func TestBarrierServesNoStaleRead(t *testing.T) {
	for range 20 {
		rapid.Check(t, drawnBarrier)
	}
}

func drawnBarrier(t *rapid.T) {
	conf := func() *pb.ConfState { return &pb.ConfState{Voters: []uint64{1, 2, 3}} }
	f := &facts{cfg: Config{Settings: Settings{ID: 1, ElectionTick: 10, HeartbeatTick: 1}}, heard: map[uint64]uint64{}}
	m := &barrierModel{facts: f, t: t, ends: map[uint64]uint64{}, floor: map[*pendingCall]uint64{}}
	m.b = newBarrier(f, m, rapid.Bool().Draw(t, "leases"), 7)
	f.state.Lead, f.applied.conf = 2, conf()
	m.b.leaderChanged()
	majorities := [][]uint64{{1, 2}, {1, 3}, {2, 3}, {1, 2, 3}}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"read", "read", "flush", "flush", "moment", "tick", "commit", "answer", "end", "apply", "leader", "members"}).Draw(t, "step") {
		case "read":
			policy := rapid.SampledFrom([]ReadPolicy{ReadIndex{}, AtResponder{}, LeaderLease{}, QuorumRead{}}).Draw(t, "policy")
			m.read(policy, rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "spans"))
		case "flush":
			m.flush()
		case "moment":
			f.now += rapid.SampledFrom([]time.Duration{eagerEvery / 2, eagerEvery, eagerEvery}).Draw(t, "moment")
			m.flush()
		case "tick":
			f.ticks += rapid.SampledFrom([]uint64{1, 2, 10}).Draw(t, "ticks")
		case "commit":
			m.commit(rapid.SampledFrom(majorities).Draw(t, "voters"))
		case "answer":
			if len(m.asked) > 0 {
				a := rapid.SampledFrom(m.asked).Draw(t, "round")
				m.answer(a, rapid.Uint64Range(a.least, f.state.Commit).Draw(t, "index"))
			}
		case "end":
			if len(m.polls) > 0 {
				a := rapid.SampledFrom(m.polls).Draw(t, "question")
				end := rapid.Uint64Range(a.least, m.ends[a.to]).Draw(t, "end")
				m.b.ended(a.to, wire.LogEnd{Boot: m.b.boot, Number: a.number, Index: end})
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
		for _, a := range m.asked {
			m.answer(a, f.state.Commit)
		}
		f.ticks++
	}
	if m.open > 0 || len(m.b.rounds)+len(m.b.others)+len(m.b.quorum.rounds) > 0 {
		t.Fatalf("%d reads have not ended, rounds %v, lanes %v", m.open, slices.Collect(maps.Keys(m.b.rounds)), m.b.others)
	}
}
