// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// hostProcess is replica.Replica, driven by world.Drive: the very code behind the
// decisions of a rawnode.Host. Turns take no time here. The rest of a host (disk,
// state machine, sockets) is the simulator's: see stages.go. This file is the input,
// and the ends of calls.
type hostProcess struct {
	n     *node
	s     *sim
	drive *world.Drive
	// core is what the replica drives, under the checker's eyes.
	core *checkedCore
	// replica is the state machine. Its conf is the core's.
	machine
	// hostBytes is what the replica wants kept beside the state.
	hostBytes []byte

	calls    map[replica.Call]func(replica.Done)
	nextCall replica.Call

	writes   writeQueue
	flushing bool // a copy of the state is on its way to the disk
}

// keptState is the state machine's own storage, as found at a start.
type keptState struct {
	index       uint64
	host, store []byte
}

const hostGroup = 1

var _ process = (*hostProcess)(nil)

func newHostProcess(n *node) *hostProcess {
	s := n.s
	p := &hostProcess{n: n, s: s, calls: map[replica.Call]func(replica.Done){}}
	p.store.noSessions = s.opts.Bug == noSessions
	p.conf = &pb.ConfState{}
	if n.kept.index > 0 {
		if err := p.store.decode(n.kept.store); err != nil {
			s.fail(noPanic, "node %d: kept state: %v", n.id, err)
			return p
		}
		p.applied, p.hostBytes = n.kept.index, n.kept.host
		s.check.equal(n, p.applied, p.store.digest())
	}
	cfg := p.config()
	w, err := replica.PrepareLog(cfg)
	if err != nil {
		s.fail(noPanic, "node %d does not prepare its log: %v", n.id, err)
		return p
	}
	if w != nil {
		hs := hardStateOf(w.HardState)
		n.disk.writeAll(w.Snapshot, w.Entries, &hs, true)
		n.disk.sync(len(n.disk.pending))
	}
	s.check.started(n, p.applied)
	r, err := replica.New(cfg)
	if err != nil {
		s.fail(noPanic, "node %d does not start: %v", n.id, err)
		return p
	}
	p.drive = world.NewDrive(r, p, world.DriveOptions{Group: hostGroup, ID: n.id, Life: n.incarnation, Patience: p.patience()})
	p.conf = confOf(p.core.Members())
	p.applied = max(p.applied, n.disk.live.baseIndex)
	return p
}

// config returns the node's configuration, as the plan drew it.
func (p *hostProcess) config() replica.Config {
	pl, bound := &p.s.plan, func(v uint64, most int) int { return int(min(max(v, 1), uint64(most))) }
	cfg := replica.Config{Applied: p.n.kept.index, HostState: p.n.kept.host, Settings: replica.Settings{
		ID: p.n.id, Group: hostGroup,
		Core:            p.newCore,
		Log:             hostLog{p.n.disk},
		Boot:            p.n.incarnation,
		ElectionTick:    electionTicks,
		HeartbeatTick:   pl.heartbeatTick,
		NoPreVote:       !pl.preVote,
		NoCheckQuorum:   !pl.checkQuorum,
		MaxCommandBytes: 4096,
		MaxBatchBytes:   bound(pl.maxSizePerMsg, 4096),
		MaxBatches:      pl.maxInflightMsgs,
		MaxAppendBytes:  bound(pl.maxSizePerMsg, 1<<20),
		MaxInflightMsgs: pl.maxInflightMsgs,
		MaxApplyBytes:   bound(pl.maxCommittedSizePerReady, 1<<20),
		RetainEntries:   max(pl.trailing, 1),
		Rand:            p.n.rand,
		Logger:          silent.Logger{Say: p.n.log, Die: die},
	}}
	if pl.maxUncommittedEntriesSize > 0 {
		cfg.MaxUncommittedBytes = int(pl.maxUncommittedEntriesSize)
		cfg.MaxQueueBytes = 8192
		cfg.MaxCalls = 16
	}
	if p.n.id <= uint64(pl.voters) {
		cfg.Peers = p.s.foundingConf().GetVoters()
	}
	return cfg
}

func (p *hostProcess) state() *machine { return &p.machine }

func (p *hostProcess) leads() bool { return p.core != nil && p.core.State().Role == raft.StateLeader }

