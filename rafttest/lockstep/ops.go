// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// op is a step that a schedule can take with a running member.
type op struct {
	row    string // in the tally
	weight int    // relative to the other ops; plans multiply the weight by 1 to 20, or by 0
	// essential ops are part of every plan, because a group makes no progress without them.
	essential bool
	run       func(*schedule, *member)
	// compacts marks the ops that lead to snapshots: some plans raise their weight.
	compacts bool
}

var ops []op

func init() { // the functions use ops themselves, through drawPlan
	ops = []op{
		{"op: tick", 60, true, (*schedule).tick, false},
		{"op: ticks in a burst", 6, false, (*schedule).tickBurst, false},
		{"op: TickQuiesced", 8, false, (*schedule).tickQuiesced, false},
		{"op: Campaign", 10, false, (*schedule).campaign, false},
		{"op: Propose", 120, false, (*schedule).propose, false},
		{"op: MsgProp with several entries", 30, false, (*schedule).proposeSeveral, false},
		{"op: ProposeConfChange", 40, false, (*schedule).proposeConfChange, false},
		{"op: ReadIndex", 40, false, (*schedule).readIndex, false},
		{"op: TransferLeader", 8, false, (*schedule).transferLeader, false},
		{"op: ForgetLeader", 5, false, (*schedule).forgetLeader, false},
		{"op: ReportUnreachable", 6, false, (*schedule).reportUnreachable, false},
		{"op: ReportSnapshot", 6, false, (*schedule).reportSnapshot, false},
		{"op: deliver", 500, true, (*schedule).deliver, false},
		{"op: deliver everything", 40, false, (*schedule).deliverAll, false},
		{"op: drop", 12, false, (*schedule).drop, false},
		{"op: duplicate", 20, false, (*schedule).duplicate, false},
		{"op: cut off", 8, false, (*schedule).cutOff, true},
		{"op: partition", 4, false, (*schedule).partition, false},
		{"op: slow disk", 4, false, (*schedule).slowDisk, false},
		{"op: upheaval", 5, false, (*schedule).upheaval, false},
		{"op: lag behind", 4, false, (*schedule).lagBehind, true},
		{"op: host's turn", 450, true, (*schedule).turn, false},
		{"op: host's part of a turn", 450, false, (*schedule).partOfTurn, false},
		{"op: snapshot and compact", 40, false, (*schedule).compact, true},
		{"op: snapshot unavailable", 5, false, (*schedule).toggleBusy, false},
		{"op: crash", 8, false, (*schedule).crash, true},
		{"op: odd message", 6, false, (*schedule).oddMessage, false},
		{"op: broken contract", 2, false, (*schedule).breakContract, false},
		// Schedules that are bare end here.
		{"op: any message", 12, false, (*schedule).anyMessage, false},
		{"op: compaction under way", 5, false, (*schedule).raceCompaction, true},
		{"op: disk fails", 1, false, (*schedule).breakDisk, false},
		{"op: change refused by a change of node 0", 3, false, (*schedule).refuseChange, false},
		{"op: hasty campaign", 3, false, (*schedule).hastyCampaign, false},
		// Schedules that are not strange end here.
		{"op: strange proposal", 12, false, (*schedule).strangeProposal, false},
		{"op: repeated report", 12, false, (*schedule).repeatReport, false},
		{"op: message for another", 6, false, (*schedule).misdeliver, false},
		{"op: message from far ahead", 1, false, (*schedule).farAhead, false},
		{"op: read with several entries", 6, false, (*schedule).readOfSeveral, false},
		{"op: change or bootstrap by a host alone", 1, false, (*schedule).overreach, false},
		{"op: quiesced group", 4, false, (*schedule).quiesce, false},
	}
}

const bareOps, usualOps = 28, 33

// ops are the steps that this schedule can take.
func (s *schedule) ops() []op {
	switch {
	case s.bare:
		return ops[:bareOps]
	case !s.strange:
		return ops[:usualOps]
	}
	return ops
}

func (s *schedule) tick(m *member) {
	s.note(m, "Tick")
	_ = s.on(m, "Tick", func(_ int, c core) error { c.Tick(); return nil })
}

func (s *schedule) tickBurst(m *member) {
	for range s.between(2, 2*m.timeout()) {
		if m.running() {
			s.tick(m)
		}
	}
}

func (s *schedule) tickQuiesced(m *member) {
	s.note(m, "TickQuiesced")
	_ = s.on(m, "TickQuiesced", func(_ int, c core) error { c.TickQuiesced(); return nil })
}

func (s *schedule) campaign(m *member) {
	s.note(m, "Campaign")
	_ = s.on(m, "Campaign", func(_ int, c core) error { return c.Campaign() })
}

