// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/binary"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// cockroach is a host with asynchronous writes. One store with atomic writes has the
// host's log, applied state and hard state.
type cockroach struct {
	replica
	// byType counts arrived messages, by type.
	byType []uint64
	// locals are answers of the storage threads, delivered in any order.
	locals []*pb.Message
	// due is set while a pass is to come.
	due bool
	// beats are heartbeats and their answers that wait for more, by member.
	beats    map[uint64][]byte
	beatsDue bool

	quota  quota
	tokens map[uint64]*tokens
	ticks  int

	// quiesced groups are at rest: nobody ticks, and nothing is sent, until
	// somebody wants something. idle counts ticks without work.
	quiesced bool
	idle     int
}

func newCockroach(m *machine) *cockroach {
	h := &cockroach{byType: make([]uint64, m.w.types()), beats: map[uint64][]byte{}, tokens: map[uint64]*tokens{}}
	m.disk.inline = h.inline
	h.begin(m, true)
	h.settled = h.allReturned
	return h
}

func (h *cockroach) common() *replica { return &h.replica }

func (h *cockroach) tick() {
	if h.maybeQuiesce(); h.quiesced {
		h.core.TickQuiesced()
		return
	}
	h.core.Tick()
	h.checkProgress()
	if h.ticks++; h.ticks%5 == 0 {
		h.lead()
		h.report()
	}
}

// work asks for a pass, a little later, so that the pass meets several
// messages.
func (h *cockroach) work() {
	if !h.due && (len(h.locals) > 0 || h.core.HasReady()) {
		h.due = true
		h.m.later(h.w.net.Within(0, h.w.plan.passMax), h.pass)
	}
}

// pass lets the core and the host talk until neither has anything to say.
func (h *cockroach) pass() {
	h.due = false
	for len(h.locals) > 0 || h.core.HasReady() {
		for len(h.locals) > 0 {
			batch := h.locals
			h.locals = nil
			if len(batch) > 1 {
				h.w.reach.LocalsShuffled++
			}
			h.w.faults.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
			for _, m := range batch {
				h.step(m)
			}
		}
		if h.core.HasReady() {
			rd := h.core.Ready()
			h.publish()
			h.handle(rd)
		}
	}
	h.w.check.sees(&h.replica)
}

// handle does what a Ready asks for: write, send, apply.
func (h *cockroach) handle(rd raft.Ready) {
	h.confirm(rd.ReadStates)
	peers, toAppend, toApply := splitLocal(rd.Messages)
	if toAppend != nil {
		h.append(toAppend)
	}
	h.send(peers)
	if toApply != nil {
		h.applyAll(toApply)
	}
}

// splitLocal takes the messages to the storage threads off the end.
func splitLocal(messages []*pb.Message) (peers []*pb.Message, toAppend, toApply *pb.Message) {
	n := len(messages)
	if n > 0 && messages[n-1].GetTo() == raft.LocalApplyThread {
		n--
		toApply = messages[n]
	}
	if n > 0 && messages[n-1].GetTo() == raft.LocalAppendThread {
		n--
		toAppend = messages[n]
	}
	for i, m := range messages[:n] {
		if raft.IsLocalMsgTarget(m.GetTo()) {
			die("message %d of %d in a Ready is %v: those to the storage threads come last", i, len(messages), m.GetType())
		}
	}
	return messages[:n], toAppend, toApply
}

// append writes the content of a MsgStorageAppend, in one batch.
func (h *cockroach) append(m *pb.Message) {
	var restored *state
	if snap := m.GetSnapshot(); !raft.IsEmptySnap(snap) {
		s, err := stateOf(snap)
		if err != nil {
			die("snapshot: %w", err)
		}
		h.w.reach.SnapshotsRestored++
		restored = &s
		h.state = s
		h.m.disk.write(record{play: func(im *image) { im.restore(s) }})
	}
	h.checkAppend(m.GetEntries())
	entries, files := h.outline(m.GetEntries())
	h.countQuota(m.GetEntries())
	hard, setHard := hardState{m.GetTerm(), m.GetVote(), m.GetCommit()}, m.Term != nil && m.GetTerm() != 0
	h.m.disk.write(record{entries: len(entries), play: func(im *image) {
		im.append(entries)
		for _, f := range files {
			im.files[f.at] = f.body
		}
		if setHard {
			im.hard = hard
		}
	}})
	if responses := m.GetResponses(); len(responses) > 0 || restored != nil {
		h.m.sync(func() {
			h.dispatch(responses)
			h.work()
		})
	}
}

