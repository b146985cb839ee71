// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// member is one group at one node in one life of its process: the real
// replica.Replica on the real log, with the simulator in the place of the
// goroutines, the clock, and the network.
type member struct {
	n    *node
	g    *group
	life uint64
	r    *replica.Replica
	core replica.Core
	log  *storage.Group
	role raft.StateType               // when last looked at
	own  struct{ term, index uint64 } // the last entry appended as a leader

	inbox     []input
	bytes     [wire.NumClasses]int // of messages in the inbox
	blocking  []func()             // connections that wait for room in the inbox
	scheduled bool                 // a turn waits for the processor
	ticking   bool                 // a tick waits in the inbox

	// atDoor are calls, and bytes of their commands, that the loop has not come
	// to.
	atDoor struct{ calls, bytes int }

	calls    map[replica.Call]pendingCall
	nextCall replica.Call

	local *replica.LocalReads // nil without leases
	reads uint64

	state   *store
	applied uint64 // index of the state
	host    []byte // the replica's durable state beside the log
	steps   []step
	stepped bool          // the apply stage is at work
	stepLen int           // bytes of commands in steps
	stopped bool          // it was removed from its group, and shut down
	pollAt  time.Duration // when the replica asked to be looked at; 0: not
	keeping bool          // a copy of the state is on its way to the disk

	out        map[uint64]*outgoing // by stream
	in         map[uint64]*incoming // by sender
	nextStream uint64
}

// input is something for the loop.
type input struct {
	cost time.Duration
	do   func(*replica.Replica)
}

// keptState is a state machine's own storage, as found at a start.
type keptState struct {
	index   uint64
	host    []byte
	encoded []byte
}

func newMember(n *node, g *group) (*member, error) {
	p := &n.w.plan
	m := &member{n: n, g: g, life: n.life, calls: map[replica.Call]pendingCall{},
		out: map[uint64]*outgoing{}, in: map[uint64]*incoming{}, nextStream: n.life << 32}
	kept := n.kept[g.id]
	var err error
	if kept.index > 0 {
		m.state, err = decodeStore(kept.encoded, p.sessions)
		m.applied, m.host = kept.index, kept.host
	} else {
		m.state, err = newStore(p.sessions)
	}
	if err != nil {
		return nil, fmt.Errorf("load the state: %w", err)
	}
	m.state.noTable = n.w.opts.Bug == NoSessions
	if m.log, err = n.disk.engine.Group(g.id); err != nil {
		return nil, err
	}
	cfg := m.config(kept)
	w, err := replica.PrepareLog(cfg)
	if err == nil && w != nil {
		err = m.writeNow(*w)
	}
	if err == nil {
		m.r, err = replica.New(cfg)
	}
	if err == nil {
		_ = m.r.Stalled(n.disk.stalled)
		m.local = m.localReads(cfg)
	}
	return m, err
}

// writeNow begins a log.
func (m *member) writeNow(w storage.Write) error {
	if err := m.log.Append(w, nil); err != nil {
		return err
	}
	for {
		if more, err := m.n.disk.engine.Step(); err != nil || !more {
			return err
		}
	}
}

func (m *member) config(kept keptState) replica.Config {
	p, w := &m.n.w.plan, m.n.w
	cfg := replica.Config{Applied: kept.index, HostState: kept.host, Settings: replica.Settings{
		ID: m.n.id, Group: m.g.id, Log: m.log, Boot: m.n.life,
		ElectionTick: electionTicks, HeartbeatTick: p.heartbeatTick,
		NoPreVote: p.noPreVote, NoCheckQuorum: p.noCheckQuorum,
		MaxCommandBytes: p.maxCommand(), MaxBatchBytes: p.batchBytes, MaxBatches: p.batches,
		MaxQueueBytes: p.queueBytes, MaxCalls: p.calls,
		MaxAppendBytes: p.appendBytes, MaxInflightMsgs: p.inflightMsgs, MaxInflightBytes: p.inflightBytes,
		MaxUncommittedBytes: p.uncommitted, MaxApplyBytes: p.applyBytes,
		RetainEntries: p.retainEntries, RetainBytes: p.retainBytes,
		Coding: m.coded(),
		Rand:   m.n.rand,
	}}
	m.leased(&cfg)
	if p.repeats.keepsMuch(m.n.id) {
		cfg.RetainEntries, cfg.RetainBytes = 10_000, 16<<20
	}
	if w.opts.Bug == NoQueueBudget {
		cfg.MaxQueueBytes, cfg.MaxCalls = 1<<30, 1<<30
	}
	if m.g.founder(m.n.id) {
		cfg.Peers = m.g.founders
	}
	newCore := w.opts.Core
	switch {
	case m.n.plain():
		w.joints.PlainMembers++
		newCore = newPlainCore(m.n.rand)
	case newCore == nil:
		newCore = replica.Weft
	}
	cfg.Core = func(rc raft.Config) (replica.Core, error) {
		core, err := newCore(rc)
		m.core = core
		return core, err
	}
	return cfg
}