// payload draws a payload: nil, an empty slice, or bytes.
func (s *schedule) payload() []byte {
	switch s.IntN(12) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return s.bytes(s.IntN(s.plan.maxPayload + 1))
}

// overwrite changes a buffer, as the caller of a method may after the call.
func overwrite(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}

// proposer returns a member for a proposal: mostly a leader, because other members often know no
// leader.
func (s *schedule) proposer(m *member) *member {
	if m.state.SoftState.RaftState == raft.StateLeader || s.oneIn(4) {
		return m
	}
	for range len(s.members) { // any leader, also a leader that has been replaced without noticing
		other := s.members[s.IntN(len(s.members))]
		if other.running() && other.state.SoftState.RaftState == raft.StateLeader {
			return other
		}
	}
	return m
}

func (s *schedule) propose(m *member) { s.proposeAt(s.proposer(m)) }

func (s *schedule) proposeAt(m *member) {
	data := s.payload()
	// A leader copies the data; a follower may keep the buffer until the message that forwards the
	// proposal has left.
	mine := m.state.SoftState.RaftState == raft.StateLeader
	s.note(m, "Propose", len(data), "bytes")
	_ = s.on(m, "Propose", func(_ int, c core) error {
		buf := slices.Clone(data)
		err := c.Propose(buf)
		if mine {
			overwrite(buf)
		}
		return err
	})
}

func (s *schedule) proposeSeveral(m *member) {
	m = s.proposer(m)
	msg := &pb.Message{Type: pb.MsgProp.Enum(), From: new(m.id)}
	for range s.between(1, 5) {
		e := &pb.Entry{Data: s.payload()}
		if s.oneIn(8) {
			typ, data, err := pb.MarshalConfChange(s.drawConfChange())
			if err != nil {
				s.fail("a configuration change cannot be marshalled", err.Error())
			}
			e.Type, e.Data = typ.Enum(), data
		} else if s.oneIn(4) {
			e.Type = pb.EntryNormal.Enum()
		}
		if !s.bare && s.oneIn(12) { // a leader numbers entries, and keeps fields of later versions
			e.Term, e.Index = s.near(1), s.near(1)
			e.ProtoReflect().SetUnknown([]byte{0x98, 0x06, 0x01})
		}
		msg.Entries = append(msg.Entries, e)
	}
	s.stepMessage(m, [2]*pb.Message{cloneOf(msg), msg})
}

func (s *schedule) readIndex(m *member) {
	if s.tooEarly(m) {
		return
	}
	ctx := pick(s.chance, nil, []byte{}, s.bytes(4), s.bytes(12))
	s.note(m, "ReadIndex", ctx)
	_ = s.on(m, "ReadIndex", func(_ int, c core) error { c.ReadIndex(slices.Clone(ctx)); return nil })
}

// anyID draws a member or, rarely, an id that is no member.
func (s *schedule) anyID() uint64 {
	if s.oneIn(12) {
		return pick(s.chance, 0, 77, raft.LocalAppendThread, raft.LocalApplyThread)
	}
	return pick(s.chance, s.plan.ids...)
}

// peerID is anyID without the host's own threads: they report what has happened, and do not ask. The core would answer them,
// and the host would write the answer into the log, whose entries have no index.
func (s *schedule) peerID() uint64 {
	id := s.anyID()
	if id == raft.LocalAppendThread || id == raft.LocalApplyThread {
		return 77
	}
	return id
}

func (s *schedule) transferLeader(m *member) {
	to := s.anyID()
	s.note(m, "TransferLeader", to)
	_ = s.on(m, "TransferLeader", func(_ int, c core) error { c.TransferLeader(to); return nil })
}

func (s *schedule) forgetLeader(m *member) {
	s.note(m, "ForgetLeader")
	_ = s.on(m, "ForgetLeader", func(_ int, c core) error { return c.ForgetLeader() })
}

func (s *schedule) reportUnreachable(m *member) { s.unreachable(m, s.anyID()) }

func (s *schedule) unreachable(m *member, id uint64) {
	s.note(m, "ReportUnreachable", id)
	_ = s.on(m, "ReportUnreachable", func(_ int, c core) error { c.ReportUnreachable(id); return nil })
}

func (s *schedule) reportSnapshot(m *member) {
	id, st := s.anyID(), pick[raft.SnapshotStatus](s.chance, 1, 2)
	if !s.bare && s.oneIn(8) {
		st = pick[raft.SnapshotStatus](s.chance, 0, 3, -1) // upstream takes what is no failure for a success
	}
	s.snapshotReport(m, id, st)
}

func (s *schedule) snapshotReport(m *member, id uint64, st raft.SnapshotStatus) {
	s.note(m, "ReportSnapshot", id, st)
	_ = s.on(m, "ReportSnapshot", func(_ int, c core) error { c.ReportSnapshot(id, st); return nil })
}

