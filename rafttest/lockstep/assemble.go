// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// assemble makes the members, with the initial contents of their disks.
func (s *schedule) assemble() {
	cfg := s.drawConfig()
	prepare := s.prepare()
	for i, id := range s.plan.ids {
		m := &member{id: id, index: i, cfg: s.vary(cfg), machine: restored(0, nil)}
		m.cfg.ID = id
		roomy := s.oneIn(2)
		for side, lib := range s.libs {
			m.disk[side] = &disk{memory: lib.newMemory(), lib: lib, roomy: roomy, short: !s.bare && s.seed%3 == 0}
		}
		first := slices.Contains(s.plan.voters, id) || slices.Contains(s.plan.learners, id)
		if first {
			prepare(m)
		}
		s.members = append(s.members, m)
		s.tallyConfig(&m.cfg)
		s.start(m)
	}
}

// prepare returns a function that gives a first member its initial state.
func (s *schedule) prepare() func(*member) {
	if s.plan.start == startBootstrap {
		var peers []raft.Peer
		for _, id := range s.plan.voters {
			peers = append(peers, raft.Peer{ID: id, Context: pick(s.chance, nil, []byte{}, []byte("at"))})
		}
		return func(m *member) { m.first = peers }
	}
	snap := s.drawFirstSnapshot()
	id := snap.GetMetadata()
	if s.plan.start == startMembers {
		return func(m *member) { m.machine = restored(0, id.GetConfState()) }
	}
	var base []*pb.Entry
	if s.plan.start == startHistory {
		base = s.drawEntries(id.GetIndex(), id.GetTerm(), s.between(0, 12))
	}
	return func(m *member) {
		hs := &pb.HardState{Term: new(id.GetTerm()), Vote: new(uint64(0)), Commit: new(id.GetIndex())}
		var ents []*pb.Entry
		if s.plan.start == startHistory {
			term := max(id.GetTerm(), lastTerm(base))
			ents = s.diverge(base, id.GetIndex(), term+1+uint64(m.index))
			// Every member has heard of all these terms, so no member uses them again.
			hs.Term = new(term + uint64(len(s.plan.ids)))
		}
		for _, d := range m.disk {
			if err := d.write(cloneOf(hs), cloneAll(ents), cloneOf(snap)); err != nil {
				s.fail("storage refuses a first snapshot", err.Error())
			}
		}
		m.machine = restored(id.GetIndex(), id.GetConfState())
	}
}

func lastTerm(ents []*pb.Entry) uint64 {
	if len(ents) == 0 {
		return 0
	}
	return ents[len(ents)-1].GetTerm()
}

func (s *schedule) drawFirstSnapshot() *pb.Snapshot {
	cs := &pb.ConfState{Voters: slices.Clone(s.plan.voters), Learners: slices.Clone(s.plan.learners)}
	if s.oneIn(4) { // joint: some voters are on their way out or to become learners
		cs.VotersOutgoing = slices.Clone(s.plan.voters)
		if len(cs.Voters) > 1 && s.oneIn(2) {
			cs.Voters = cs.Voters[1:]
			if s.oneIn(2) {
				cs.LearnersNext = s.plan.voters[:1]
			}
		}
		cs.AutoLeave = new(s.oneIn(2))
	}
	return pb.EnsureSnapshot(&pb.Snapshot{
		Data: s.bytes(s.between(0, 20)),
		Metadata: &pb.SnapshotMetadata{
			ConfState: cs,
			Index:     new(uint64(s.between(2, 30))),
			Term:      new(uint64(s.between(1, 3))),
		},
	})
}

// drawEntries draws n entries after an index; terms rise at some entries.
func (s *schedule) drawEntries(index, term uint64, n int) []*pb.Entry {
	var ents []*pb.Entry
	for range n {
		index++
		if s.oneIn(3) {
			term += uint64(s.between(1, 2))
		}
		ents = append(ents, &pb.Entry{Index: new(index), Term: new(term), Data: s.payload()})
	}
	return ents
}