// post queues something for the loop. It never waits.
func (m *member) post(cost time.Duration, do func(*replica.Replica)) {
	if m.stopped {
		return
	}
	m.inbox = append(m.inbox, input{cost: cost, do: do})
	m.kick()
}

// kick has the loop look at its waiting input.
func (m *member) kick() {
	if m.scheduled {
		return
	}
	m.scheduled = true
	m.n.cpu.Add(m.turn)
}

// turn is one turn of the loop: all waiting inputs, then the replica's outputs.
func (m *member) turn() (cost time.Duration, effect func()) {
	items := m.inbox
	m.atDoor.calls, m.atDoor.bytes = 0, 0
	m.inbox, m.bytes = nil, [wire.NumClasses]int{}
	cost = m.n.w.plan.costs.Turn
	for i := range items {
		cost += items[i].cost
	}
	m.unblock()
	return cost, func() {
		m.scheduled = false
		if m.stopped {
			return
		}
		m.r.At(m.n.w.Now())
		for i := range items {
			items[i].do(m.r)
		}
		m.flush()
		if len(m.inbox) > 0 {
			m.kick()
		}
	}
}

// unblock lets connections go on that waited for room.
func (m *member) unblock() {
	waiting := m.blocking
	m.blocking = nil
	for _, again := range waiting {
		again()
	}
}

// flush ends a turn: the stages get their work.
func (m *member) flush() {
	w := m.n.w
	out := m.r.Flush(w.Now())
	m.publish()
	if err := m.r.Err(); err != nil {
		if m.n.metDamage(err) {
			return
		}
		m.n.w.fail(NoFailure, "%v, group %d is out of service: %v", m.n, m.g.id, err)
		return
	}
	if len(out.Sends) > 0 {
		m.send(out.Sends)
	}
	for i := range out.Appends {
		m.appends(out.Appends[i].Write.Entries)
		m.appendStage(logWork{m: m, append: &out.Appends[i]})
	}
	if out.Compact != nil {
		m.appendStage(logWork{m: m, compact: out.Compact})
	}
	for i := range out.Applies {
		m.passes(&out.Applies[i])
		m.addStep(step{apply: &out.Applies[i]})
	}
	for _, s := range out.Snapshots {
		m.meets(momentSnapshot)
		m.sendSnapshot(s)
	}
	for _, d := range out.Done {
		m.ended(d)
	}
	m.observe()
	m.poll()
}

// observe looks at what has become of the replica.
func (m *member) observe() {
	st := m.core.State()
	if st.Role == raft.StateLeader && m.role != raft.StateLeader {
		m.g.elected(m.n, st.Term)
		m.meets(momentElected)
	}
	m.role = st.Role
	m.gauges()
}

// send is the send stage: encoding and writing take time.
func (m *member) send(messages []wire.Message) {
	c := &m.n.w.plan.costs
	var cost time.Duration
	for _, msg := range messages {
		if b, ok := msg.Body.(wire.Raft); ok {
			m.sending(b.Message)
		}
		cost += c.Sent + per(msg.Size(), c.WireKiB)
	}
	m.n.cpu.Add(func() (time.Duration, func()) {
		return cost, func() {
			for _, msg := range messages {
				m.n.egress.send(msg)
			}
		}
	})
}

// appendStage gives work to the log.
func (m *member) appendStage(w logWork) {
	c := &m.n.w.plan.costs
	var cost time.Duration
	if w.append != nil {
		for _, e := range w.append.Write.Entries {
			cost += c.Entry + per(proto.Size(e), c.LogKiB)
		}
	}
	m.n.cpu.Add(func() (time.Duration, func()) { return cost, func() { m.n.disk.put(w) } })
}