// post gives the replica an input, which is a turn.
func (p *hostProcess) post(do func(*replica.Replica)) { p.drive.Post(0, do) }

// Now implements world.Surroundings, as the methods below and those of stages.go do.
func (p *hostProcess) Now() time.Duration { return p.s.Now() }

// Work does a task at once.
func (p *hostProcess) Work(t world.Task) {
	_, effect := t()
	effect()
}

// Later plans a call at the process.
func (p *hostProcess) Later(d time.Duration, happen func()) { p.n.later(d, happen) }

// TurnBegins costs nothing.
func (p *hostProcess) TurnBegins() time.Duration { return 0 }

// Flushed ends the run if the replica is out of service.
func (p *hostProcess) Flushed(err error) (goOn bool) {
	if err != nil {
		p.s.fail(noPanic, "node %d is out of service: %v", p.n.id, err)
	}
	return p.s.failure == nil
}

// TurnEnds begins the writes of a turn.
func (p *hostProcess) TurnEnds() {
	p.startWrites()
	p.membersChanged()
}

// membersChanged looks whether the core goes by other members than before.
func (p *hostProcess) membersChanged() {
	if !p.core.changed {
		return
	}
	p.core.changed = false
	wasMember := p.member(p.n.id)
	p.conf = p.core.conf
	p.s.story.Tell(p.n.id, "members %v at %d", confString(p.conf), p.core.emitted)
	p.s.check.configured(p.n, p.core.emitted, p.conf)
	if wasMember && !p.member(p.n.id) {
		p.n.retire()
	}
}

// begin notes a call of a user.
func (p *hostProcess) begin(end func(replica.Done)) (replica.Call, replica.Deadline) {
	p.nextCall++
	p.calls[p.nextCall] = end
	return p.nextCall, p.s.Now() + p.s.rng.Within(100*time.Millisecond, time.Second)
}

// Ended takes the end of a call: there is exactly one.
func (p *hostProcess) Ended(d replica.Done) {
	end := p.calls[d.Call]
	if end == nil {
		p.s.fail(verdicts, "node %d ends call %d, which it does not have, or not any more", p.n.id, d.Call)
		return
	}
	delete(p.calls, d.Call)
	switch {
	case errors.Is(d.Err, replica.ErrRefused):
		p.s.reach.Refusals++
	case d.Err != nil:
		p.s.reach.UnknownVerdicts++
	}
	end(d)
}

func (p *hostProcess) tick() {
	p.post(func(r *replica.Replica) { r.Tick(p.s.Now()) })
	p.drive.Expire()
}

func (p *hostProcess) propose(c command, reply func(result)) {
	call, deadline := p.begin(func(d replica.Done) {
		p.s.story.Aside(p.n.id, "sending %d of %v ends: %v at %d, %v", c.attempt, c.id, d.Result, d.Index, d.Err)
		switch {
		case d.Err == nil:
			reply(d.Result.(result))
		case errors.Is(d.Err, replica.ErrRefused) && c.attempt != 0:
			p.s.check.refused(p.n, c.attempt)
		}
	})
	p.s.story.Aside(p.n.id, "sending %d of %v", c.attempt, c.id)
	p.post(func(r *replica.Replica) { r.Propose(call, c.encode(), deadline) })
}

func (p *hostProcess) read(reply func()) {
	if p.s.opts.Bug == staleReads {
		reply()
		return
	}
	call, deadline := p.begin(func(d replica.Done) {
		if d.Err == nil {
			reply()
		}
	})
	p.post(func(r *replica.Replica) { r.Read(call, deadline) })
}

func (p *hostProcess) change(cc pb.ConfChangeI) {
	call, deadline := p.begin(func(replica.Done) {})
	p.post(func(r *replica.Replica) { r.ProposeConfChange(call, cc.AsV2(), deadline) })
}

func (p *hostProcess) transfer(to uint64) {
	call, deadline := p.begin(func(replica.Done) {})
	p.post(func(r *replica.Replica) { r.TransferLeader(call, to, deadline) })
}

func (p *hostProcess) campaign() {
	p.post(func(r *replica.Replica) { _ = r.Campaign() }) // a refusal is as well
}

func (p *hostProcess) forget() {
	p.post(func(*replica.Replica) { _ = p.core.ForgetLeader() }) // without effect on leaders
}
