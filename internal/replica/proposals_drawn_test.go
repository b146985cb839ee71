// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// proposalsModel is all that the outbox of node 1 and the inboxes of nodes 2 and 3 need around
// them: a network, elections, and the log of the group.
type proposalsModel struct {
	*facts // of node 1
	t      *rapid.T
	calls  calls
	outbox outbox
	nodes  map[uint64]*proposalsNode
	busy   bool // leaders take nothing

	term, lead uint64
	log        []modelEntry
	commit     int
	table      originTable // as of commit
	handed     int         // entries handed out by node 1
	network    []func()    // messages, which may come late, twice or never

	done    map[Call]error
	command map[Call]string
	applied map[string]int // how often each command was applied
}

// modelEntry is an entry of the log. The entry of a new leader has no commands, and neither has the
// entry in the place of a change.
type modelEntry struct {
	term uint64
	env  envelope
}

// proposalsNode is a node, and the term in which it believes to lead: it may be deposed and not know it.
type proposalsNode struct {
	*proposalsModel
	id, leads, term uint64
	inbox           inbox // of nodes 2 and 3
	taken           map[sentOff]bool
}

// sentOff is a sending of a batch.
type sentOff struct {
	id     wire.CommandID
	number uint64
}

func newProposalsModel(t *rapid.T) *proposalsModel {
	cfg := Config{Settings: Settings{ID: 1, ElectionTick: 2, Budget: NewBudget(1 << 20), MaxBatchBytes: 20}}.withDefaults()
	m := &proposalsModel{
		t: t, facts: &facts{cfg: cfg, host: &hostState{origins: originTable{}}}, nodes: map[uint64]*proposalsNode{}, table: originTable{},
		done: map[Call]error{}, command: map[Call]string{}, applied: map[string]int{},
	}
	m.calls = calls{facts: m.facts, around: m}
	m.outbox = newOutbox(&m.calls, m, 4)
	for id := uint64(1); id <= 3; id++ {
		m.nodes[id] = &proposalsNode{proposalsModel: m, id: id, taken: map[sentOff]bool{}}
		m.nodes[id].start()
	}
	switch later := (sending{boot: 9, number: 1}); rapid.SampledFrom([]string{"nobody", "the log", "a leader"}).Draw(t, "who knows a later boot") {
	case "a leader":
		m.nodes[2].inbox.seen = map[uint64]sending{1: later}
	case "the log":
		m.log = append(m.log, modelEntry{term: 1, env: envelope{id: wire.CommandID{Origin: 1, Boot: 9, Sequence: 1}, floor: 1}})
	}
	m.elect(1)
	return m
}

func (n *proposalsNode) start() {
	f := &facts{cfg: n.cfg, host: &hostState{origins: n.table, conf: &pb.ConfState{Voters: []uint64{1, 2, 3}}}}
	n.inbox = inbox{facts: f, around: n, bornTerm: n.term}
	n.leads = 0
}

func (m *proposalsModel) leader() (id, term uint64) { return m.state.Lead, m.state.Term }
func (m *proposalsModel) timeout() error            { return ErrTimeout }
func (m *proposalsModel) unable() error             { return nil }

func (m *proposalsModel) callEnded(d Done) {
	if _, twice := m.done[d.Call]; twice {
		m.t.Fatalf("call %d ends twice", d.Call)
	}
	m.done[d.Call] = d.Err
}

// post sends a proposal of node 1.
func (m *proposalsModel) post(to uint64, body wire.Body) {
	m.network = append(m.network, func() {
		n := m.nodes[to]
		n.inbox.state, n.inbox.emitted.index = CoreState{Term: m.term, Lead: m.lead}, uint64(m.commit)
		if err := n.inbox.receive(1, body.(wire.Proposal)); err != nil {
			m.t.Fatalf("a proposal of the outbox is malformed: %v", err)
		}
		if !rapid.Bool().Draw(m.t, "waits for a round") {
			n.inbox.appendRound()
		}
	})
}

