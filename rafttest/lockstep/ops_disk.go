// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// raceCompaction begins the compaction of a member's log, or ends it without an effect. A node reads
// the bounds of its log and then entries, and its host may compact the log in between.
func (s *schedule) raceCompaction(m *member) {
	base, _, snapshot := m.disk[0].bounds()
	at := min(snapshot, m.state.Applied)
	if at <= base || m.disk[0].racing > base {
		at = 0
	} else {
		s.tally.Hit("storage: a compaction under way")
	}
	for _, d := range m.disk {
		d.racing, d.between = at, s.seed%2 == 0 // by the seed, so that listed seeds mean what they meant
	}
}

// breakDisk makes a method of a member's storage fail from now on. Upstream panics when it needs what
// the method has; Weft goes out of service. Weft knows some answers without asking: then it goes on.
func (s *schedule) breakDisk(m *member) {
	f := pick(s.chance, failsState, failsFirst, failsLast, failsTerm, failsEntries, failsEntries, failsSnapshot, emptySnapshot, noSnapshot)
	s.note(m, "disk fails", string(f))
	for _, d := range m.disk {
		d.fault = f
	}
}

func (s *schedule) mendDisk(m *member) {
	for _, d := range m.disk {
		d.fault = sound
	}
}

// outOfService takes down a member on whose broken disk upstream has panicked. If Weft has not gone
// on, it must be out of service in every way. Weft may go on only where it knows what a method says.
func (s *schedule) outOfService(m *member) {
	c, f := m.core[1], m.disk[0].fault
	switch known := f == failsFirst || f == failsLast || f == failsTerm; {
	case !isOut(c) && !known:
		s.fail("Weft goes on", "upstream panics, with a disk on which this fails: "+string(f))
	case !isOut(c):
		s.tally.Hit("storage: upstream panics, and Weft did not ask")
	default:
		s.tally.Hit("storage: out of service")
		c.Tick()
		c.ReadIndex([]byte("read"))
		sum, empty := fingerprint(0), fingerprint(0)
		has := c.HasReady()
		sum.ready(c.Ready())
		empty.ready(raft.Ready{})
		if has || sum != empty || !isOut(c) {
			s.fail("Weft hands out work while it is out of service", render(c.Ready()))
		}
	}
	m.halt()
}

// isOut reports whether Weft's node is out of service. The message that it steps says nothing.
func isOut(c core) bool {
	return errors.Is(c.Step(&pb.Message{Type: pb.MsgStorageApplyResp.Enum(), From: new(raft.LocalApplyThread)}), raft.ErrStorage)
}