// receive takes a message from a connection. The result is false if there is no
// room for the message now.
func (m *member) receive(msg wire.Message) bool {
	w := m.n.w
	class, size := msg.Class(), msg.Size()
	if m.bytes[class] >= w.plan.receiveBytes && w.opts.Bug != NoInboxBudget {
		if class != wire.ClassControl {
			return false
		}
		w.reach.InboxDrops++
		return true
	}
	c := &w.plan.costs
	in := input{cost: c.Received + c.Message + per(size, c.WireKiB+c.LoopKiB)}
	switch b := msg.Body.(type) {
	case wire.Chunk:
		in.do = func(*replica.Replica) { m.chunk(msg.From, b) }
	case wire.ChunkStatus:
		in.do = func(*replica.Replica) { m.streamStatus(msg.From, b) }
	default:
		in.do = func(r *replica.Replica) { m.message(r, msg) }
	}
	m.bytes[class] += size
	m.inbox = append(m.inbox, in)
	m.kick()
	return true
}

// message hands a message to the replica.
func (m *member) message(r *replica.Replica, msg wire.Message) {
	w := m.n.w
	if p, ok := msg.Body.(wire.Proposal); ok && w.opts.Bug == TermIgnored {
		p.Term = m.core.State().Term
		msg.Body = p
	}
	if err := r.Receive(msg); err != nil {
		w.fail(NoFailure, "%v refuses a message of node %d: %v", m.n, msg.From, err)
	}
	m.appendAgain(msg)
}

// unreachable takes the transport's word that something was dropped.
func (m *member) unreachable(peer uint64) {
	for _, o := range m.outgoing() {
		if o.to == peer {
			m.endStream(o, errUnreachable)
		}
	}
	m.post(0, func(r *replica.Replica) { r.Unreachable(peer) })
}

// ticked lets a tick pass. A tick still waiting for the loop swallows the next.
func (m *member) ticked() {
	if !m.ticking {
		m.ticking = true
		m.post(0, func(r *replica.Replica) {
			m.ticking = false
			m.passTick(r)
			r.Tick(m.n.w.Now())
		})
	}
	m.expireStreams()
	m.keep()
}

// pendingCall is an unfinished call.
type pendingCall struct {
	deadline time.Duration
	end      func(replica.Done)
}

// call makes a call of a user.
func (m *member) call(deadline time.Duration, bytes int, do func(*replica.Replica, replica.Call, replica.Deadline), end func(replica.Done)) {
	w, p := m.n.w, &m.n.w.plan
	if m.atDoor.calls >= p.calls || m.atDoor.bytes > 0 && m.atDoor.bytes+bytes > p.queueBytes {
		if w.opts.Bug != NoQueueBudget {
			w.reach.Refused++
			w.reach.AtDoor++
			end(replica.Done{Err: &replica.CallError{Verdict: replica.ErrRefused, Cause: replica.ErrOverloaded}})
			return
		}
	}
	m.atDoor.calls++
	m.atDoor.bytes += bytes
	m.nextCall++
	id := m.nextCall
	m.calls[id] = pendingCall{deadline: w.Now() + deadline, end: end}
	c, by := &p.costs, w.Now()+deadline
	m.post(c.Call+per(bytes, c.LoopKiB), func(r *replica.Replica) { do(r, id, by) })
}

// ended takes the end of a call: there is exactly one.
func (m *member) ended(d replica.Done) {
	w := m.n.w
	c, ok := m.calls[d.Call]
	if !ok {
		w.fail(Verdicts, "%v ends call %d twice", m.n, d.Call)
		return
	}
	delete(m.calls, d.Call)
	w.late = max(w.late, w.Now()-c.deadline)
	var ce *replica.CallError
	switch {
	case d.Err == nil:
	case !errors.As(d.Err, &ce):
		w.fail(Verdicts, "%v: a call ends with an error that has no verdict: %v", m.n, d.Err)
	case errors.Is(d.Err, replica.ErrRefused):
		w.reach.Refused++
	default:
		w.reach.Unknown++
		if w.opts.Bug == RefusedLate {
			d.Err = &replica.CallError{Op: ce.Op, Verdict: replica.ErrRefused, Cause: ce.Cause}
		}
	}
	if errors.Is(d.Err, replica.ErrOverloaded) {
		w.reach.Overloaded++
	}
	c.end(d)
}

// here reports whether the member still runs.
func (m *member) here() bool { return m.n.up && m.n.life == m.life && !m.stopped }

// conf returns the members that the replica goes by.
func (m *member) conf() *pb.ConfState { return m.r.Status().Members }