func (m *proposalsModel) appendProposal(p wire.Proposal) wire.Verdict {
	return m.nodes[1].appendProposal(p)
}

// post sends a verdict.
func (n *proposalsNode) post(_ uint64, body wire.Body) {
	v := body.(wire.Verdict)
	if v.Outcome != wire.Accepted && v.ID.Boot == n.inbox.seen[1].boot { // else it is about an earlier life of the origin
		n.decided(v.ID, v.Number, false)
	}
	n.network = append(n.network, func() { n.outbox.receiveVerdict(v) })
}

// decided notes that a node has taken a sending, or has refused it.
func (n *proposalsNode) decided(id wire.CommandID, number uint64, taken bool) {
	s := sentOff{id, number}
	if before, ok := n.taken[s]; ok && before != taken {
		n.t.Fatalf("node %d takes the sending %v: %v, and then: %v", n.id, s, before, taken)
	}
	n.taken[s] = taken
}

// appendProposal appends to the log of the node. What a deposed leader appends is in no other log.
func (n *proposalsNode) appendProposal(p wire.Proposal) wire.Verdict {
	switch {
	case n.leads == 0 || n.leads != p.Term:
		return wire.Verdict{Outcome: wire.NotLeader, Term: n.proposalsModel.term, Leader: n.lead}
	case n.busy:
		return wire.Verdict{Outcome: wire.Busy, Term: n.leads}
	}
	e := modelEntry{term: p.Term}
	fate := "taken"
	if p.ConfChange {
		cc := &pb.ConfChangeV2{}
		if err := proto.Unmarshal(p.Data, cc); err != nil {
			n.t.Fatal(err)
		}
		e.env, _ = decodeConfContext(cc.GetContext())
		fate = rapid.SampledFrom([]string{"taken", "unsafe", "held", "empty"}).Draw(n.t, "change")
	} else {
		e.env, _ = decodeEnvelope(p.Data)
	}
	switch fate {
	case "unsafe":
		return wire.Verdict{Outcome: wire.Unsafe, Term: n.leads}
	case "held":
		n.decided(p.ID, p.Number, true)
		n.network = append(n.network, func() { n.append(e) })
		return wire.Verdict{}
	case "empty":
		e = modelEntry{term: p.Term}
	}
	n.decided(p.ID, p.Number, true)
	return wire.Verdict{Outcome: wire.Accepted, Term: n.leads, Index: n.append(e)}
}

func (n *proposalsNode) append(e modelEntry) (index uint64) {
	if n.lead == n.id && n.proposalsModel.term == e.term {
		n.log = append(n.log, e)
		return uint64(len(n.log))
	}
	return uint64(len(n.log) + 1)
}

// elect begins a term. Former leaders may not hear of it, and entries that are not committed may be cut.
func (m *proposalsModel) elect(leader uint64) {
	m.term++
	m.lead = leader
	m.log = append(m.log[:rapid.IntRange(m.commit, len(m.log)).Draw(m.t, "kept")], modelEntry{term: m.term})
	for id, n := range m.nodes {
		if id == m.lead {
			n.leads, n.term = m.term, m.term
		}
	}
	if m.lead == 1 {
		m.learn()
	}
}

// learn has node 1 hear of the present leader.
func (m *proposalsModel) learn() {
	m.state = CoreState{Term: m.term, Lead: m.lead, Role: raft.StateFollower}
	if m.lead == 1 {
		m.state.Role = raft.StateLeader
	} else {
		m.nodes[1].leads = 0
	}
	m.outbox.leaderChanged()
}

func (m *proposalsModel) commitTo(index int) {
	for ; m.commit < index; m.commit++ {
		if env := m.log[m.commit].env; env.id.Origin != 0 && m.table.admit(env.id, env.floor) {
			for _, c := range env.commands {
				m.applied[string(c)]++
			}
		}
	}
}

