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
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// member is one group at one node in one life of its process: the real
// replica.Replica on the real log, with the simulator in the place of the
// goroutines, the clock, and the network.
type member struct {
	n     *node
	g     *group
	life  uint64
	r     *replica.Replica
	drive *world.Drive
	core  replica.Core
	log   *storage.Group
	role  raft.StateType               // when last looked at
	own   struct{ term, index uint64 } // the last entry appended as a leader

	commits commits

	bytes    [wire.NumClasses]int // of messages that wait for a turn
	blocking []func()             // connections that wait for room for their messages
	ticking  bool                 // a tick waits for a turn

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
	keeping bool   // a copy of the state is on its way to the disk

	unstored unstored // entries handed to the log
	writes   uint64   // handed to the log
	names    replica.NameCounts
	joined   uint64 // appends to readers, as of the last count
}

// keptState is a state machine's own storage, as found at a start.
type keptState struct {
	index   uint64
	host    []byte
	encoded []byte
}

func newMember(n *node, g *group) (*member, error) {
	p := &n.w.plan
	m := &member{n: n, g: g, life: n.life, calls: map[replica.Call]pendingCall{}}
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
	m.state.noTable = n.w.opts.Bug == noSessions
	if m.log, err = n.disk.engine.Group(g.id); err != nil {
		return nil, err
	}
	if err = m.looksBack(kept); err != nil {
		return nil, err
	}
	cfg := m.config(kept)
	w, err := replica.PrepareLog(cfg)
	if err == nil && w != nil && (n.w.opts.Bug != stateAhead || kept.index == 0) {
		err = m.writeNow(*w)
	}
	if err == nil {
		err = m.found(w)
	}
	if err == nil {
		m.r, err = replica.New(cfg)
	}
	if err == nil {
		m.drive = world.NewDrive(m.r, m, world.DriveOptions{
			Group: g.id, ID: n.id, Life: n.life, Patience: 5 * electionTime, Fetches: n.w.plan.fetching(n.id), FetchCounts: &n.w.fetched,
		})
		m.catchesUp()
		_ = m.r.Stalled(n.disk.stalled)
		m.local = m.localReads(cfg)
	}
	return m, err
}

// found takes the log as it is at the start, after the write that has begun the log anew, if there was one.
func (m *member) found(anew *storage.Write) error {
	h := m.g.heldBy(m.n)
	var err error
	switch {
	case m.n.disk.damage == nil:
		err = h.found(m.log)
	case anew != nil: // the log before the damage counts, as an operator repairs the files, and then this write
		err = h.durable(*anew)
	}
	if err != nil {
		return err
	}
	m.commits.logged(h.entries)
	return nil
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
		MaxUncommittedBytes: p.uncommitted, MaxApplyBytes: p.applyBytes, MaxEarlyApplyBytes: p.earlyBytes,
		RetainEntries: p.retainEntries, RetainBytes: p.retainBytes,
		Coding: m.coded(), Placement: m.n.place,
		Rand: m.n.rand,
	}, EncodeResult: encodeAnswer}
	if p.gates.busy {
		cfg.Busy, cfg.Tick = func() float64 { return 1 }, tickTime
	}
	m.leased(&cfg)
	cfg.Names, cfg.Hold = m.named(), p.naming.hold
	if p.repeats.keepsMuch(m.n.id) {
		cfg.RetainEntries, cfg.RetainBytes = 10_000, 16<<20
	}
	if w.opts.Bug == noQueueBudget {
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
		m.plantEarly(&rc)
		core, err := newCore(rc)
		m.core = core
		return core, err
	}
	return cfg
}

// Now implements world.Surroundings, as the methods below do.
func (m *member) Now() time.Duration { return m.n.w.Now() }

// Work gives the processor a task.
func (m *member) Work(t world.Task) { m.n.cpu.Add(t) }

// Later plans a call at the process.
func (m *member) Later(d time.Duration, happen func()) { m.n.after(d, happen) }

// TurnBegins makes room for inputs: a turn has taken those that waited.
func (m *member) TurnBegins() time.Duration {
	m.atDoor.calls, m.atDoor.bytes = 0, 0
	m.bytes = [wire.NumClasses]int{}
	m.unblock()
	return m.n.w.plan.costs.Turn
}

// unblock lets connections go on that waited for room.
func (m *member) unblock() {
	waiting := m.blocking
	m.blocking = nil
	for _, again := range waiting {
		again()
	}
}

// Flushed publishes the permits of a turn. A replica that is out of service is a
// finding, unless its log is damaged.
func (m *member) Flushed(err error) (goOn bool) {
	m.publish()
	if err != nil && !m.n.metDamage(err) {
		m.n.w.fail(noFailure, "%v, group %d is out of service: %v", m.n, m.g.id, err)
	}
	return err == nil
}