// applyAll applies the entries of a MsgStorageApply.
func (h *cockroach) applyAll(m *pb.Message) {
	h.handedOut(m.GetEntries())
	h.w.reach.ReadBack += uint64(len(m.GetEntries()))
	for _, e := range m.GetEntries() {
		h.apply(e)
	}
	s := h.state
	h.m.disk.write(record{play: func(im *image) { im.state = s }})
	h.answerReads()
	h.dispatch(m.GetResponses())
}

// dispatch sends responses to their addressees.
func (h *cockroach) dispatch(responses []*pb.Message) {
	var peers []*pb.Message
	for _, m := range responses {
		if m.GetTo() == h.m.id {
			h.locals = append(h.locals, m)
		} else {
			peers = append(peers, m)
		}
	}
	h.send(peers)
}

// send sends a batch: heartbeats wait for others, and of the answers to appends
// that are no refusals the last is enough.
func (h *cockroach) send(batch []*pb.Message) {
	last := -1
	for i, m := range batch {
		if m.GetType() == pb.MsgAppResp && !m.GetReject() {
			if last >= 0 {
				h.w.reach.AnswersDropped++
			}
			last = i
		}
	}
	for i, m := range batch {
		switch m.GetType() {
		case pb.MsgAppResp:
			if m.GetReject() || i == last {
				h.sendOne(m)
			}
		case pb.MsgHeartbeat, pb.MsgHeartbeatResp:
			h.mergeBeat(m)
		case pb.MsgSnap:
			h.sendSnapshot(m.GetTo())
		case pb.MsgApp:
			h.takeTokens(m)
			h.sendOne(m)
		default:
			h.sendOne(m)
		}
	}
}

func (h *cockroach) sendOne(m *pb.Message) {
	to := m.GetTo()
	h.w.send(h.m.id, to, frame{laneMessage, marshal(m)}, func() { h.core.ReportUnreachable(to); h.work() }, nil)
}

// sendSnapshot sends the state of the moment of sending, not the state seen by
// the core.
func (h *cockroach) sendSnapshot(to uint64) {
	report := func(ok bool) func() {
		return func() { h.core.ReportSnapshot(to, ok); h.work() }
	}
	h.m.later(2*h.w.plan.links.Most, func() {
		if m := h.snapshotFor(to); m != nil {
			h.w.send(h.m.id, to, frame{laneSnapshot, marshal(m)}, report(false), report(true))
		}
	})
}

// beat is a kind of merged heartbeat.
type beat = byte

const (
	beatAsk     beat = iota
	beatAnswer       // to beatAsk
	beatQuiesce      // the last beat: the group comes to rest
	beatRefuse       // to beatQuiesce: not yet
)

// beatLen is the length of a merged heartbeat: its kind, term and commit index.
const beatLen = 17

// mergeBeat keeps a heartbeat, or an answer to a heartbeat, for a while, to send
// several together. Only term and commit index travel.
func (h *cockroach) mergeBeat(m *pb.Message) {
	kind := beatAsk
	if m.GetType() == pb.MsgHeartbeatResp {
		kind = beatAnswer
	}
	h.addBeat(m.GetTo(), kind, m.GetTerm(), m.GetCommit())
}

func (h *cockroach) addBeat(to uint64, kind beat, term, commit uint64) {
	b := append(h.beats[to], kind)
	b = binary.LittleEndian.AppendUint64(b, term)
	h.beats[to] = binary.LittleEndian.AppendUint64(b, commit)
	h.w.reach.HeartbeatsMerged++
	if h.beatsDue {
		return
	}
	h.beatsDue = true
	h.m.later(tickTime/10, func() {
		h.beatsDue = false
		for to := uint64(1); to <= uint64(len(h.w.machines)); to++ {
			if b := h.beats[to]; len(b) > 0 {
				delete(h.beats, to)
				h.w.send(h.m.id, to, frame{laneHeartbeat, b}, nil, nil)
			}
		}
	})
}

func (h *cockroach) receive(from uint64, f frame) {
	switch f.lane {
	case laneHeartbeat:
		for b := f.data; len(b) >= beatLen; b = b[beatLen:] {
			if b[0] == beatRefuse {
				h.wake()
				continue
			}
			m := rebuildBeat(b, from, h.m.id)
			h.receiveMessage(m)
			if b[0] == beatQuiesce {
				h.followToRest(from, m.GetTerm(), m.GetCommit())
			}
		}
	case laneAdmitted:
		h.giveTokens(from, binary.LittleEndian.Uint64(f.data), binary.LittleEndian.Uint64(f.data[8:]))
	case laneProposal:
		h.propose(f.data)
	default:
		h.receiveMessage(unmarshal(f.data))
	}
}