// handOut hands an entry to the apply stage of node 1, as Replica.emitCommands does.
func (m *proposalsModel) handOut() {
	e := m.log[m.handed]
	m.handed++
	at := logMark{term: e.term, index: uint64(m.handed)}
	m.emitted = at
	if e.env.id.Origin != 0 {
		own, admitted := m.outbox.takeOwn(e.env.id), m.host.origins.admit(e.env.id, e.env.floor)
		m.outbox.bootTaken(m.host.origins.boot(1))
		if !admitted {
			m.outbox.superseded(own)
		} else if own != nil && len(own.calls) == len(e.env.commands) {
			for _, c := range own.calls {
				c.open = true
				m.calls.finish(c, Done{})
			}
		}
	}
	m.outbox.passed(at)
}

// jump has node 1 restore a snapshot.
func (m *proposalsModel) jump() {
	if m.handed == m.commit {
		return
	}
	m.handed = m.commit
	decoded, err := decodeOrigins(m.table.append(nil))
	if err != nil {
		m.t.Fatal(err)
	}
	m.host.origins = decoded
	m.outbox.jumped(decoded, logMark{term: m.log[m.handed-1].term, index: uint64(m.handed)})
}

func (m *proposalsModel) propose(call Call, patience time.Duration, change bool) {
	m.command[call] = fmt.Sprintf("command %d", call)
	if change {
		cc := &pb.ConfChangeV2{Context: []byte(m.command[call]), Changes: []*pb.ConfChangeSingle{{NodeId: new(uint64(4))}}}
		m.outbox.proposeConfChange(call, cc, m.now+patience, false)
		return
	}
	m.outbox.propose(call, []byte(m.command[call]), m.now+patience)
}

func (m *proposalsModel) tick() {
	m.ticks++
	m.now += time.Second
	for id := uint64(2); id <= 3; id++ {
		m.nodes[id].inbox.emitted.index = uint64(m.commit)
		m.nodes[id].inbox.appendRound()
		m.nodes[id].inbox.answer()
	}
	m.calls.expire()
	m.outbox.tidy()
	m.outbox.sendBatches()
}

// holds checks the invariants that stand at the outbox and at the calls.
func (m *proposalsModel) holds() {
	count := func(calls ...*pendingCall) int { return len(live(slices.Clone(calls))) }
	o, live, waiting, queued := &m.outbox, count(m.calls.list...), 0, 0
	for _, q := range o.queue {
		queued += len(q.command)
		waiting += count(q.pendingCall)
	}
	if live != m.calls.live || queued != o.unbatched {
		m.t.Fatalf("%d calls live, %d counted; %d bytes in the queue, %d counted", live, m.calls.live, queued, o.unbatched)
	}
	before := uint64(0)
	for _, b := range o.batches {
		queued += b.bytes
		waiting += count(b.calls...)
		switch {
		case b.seq <= before || b.seq >= o.next:
			m.t.Fatalf("batch %d is behind batch %d, and the next is %d", b.seq, before, o.next)
		case b.accepted && b.sends == 0:
			m.t.Fatalf("batch %d is accepted, and no sending is open", b.seq)
		case b.withdrawn && (!allEnded(b.calls) || b.bytes > 0 || b.conf != nil):
			m.t.Fatalf("batch %d is withdrawn, and a call waits, or it has bytes", b.seq)
		case slices.ContainsFunc(b.calls, func(c *pendingCall) bool { return !c.ended && c.open != (b.sends > 0) }):
			m.t.Fatalf("a call of batch %d is not open as the batch is: %d sendings", b.seq, b.sends)
		}
		before = b.seq
	}
	if waiting != live {
		m.t.Fatalf("%d calls are live, and %d wait in the queue or in batches", live, waiting)
	}
	if queued != o.queued || int64(queued) != m.cfg.Budget.Used() {
		m.t.Fatalf("%d bytes wait, %d are counted, the budget has %d", queued, o.queued, m.cfg.Budget.Used())
	}
}