// TurnEnds looks at what has become of the replica.
func (m *member) TurnEnds() {
	status := m.r.Brief()
	if status.Role == raft.StateLeader && m.role != raft.StateLeader {
		m.g.elected(m.n, status.Term)
		m.meets(momentElected)
	}
	m.role = status.Role
	m.gauges(&status)
	m.looksAtCommit(&status)
	m.countNames()
}

// Send is the send stage: encoding and writing take time.
func (m *member) Send(messages []wire.Message) {
	c := &m.n.w.plan.costs
	var cost time.Duration
	for _, msg := range messages {
		if b, ok := msg.RaftBody(); ok {
			m.sending(b.Message)
			m.sends(b.Message)
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

// Append gives work to the log.
func (m *member) Append(a *replica.Append) {
	m.appends(a.Write.Entries)
	m.commits.logged(a.Write.Entries)
	m.writes++
	m.unstored.hand(m.writes, a.Write)
	number := m.writes
	c := &m.n.w.plan.costs
	var cost time.Duration
	for _, e := range a.Write.Entries {
		cost += c.Entry + per(proto.Size(e), c.LogKiB)
	}
	m.n.cpu.Add(func() (time.Duration, func()) {
		return cost, func() { m.n.disk.put(logWork{m: m, append: a, number: number}) }
	})
}

// Compact gives work to the log.
func (m *member) Compact(c *replica.Compact) {
	m.drops(c)
	m.n.cpu.Add(func() (time.Duration, func()) { return 0, func() { m.n.disk.put(logWork{m: m, compact: c}) } })
}

// receive takes a message from a connection. The result is false if there is no
// room for the message now.
func (m *member) receive(msg wire.Message) bool {
	w := m.n.w
	class, size := msg.Class(), msg.Size()
	if m.bytes[class] >= w.plan.receiveBytes && w.opts.Bug != noInboxBudget {
		if class != wire.ClassControl {
			return false
		}
		w.reach.InboxDrops++
		return true
	}
	c := &w.plan.costs
	m.bytes[class] += size
	m.drive.Post(c.Received+c.Message+per(size, c.WireKiB+c.LoopKiB), func(*replica.Replica) { m.message(msg) })
	return true
}

// message hands a message to the replica.
func (m *member) message(msg wire.Message) {
	w := m.n.w
	if p, ok := msg.Body.(wire.Proposal); ok && w.opts.Bug == termIgnored {
		p.Term = m.core.State().Term
		msg.Body = p
	}
	if err := m.drive.Deliver(msg); err != nil {
		w.fail(noFailure, "%v refuses a message of node %d: %v", m.n, msg.From, err)
	}
	m.appendAgain(msg)
}

// ticked lets a tick pass. A tick still waiting for the loop swallows the next.
func (m *member) ticked() {
	if !m.ticking {
		m.ticking = true
		m.drive.Post(0, func(r *replica.Replica) {
			m.ticking = false
			m.passTick(r)
			r.Tick(m.n.w.Now())
		})
	}
	m.drive.Expire()
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
		if w.opts.Bug != noQueueBudget {
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
	m.drive.Post(c.Call+per(bytes, c.LoopKiB), func(r *replica.Replica) { do(r, id, by) })
}

// Ended takes the end of a call: there is exactly one.
func (m *member) Ended(d replica.Done) {
	w := m.n.w
	c, ok := m.calls[d.Call]
	if !ok {
		w.fail(verdicts, "%v ends call %d twice", m.n, d.Call)
		return
	}
	delete(m.calls, d.Call)
	w.late = max(w.late, w.Now()-c.deadline)
	var ce *replica.CallError
	switch {
	case d.Err == nil:
	case !errors.As(d.Err, &ce):
		w.fail(verdicts, "%v: a call ends with an error that has no verdict: %v", m.n, d.Err)
	case errors.Is(d.Err, replica.ErrRefused):
		w.reach.Refused++
	default:
		w.reach.Unknown++
		if w.opts.Bug == refusedLate {
			d.Err = &replica.CallError{Op: ce.Op, Verdict: replica.ErrRefused, Cause: ce.Cause}
		}
	}
	if errors.Is(d.Err, replica.ErrOverloaded) {
		w.reach.Overloaded++
	}
	c.end(d)
}

// here reports whether the member still runs.
func (m *member) here() bool { return m.n.up && m.n.life == m.life && !m.drive.Stopped() }

// conf returns the members that the replica goes by.
func (m *member) conf() *pb.ConfState { return m.r.Members() }