// stepMessage steps a message and its twin.
func (s *schedule) stepMessage(m *member, msg [2]*pb.Message) {
	if isRead(msg[0]) && s.tooEarly(m) {
		return
	}
	if m.prematureVote(msg[0]) {
		s.tally.Hit("votes left out: before the candidate's own is written")
		return
	}
	if m.termlessRefusal(msg[0]) {
		s.tally.Hit("pre-votes left out: at a node without a term")
		return
	}
	row, known := deliverRows[msg[0].GetType()]
	if !known {
		row = "message stepped: of a later version"
	}
	s.tally.Hit(row)
	s.noteMessage(m, "Step", cloneForTrace(msg[0]))
	_ = s.on(m, "Step", func(side int, c core) error { return c.Step(msg[side]) })
}

// cloneForTrace copies the traced fields of a message that the call may change: forwarding sets the
// sender and the receiver.
func cloneForTrace(m *pb.Message) *pb.Message {
	return &pb.Message{
		Type: m.Type, To: m.To, From: m.From, Term: m.Term, LogTerm: m.LogTerm, Index: m.Index, Entries: m.Entries,
		Commit: m.Commit, Snapshot: m.Snapshot, Reject: m.Reject, RejectHint: m.RejectHint,
	}
}

// toggleBusy switches between a storage whose snapshot is not ready and a storage whose snapshot is
// ready.
func (s *schedule) toggleBusy(m *member) {
	for _, d := range m.disk {
		d.busy = !d.busy
	}
}

// compact makes a snapshot of the present or an earlier state of the state machine, and drops log
// entries up to the snapshot.
func (s *schedule) compact(m *member) {
	_, _, old := m.disk[0].bounds()
	// The applied index may be ahead of the commit index on the disk.
	upTo := min(m.machine.applied, m.disk[0].commit())
	if low := max(old+1, m.machine.begin()); upTo >= low && low > 0 {
		s.createSnapshot(m, low+uint64(s.IntN(int(upTo-low)+1)))
	}
	// The host may drop only entries that the node knows to be applied.
	base, _, snapshot := m.disk[0].bounds()
	if upTo := min(snapshot, m.state.Applied); upTo > base && !s.oneIn(4) {
		s.compactLog(m, base+1+uint64(s.IntN(int(upTo-base))))
	}
	if m.running() {
		s.compare(m)
	}
	s.compareDisks(m, 8)
}

func (s *schedule) createSnapshot(m *member, at uint64) {
	data, cs := s.bytes(s.IntN(30)), m.machine.conf(at)
	if s.oneIn(8) && len(m.machine.confs) == 1 {
		cs = nil // nil keeps the configuration of the previous snapshot, which is the same
		if at0, _, old := m.disk[0].bounds(); max(at0, old) != m.machine.begin() || old == 0 {
			cs = m.machine.conf(at)
		}
	}
	s.note(m, "CreateSnapshot", at)
	var snaps [2]*pb.Snapshot
	_, ok := s.both(m, "CreateSnapshot", func(side int) (err error) {
		mine := cloneOf(cs)
		snaps[side], err = m.disk[side].CreateSnapshot(at, mine, slices.Clone(data))
		if mine != nil {
			overwriteIDs(mine.Voters)
		}
		return err
	})
	if !ok {
		return
	}
	var sum [2]fingerprint
	for side := range sum {
		sum[side].snapshot(snaps[side])
	}
	if sum[0] != sum[1] {
		s.differ("CreateSnapshot", snaps[0], snaps[1])
	}
	s.tally.Hit("storage: snapshot created")
}

func overwriteIDs(ids []uint64) {
	for i := range ids {
		ids[i] = 0xeeee
	}
}

func (s *schedule) compactLog(m *member, at uint64) {
	s.note(m, "Compact", at)
	_, _ = s.both(m, "Compact", func(side int) error { return m.disk[side].Compact(at) })
	s.tally.Hit("storage: log compacted")
}

// crash takes a member down, and mostly starts the member again at once.
func (s *schedule) crash(m *member) {
	s.audit()
	if s.oneIn(2) && m.hand == nil && m.core[0].HasReady() {
		if s.takeReady(m); !m.running() {
			return
		}
	}
	s.note(m, "crash")
	if m.hand != nil && !m.written || len(m.appends) > 0 {
		s.tally.Hit("crash: with writes lost")
	} else {
		s.tally.Hit("crash: with nothing lost")
	}
	m.halt()
	if !s.bare && s.oneIn(4) {
		s.reconfigure(m)
	}
	if !s.oneIn(3) {
		s.start(m)
	}
}
