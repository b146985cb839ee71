// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/quorum"
	"pgregory.net/rapid"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// stallModel is all that the stalls of node 1 of three need around them: a disk, the logs of the
// other members, and attempts to hand over, none of which succeeds by itself.
type stallModel struct {
	*facts
	s        stalling
	w        writes
	match    map[uint64]uint64
	tried    []uint64 // to whom, in this leadership and this stall
	triedAt  uint64
	order    []uint64 // of the heirs, at the last attempt
	ended    bool     // a write has ended since the last look
	answered uint64   // tick since which a write waits, and none has ended, as looks show it
}

func (m *stallModel) State() CoreState { return m.state }

func (m *stallModel) Members() (c tracker.Config, p map[uint64]tracker.Progress) {
	c.Voters[0], p = quorum.MajorityConfig{}, map[uint64]tracker.Progress{}
	for id, match := range m.match {
		c.Voters[0][id], p[id] = struct{}{}, tracker.Progress{Match: match}
	}
	return c, p
}

func (m *stallModel) transferTo(to uint64) { m.tried, m.triedAt = append(m.tried, to), m.ticks }

// ahead reports whether a majority has what the log of node 1 has not, durably.
func (m *stallModel) ahead() bool { return m.match[2] > m.match[1] && m.match[3] > m.match[1] }

// A disk is late if, and only if, a write waits and none has ended for more than an election timeout. A full leader
// tries the others one after the other; a late one only if a majority is ahead, or may be, and it falls silent if a
// majority is ahead and did not take over. A late node never campaigns; a full one does as a last resort; and a node
// whose log gets on is not held back by anything that was before.
func TestStalledNodeIsNotInTheWay(t *testing.T) {
	full := errors.New("full")
	rapid.Check(t, func(t *rapid.T) {
		const timeout = 5
		conf := &pb.ConfState{Voters: []uint64{1, 2, 3}}
		f := &facts{cfg: Config{Settings: Settings{ID: 1, ElectionTick: timeout}}, heard: map[uint64]uint64{}, host: &hostState{conf: conf}}
		m := &stallModel{facts: f, match: map[uint64]uint64{1: 0, 2: 0, 3: 0}}
		f.core, m.s = m, stalling{facts: f, placing: &placing{facts: f, losses: &losses{}}, transferTo: m.transferTo}
		driver, led := error(nil), uint64(0)
		check := func() {
			late := driver == nil && m.w.durable < m.w.handedOut && f.ticks-m.answered > timeout
			switch {
			case driver != nil && !errors.Is(f.stalled, full), late != m.s.late(), late && !errors.Is(f.stalled, storage.ErrLate), driver == nil && !late && f.stalled != nil:
				t.Fatalf("stalled: %v; the driver says %v; since tick %d a write waits, it is tick %d", f.stalled, driver, m.answered, f.ticks)
			case m.s.silent && (m.s.tried == 0 || f.stalled == nil), m.s.tried > 0 && f.stalled == nil:
				t.Fatalf("silent: %v, after %d attempts, stalled: %v", m.s.silent, m.s.tried, f.stalled)
			}
		}
		tick := func() {
			f.ticks++
			for id := uint64(2); id <= 3; id++ {
				f.heard[id] = f.ticks
			}
			if m.w.durable == m.w.handedOut || m.ended {
				m.answered, m.ended = f.ticks, false
			}
			stalledBefore := f.stalled != nil
			m.s.look(&m.w)
			if (f.stalled != nil) != stalledBefore {
				m.tried, led = nil, f.ticks
			}
			if f.state.Lead > 1 {
				led = f.ticks
			}
			check()
			quiet, late := m.s.quiet(), m.s.late()
			want := f.stalled != nil && !f.leads() && (late || f.ticks-led <= lastResort*timeout)
			if quiet != want {
				t.Fatalf("the core is kept quiet: %v, want %v: stalled: %v, %d ticks without a leader", quiet, want, f.stalled, f.ticks-led)
			}
			before, wasSilent := len(m.tried), m.s.silent
			last := m.triedAt
			m.s.handOver()
			tries, order := len(m.tried) > before, m.s.placing.heirs(conf.GetVoters())
			due := f.stalled != nil && f.leads() && (before == 0 || f.ticks-last > timeout)
			level := !m.ahead() && m.match[1] < f.last
			vain := m.ahead() && before > 0 // nobody took over
			switch {
			case tries && !due, tries && late && level, tries && late && vain:
				t.Fatalf("node 1 hands over: late %v, level %v, ahead %v, after %d attempts", late, level, m.ahead(), before)
			case due && !tries && (!late || !level && !vain):
				t.Fatalf("node 1 does not hand over: late %v, level %v, ahead %v, after %d attempts", late, level, m.ahead(), before)
			case due && late && vain && !m.s.silent, m.s.silent && !wasSilent && (!due || !late || !vain):
				t.Fatalf("silent: %v, was %v", m.s.silent, wasSilent)
			case tries && before > 0 && slices.Equal(m.order, order) && m.tried[before] == m.tried[before-1]:
				t.Fatalf("node 1 tries %v, of %v", m.tried, order)
			}
			if tries {
				m.order = order
			}
			for _, typ := range []pb.MessageType{pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap, pb.MsgVote, pb.MsgAppResp} {
				silenced := m.s.silent && f.leads() && slices.Contains([]pb.MessageType{pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap}, typ)
				if m.s.silenced(&pb.Message{Type: &typ}) != silenced {
					t.Fatalf("%v is silenced: %v", typ, !silenced)
				}
			}
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"tick", "tick", "tick", "tick", "wait", "write", "ends", "full", "room", "follower", "role"}).Draw(t, "step") {
			case "tick":
				tick()
			case "wait":
				for range rapid.IntRange(1, 4*timeout).Draw(t, "ticks") {
					tick()
				}
			case "write":
				f.last++
				m.w.handedOut++
			case "ends":
				if m.w.durable < m.w.handedOut {
					m.w.done(m.w.handedOut)
					m.ended, m.match[1] = true, f.last
					if m.s.late() {
						m.s.look(&m.w)
						m.answered, m.ended, m.tried, led = f.ticks, false, nil, f.ticks
					}
				}
			case "full", "room":
				was := f.stalled != nil
				if driver = full; m.s.full != nil {
					driver = nil
				}
				m.s.full = driver
				if m.s.decide(); was != (f.stalled != nil) {
					m.tried, led = nil, f.ticks
				}
			case "follower":
				m.match[rapid.Uint64Range(2, 3).Draw(t, "follower")] = f.last
			case "role":
				f.state = rapid.SampledFrom([]CoreState{{Role: raft.StateLeader, Lead: 1}, {Role: raft.StateFollower, Lead: 2}, {Role: raft.StateFollower}}).Draw(t, "role")
			}
		}
	})
}