func rebuildBeat(b []byte, from, to uint64) *pb.Message {
	term, commit := binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:])
	if b[0] == beatAnswer {
		return &pb.Message{Type: pb.MsgHeartbeatResp.Enum(), From: &from, To: &to, Term: &term}
	}
	return &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: &from, To: &to, Term: &term, Commit: &commit}
}

func (h *cockroach) receiveMessage(m *pb.Message) {
	h.byType[m.GetType()]++
	if m.GetType() == pb.MsgHeartbeatResp {
		h.w.reach.HeartbeatsAnswered++
	} else {
		h.wake()
	}
	h.step(m)
}

// outlined is a payload moved out of its entry.
type outlined struct {
	at   position
	body []byte
}

// outline looks at the head of each appended entry, and takes the payloads out of
// some entries. Such a payload must be whole in its entry.
func (h *cockroach) outline(entries []*pb.Entry) (thin []*pb.Entry, files []outlined) {
	for _, e := range entries {
		if h.look(e).encoding == sideloaded {
			if _, err := parseCommand(e.GetData()); err != nil {
				die("entry %d is to stand outside the log: %w", e.GetIndex(), err)
			}
			h.w.reach.Sideloaded++
			body := e.GetData()[headLen:]
			files = append(files, outlined{position{e.GetIndex(), e.GetTerm()}, body})
			e = withData(e, e.GetData()[:headLen])
		}
		thin = append(thin, e)
	}
	return thin, files
}

// look reads the head of an entry.
func (h *cockroach) look(e *pb.Entry) head {
	if e.GetType() != pb.EntryNormal {
		return head{}
	}
	is, err := parseHead(e.GetData())
	if err != nil {
		die("entry %d of term %d: %w", e.GetIndex(), e.GetTerm(), err)
	}
	h.w.reach.HeadsRead++
	return is
}

// inline puts the payload back into a loaded entry.
func (h *cockroach) inline(e *pb.Entry) *pb.Entry {
	if h.look(e).encoding != sideloaded {
		return e
	}
	body, ok := h.m.disk.live.files[position{e.GetIndex(), e.GetTerm()}]
	if !ok {
		die("entry %d of term %d has no file", e.GetIndex(), e.GetTerm())
	}
	h.w.reach.Inlined++
	return withData(e, append(append([]byte(nil), e.GetData()...), body...))
}

// put sends a command to the leader, and waits until it is applied here.
func (h *cockroach) put(c command, done func()) {
	h.waiting[c.id] = func(uint32) { done() }
	h.route(c.encode())
}

// get is a command like put: reads go through the log. With leases some go by ReadIndex.
func (h *cockroach) get(c command, done func(uint32)) {
	if h.m.lib.Leased && h.w.clients.Chance(0.7) {
		h.wake()
		h.ask(c, done)
		return
	}
	h.waiting[c.id] = func(value uint32) { h.w.reach.Reads++; done(value) }
	h.route(c.encode())
}

func (h *cockroach) route(data []byte) {
	switch lead := h.core.State().Lead; lead {
	case 0:
	case h.m.id:
		h.propose(data)
	default:
		h.w.send(h.m.id, lead, frame{laneProposal, data}, nil, nil)
	}
}

// propose proposes as a leader, within its quota.
func (h *cockroach) propose(data []byte) {
	h.wake()
	if h.core.State().Role != raft.StateLeader {
		return
	}
	if !h.quota.allows(len(data), h.w.plan.quota) {
		h.w.reach.QuotaRefusals++
		return
	}
	if err := h.core.Propose(data); err != nil {
		h.w.say(h.m.id, "does not propose: %v", err)
	}
}

// lead does a leader's periodic work: return quota, cut the log as far as all
// members in touch have the log.
func (h *cockroach) lead() {
	s := h.core.State()
	if s.Role != raft.StateLeader {
		h.quota = quota{}
		clear(h.tokens)
		return
	}
	least := h.state.at.index
	h.visit(func(_ uint64, _ bool, pr tracker.Progress) {
		if pr.RecentActive {
			least = min(least, pr.Match)
		}
	})
	h.quota.release(least)
	if base := h.m.disk.live.base.index; least >= base+h.w.plan.snapshotEvery+h.w.plan.keep {
		h.propose(command{op: opTruncate, value: uint32(least - h.w.plan.keep)}.encode())
	}
}
