// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"go.etcd.io/raft/v3/quorum"
	"pgregory.net/rapid"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/wire"
)

// changesModel is all that the changes of a leader, node 1, need around them: members that are
// alive and answer, or dead.
type changesModel struct {
	*facts
	c        changes
	config   tracker.Config
	progress map[uint64]tracker.Progress
	alive    map[uint64]bool
	answers  []func() // on their way
	made     bool
}

func (m *changesModel) Members() (tracker.Config, map[uint64]tracker.Progress) {
	return m.config, m.progress
}
func (m *changesModel) State() CoreState                       { return m.state }
func (m *changesModel) ProposeConfChange(pb.ConfChangeI) error { m.made = true; return nil }
func (m *changesModel) TransferLeader(to uint64)               {}

func (m *changesModel) askLogEnd(to, number uint64) {
	if m.alive[to] {
		m.answers = append(m.answers, func() { m.c.inquiries.answered(to, number) })
	}
}

func (m *changesModel) postRaft(heartbeat *pb.Message) {
	if to := heartbeat.GetTo(); m.alive[to] {
		m.answers = append(m.answers, func() { m.heard[to] = m.ticks })
	}
}

// A change is made if it leaves a majority of members that are alive and have the log, and only
// then, though all members, dead or alive, may have been heard from a moment before.
func TestChangeIsMadeIfTheLivingAreAMajority(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := []uint64{1, 2, 3, 4, 5, 6}
		f := &facts{cfg: Config{Settings: Settings{ID: 1, ElectionTick: 10, MaxPromoteLag: 5, MaxInflightMsgs: 8}}, heard: map[uint64]uint64{}, ticks: 1000, last: 100}
		m := &changesModel{facts: f, progress: map[uint64]tracker.Progress{}, alive: map[uint64]bool{1: true}}
		f.core = m
		m.c = changes{facts: f, changer: m, around: m, founding: &founding{facts: f}}
		voters := quorum.MajorityConfig{1: {}}
		for _, id := range ids[1:rapid.IntRange(1, 5).Draw(t, "voters")] {
			voters[id] = struct{}{}
		}
		for _, id := range ids {
			if id > 1 {
				m.alive[id] = rapid.Bool().Draw(t, "alive")
			}
			if _, member := voters[id]; member {
				m.progress[id] = tracker.Progress{Match: rapid.SampledFrom([]uint64{10, 100}).Draw(t, "match")}
			}
			if _, member := voters[id]; member && m.alive[id] {
				f.heard[id] = f.ticks
			} else if rapid.Bool().Draw(t, "was heard") {
				f.heard[id] = f.ticks - rapid.Uint64Range(0, 20).Draw(t, "ago")
			}
		}
		m.config.Voters[0] = voters
		f.host = &hostState{conf: &pb.ConfState{Voters: voters.Slice()}}
		cc := &pb.ConfChangeV2{}
		next := map[uint64]bool{}
		for id := range voters {
			next[id] = true
		}
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(ids[1:]), 1, 3, rapid.ID).Draw(t, "steps") {
			typ := pb.ConfChangeAddNode
			if next[id] {
				typ = pb.ConfChangeRemoveNode
			}
			next[id] = !next[id]
			cc.Changes = append(cc.Changes, &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: new(id)})
		}
		outcome, err := wire.Busy, error(nil)
		for i := 0; i < 30 && outcome == wire.Busy; i++ {
			outcome, err = m.c.append(wire.CommandID{Origin: 1, Boot: 1, Sequence: 1}, cc, false)
			for _, answer := range m.answers {
				answer()
			}
			m.answers = nil
			for id := range m.alive { // who lives says so to a member, from time to time
				if _, member := m.progress[id]; member && m.alive[id] && i%5 == 0 {
					f.heard[id] = f.ticks
				}
			}
			f.ticks++
		}
		quorumLives := func(in func(id uint64) bool, fit func(id uint64) bool) bool {
			n, lives := 0, 0
			for _, id := range ids {
				if in(id) {
					if n++; fit(id) {
						lives++
					}
				}
			}
			return lives >= n/2+1
		}
		_, joint := cc.EnterJoint()
		voted := func(id uint64) bool { _, was := voters[id]; return was }
		may := quorumLives(func(id uint64) bool { return next[id] }, func(id uint64) bool { return m.alive[id] && voted(id) }) &&
			(!joint || quorumLives(voted, func(id uint64) bool { return m.alive[id] }))
		for id, votes := range next {
			may = may && (!votes || voted(id) || m.alive[id]) // who gets a vote answers
		}
		if m.made != may || outcome == wire.Busy {
			t.Fatalf("the change %v of voters %v is made: %v, want %v; alive %v; outcome %v, %v", cc, voters, m.made, may, m.alive, outcome, err)
		}
		if m.made && len(m.c.inquiries.open) > 0 {
			t.Fatalf("the change is made, and its inquiry goes on")
		}
	})
}