// diverge returns a log that starts with a part of base, which follows index, and continues as if
// its owner had led a term of its own and had reached no other member.
func (s *schedule) diverge(base []*pb.Entry, index, own uint64) []*pb.Entry {
	shared := s.IntN(len(base) + 1)
	ents := slices.Clone(base[:shared])
	index += uint64(shared)
	if s.oneIn(3) {
		return ents
	}
	for range s.between(1, 5) {
		index++
		ents = append(ents, &pb.Entry{Index: new(index), Term: new(own), Data: s.payload()})
	}
	return ents
}

// start starts or restarts a member from its disk.
func (s *schedule) start(m *member) {
	cfg := m.cfg
	if m.disk[0].fault != sound && !s.oneIn(3) {
		s.mendDisk(m)
	}
	fresh := s.recover(m, &cfg)
	s.note(m, "NewRawNode", "applied", cfg.Applied)
	var cores [2]core
	s.call++
	var out [2]outcome
	for side, lib := range s.libs {
		theEntropy.reset(s.seed, s.call)
		out[side] = attempt(side, func(side int) (err error) {
			c := cfg
			c.Storage = m.disk[side]
			if c.Logger != nil {
				c.Logger = s.loud[side].logger()
			}
			cores[side], err = lib.newCore(c)
			return err
		})
	}
	refused := [2]bool{out[0] != outcome{}, out[1] != outcome{}}
	if refused[0] != refused[1] || out[1].panicked != nil && s.libs[1].name == weft.name {
		s.fail("NewRawNode: only one side started, or Weft panicked", sides(s.libs, out[0].String(), out[1].String()))
	}
	if refused[0] && m.disk[0].fault != sound {
		s.tally.Hit("storage: no start on a broken disk")
		s.mendDisk(m)
		return
	}
	if refused[0] {
		s.tally.Hit("panics: NewRawNode refused by both")
		m.broken = true
		return
	}
	m.core, m.host = cores, host{}
	s.compare(m)
	if fresh && len(m.first) > 0 {
		s.bootstrap(m)
	}
}

// bootstrap calls Bootstrap, and overwrites the peers' contexts afterwards, as their owner may.
func (s *schedule) bootstrap(m *member) {
	s.note(m, "Bootstrap")
	_ = s.on(m, "Bootstrap", func(side int, c core) error {
		peers := make([]raft.Peer, len(m.first))
		for i, p := range m.first {
			peers[i] = raft.Peer{ID: p.ID, Context: slices.Clone(p.Context)}
		}
		err := c.Bootstrap(peers)
		for i := range peers {
			overwrite(peers[i].Context)
		}
		return err
	})
}

// recover chooses the state machine and the Applied index for a start from the disk, as a host does
// before a restart, and reports whether the disk is empty.
func (s *schedule) recover(m *member, cfg *raft.Config) (fresh bool) {
	base, last, snapshot := m.disk[0].bounds()
	low := max(base, snapshot)
	high := max(low, min(m.machine.applied, m.disk[0].commit()))
	if m.machine.conf(low) == nil || m.machine.applied < low {
		// The state machine is older than the snapshot, and is restored from the snapshot.
		snap, _ := m.disk[0].memory.Snapshot()
		m.machine = restored(low, snap.GetMetadata().GetConfState())
		high = low
	}
	at := high
	if s.oneIn(2) {
		at = low + uint64(s.IntN(int(high-low)+1))
	}
	m.machine.rollBack(at)
	if cfg.Applied = at; at == base && s.oneIn(2) {
		cfg.Applied = 0 // unknown: works as well, because everything from base on is handed out
	}
	for _, d := range m.disk {
		d.restored = m.machine.conf(at)
	}
	if cfg.Applied > 0 {
		s.tally.Hit("restart: with Applied")
	} else {
		s.tally.Hit("restart: without Applied")
	}
	return last == 0
}

func cloneOf[M proto.Message](m M) M { return proto.Clone(m).(M) }

func cloneAll(ents []*pb.Entry) []*pb.Entry {
	out := make([]*pb.Entry, len(ents))
	for i, e := range ents {
		out[i] = cloneOf(e)
	}
	return out
}
