// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// etcd is a host with a Ready loop that writes synchronously: a leader sends
// while it writes, a follower afterwards. Entries are applied beside the loop. After a restart
// the host is handed its log from the beginning, and skips what its state holds.
type etcd struct {
	replica
	// busy is set from a Ready to its Advance.
	busy bool
	// todo is the work waiting to be applied.
	todo     []toApply
	applying bool
}

// toApply is a part of a Ready for the state machine.
type toApply struct {
	snapshot *pb.Snapshot
	entries  []*pb.Entry
	done     func()
}

func newEtcd(m *machine) *etcd {
	h := &etcd{}
	h.begin(m, false)
	return h
}

func (h *etcd) common() *replica { return &h.replica }

func (h *etcd) tick() {
	h.core.Tick()
	h.checkProgress()
}

// work does the core's requests, one Ready at a time.
func (h *etcd) work() {
	for !h.busy && h.core.HasReady() {
		h.busy = true
		rd := h.core.Ready()
		h.publish()
		h.handle(rd)
	}
	h.w.check.sees(&h.replica)
}

func (h *etcd) handle(rd raft.Ready) {
	h.confirm(rd.ReadStates)
	leads := h.core.State().Role == raft.StateLeader
	if leads {
		h.send(rd.Messages)
	}
	h.write(rd)
	written, applied := false, true
	finish := func() {
		if !written || !applied {
			return
		}
		if !leads {
			h.send(rd.Messages)
		}
		h.core.Advance()
		h.busy = false
		h.work()
	}
	if len(rd.CommittedEntries) > 0 || !raft.IsEmptySnap(rd.Snapshot) {
		// Work behind a change of the members depends on the change, so the
		// work waits.
		changes, first := h.handedOut(rd.CommittedEntries), leads && h.w.rush.reportsFirst
		waits := changes && !first
		if changes && first {
			h.w.reach.ChangesReportedFirst++
		}
		applied = !waits
		h.enqueue(toApply{rd.Snapshot, rd.CommittedEntries, func() {
			if waits {
				applied = true
				finish()
			} else if changes {
				h.work()
			}
		}})
	}
	after := func() { written = true; finish() }
	if rd.MustSync || !raft.IsEmptySnap(rd.Snapshot) {
		h.m.sync(after)
	} else {
		after()
	}
}

// write appends a Ready to the write-ahead log: entry by entry, and then the
// hard state, so that a crash may leave any beginning of it.
func (h *etcd) write(rd raft.Ready) {
	if !raft.IsEmptySnap(rd.Snapshot) {
		s, err := stateOf(rd.Snapshot)
		if err != nil {
			die("snapshot: %w", err)
		}
		h.m.disk.write(record{play: func(im *image) { im.restore(s) }})
	}
	h.checkAppend(rd.Entries)
	each := 1
	if h.w.rush.whole {
		each = max(1, len(rd.Entries))
	}
	for some := range slices.Chunk(rd.Entries, each) {
		h.m.disk.write(record{entries: len(some), play: func(im *image) {
			im.append(some)
			if h.w.rush.whole && !raft.IsEmptyHardState(rd.HardState) {
				im.hard = hardStateOf(rd.HardState)
			}
		}})
	}
	if len(rd.Entries) > 1 && h.w.faults.Chance(h.w.plan.tear) && !h.w.calm {
		h.m.later(0, func() { h.w.down(h.m, (*machine).crash, &h.w.reach.Crashes) })
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		hs := hardStateOf(rd.HardState)
		h.m.disk.write(record{play: func(im *image) { im.hard = hs }})
	}
}

func (h *etcd) enqueue(t toApply) {
	h.todo = append(h.todo, t)
	if !h.applying {
		h.applying = true
		h.m.later(h.w.faults.Within(0, h.w.plan.syncMax/4), h.applyNext)
	}
}

// applyNext is the applying thread.
func (h *etcd) applyNext() {
	t := h.todo[0]
	h.todo = h.todo[1:]
	if !raft.IsEmptySnap(t.snapshot) {
		s, err := stateOf(t.snapshot)
		if err != nil {
			die("snapshot: %w", err)
		}
		h.w.reach.SnapshotsRestored++
		h.state = s
	}
	for _, e := range t.entries {
		if e.GetIndex() > h.state.at.index {
			h.apply(e)
		} else {
			h.again(e)
		}
	}
	h.answerReads()
	h.checkpoint()
	if len(h.todo) > 0 {
		h.m.later(h.w.faults.Within(0, h.w.plan.syncMax/4), h.applyNext)
	} else {
		h.applying = false
	}
	t.done()
}

// again is handed an entry that the state holds since before a restart, and calls for none.
func (h *etcd) again(e *pb.Entry) {
	if e.GetType() != pb.EntryNormal {
		h.changing--
		h.w.reach.ChangesAgain++
	}
}

// checkpoint writes the state now and then, and cuts the log behind it.
func (h *etcd) checkpoint() {
	was := h.m.disk.live.state.at.index
	if h.state.at.index < was+h.w.plan.snapshotEvery {
		return
	}
	s := h.state
	h.m.disk.write(record{play: func(im *image) { im.state = s }})
	if s.at.index > h.w.plan.keep {
		h.m.truncate(s.at.index - h.w.plan.keep)
	}
}

// send sends a Ready's messages. Of several answers to appends the last is
// enough.
func (h *etcd) send(messages []*pb.Message) {
	answered := false
	keep := make([]bool, len(messages))
	for i := len(messages) - 1; i >= 0; i-- {
		keep[i] = true
		if messages[i].GetType() == pb.MsgAppResp {
			if answered {
				h.w.reach.AnswersDropped++
			}
			keep[i] = !answered
			answered = true
		}
	}
	for i, m := range messages {
		if keep[i] {
			h.sendOne(m)
		}
	}
}

func (h *etcd) sendOne(m *pb.Message) {
	to := m.GetTo()
	lost := func() { h.core.ReportUnreachable(to); h.work() }
	f := frame{lane: laneMessage}
	switch m.GetType() {
	case pb.MsgApp:
		f = frame{laneAppend, h.w.streams[h.m.id][to].out.encode(m, &h.w.reach)}
	case pb.MsgSnap:
		h.sendSnapshot(to)
		return
	default:
		f.data = marshal(m)
	}
	h.w.send(h.m.id, to, f, lost, nil)
}

// sendSnapshot sends the state of the moment of sending, not the state seen by
// the core.
func (h *etcd) sendSnapshot(to uint64) {
	report := func(ok bool) func() {
		return func() {
			if !ok {
				h.core.ReportUnreachable(to)
			}
			h.core.ReportSnapshot(to, ok)
			h.work()
		}
	}
	h.m.later(h.w.plan.links.Most, func() {
		m := h.snapshotFor(to)
		if m == nil {
			return
		}
		h.w.send(h.m.id, to, frame{laneSnapshot, marshal(m)}, report(false), report(true))
	})
}

func (h *etcd) receive(from uint64, f frame) {
	switch f.lane {
	case laneAppend:
		h.step(h.w.streams[from][h.m.id].in.decode(f.data, from, h.m.id))
	default:
		h.step(unmarshal(f.data))
	}
}

func (h *etcd) put(c command, done func()) {
	h.waiting[c.id] = func(uint32) { done() }
	if err := h.core.Propose(c.encode()); err != nil {
		delete(h.waiting, c.id) // an error is not an answer: the client waits
	}
}

func (h *etcd) get(c command, done func(uint32)) { h.ask(c, done) }