// A command takes effect once at most, never if its call was refused, and once if its call has a result, whatever
// the network does to proposals and verdicts, while leaders change, restart, append in vain, or hold changes back. A
// leader decides about a sending once. If the network loses no more than one message, a command is applied, every call
// ends, and nothing stays.
func TestProposalTakesEffectOnceAndARefusedOneNever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newProposalsModel(t)
		last := Call(0)
		step := func(what string) {
			switch what {
			case "propose":
				last++
				m.propose(last, time.Duration(rapid.IntRange(1, 40).Draw(t, "patience"))*time.Second, rapid.IntRange(0, 3).Draw(t, "kind") == 0)
			case "flush":
				m.outbox.sendBatches()
			case "cancel":
				m.calls.Cancel(rapid.Custom(func(t *rapid.T) Call { return Call(rapid.Uint64Range(0, uint64(last)).Draw(t, "call")) }).Draw(t, "cancelled"), ErrStopped)
				if m.calls.cancel() {
					m.outbox.tidy()
				}
			case "tick":
				for range rapid.IntRange(1, 4).Draw(t, "ticks") {
					m.tick()
				}
			case "deliver":
				if len(m.network) > 0 {
					i := rapid.IntRange(0, len(m.network)-1).Draw(t, "message")
					deliver := m.network[i]
					if !rapid.Bool().Draw(t, "again") {
						m.network = slices.Delete(m.network, i, i+1)
					}
					deliver()
				}
			case "lose":
				m.network = nil
			case "elect":
				m.elect(rapid.Uint64Range(1, 3).Draw(t, "leader"))
			case "learn":
				m.learn()
			case "restart":
				n := m.nodes[rapid.Uint64Range(2, 3).Draw(t, "node")]
				if n.start(); m.lead == n.id {
					m.elect(5 - n.id)
				}
			case "commit":
				if m.log[len(m.log)-1].term == m.term {
					first := slices.IndexFunc(m.log, func(e modelEntry) bool { return e.term == m.term })
					m.commitTo(rapid.IntRange(first+1, len(m.log)).Draw(t, "index"))
				}
			case "hand out":
				if m.handed < m.commit {
					m.handOut()
				}
			case "jump":
				m.jump()
			case "busy":
				m.busy = !m.busy
			}
			m.holds()
		}
		steps := []string{"propose", "propose", "propose", "flush", "flush", "tick", "tick", "deliver", "deliver", "deliver", "deliver", "lose", "elect", "learn", "learn", "restart", "cancel", "commit", "commit", "hand out", "hand out", "hand out", "jump", "busy", "busy"}
		for range rapid.IntRange(1, 1000).Draw(t, "steps") {
			step(rapid.SampledFrom(steps).Draw(t, "step"))
		}
		m.busy = false
		leader := rapid.Uint64Range(1, 2).Draw(t, "last leader")
		settle := func(lost int) error {
			call := Call(len(m.command) + 1)
			m.elect(leader)
			m.learn()
			m.propose(call, time.Hour, false)
			m.tick()
			m.network = m.network[min(lost, len(m.network)):]
			for range 100 {
				for len(m.network) > 0 {
					deliver := m.network[0]
					m.network = m.network[1:]
					deliver()
				}
				m.commitTo(len(m.log))
				for m.handed < m.commit {
					m.handOut()
				}
				m.holds()
				m.tick()
			}
			return m.done[call]
		}
		if err := errors.Join(settle(0), settle(1)); err != nil {
			t.Fatalf("the network loses one message, and a call ends with %v", err)
		}
		if m.calls.live+len(m.outbox.queue)+len(m.outbox.batches) > 0 {
			t.Fatalf("%d calls, %d commands and %d batches are left", m.calls.live, len(m.outbox.queue), len(m.outbox.batches))
		}
		for call, command := range m.command {
			switch n, err := m.applied[command], m.done[call]; {
			case n > 1, err == nil && n != 1, errors.Is(err, ErrRefused) && n > 0:
				t.Fatalf("%s was applied %d times, and its call ended with %v", command, n, err)
			}
		}
	})
}
