// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft/internal/leasing"
)

// MsgLeases is the type of messages about leases. Their Term is 0 on the wire, so that a
// node which does not know the type ignores them. A node sends some to itself, which
// wait for its disk.
const MsgLeases pb.MessageType = leasing.MsgLeases

// Leases turns roster leases on: nodes other than the leader answer linearizable reads
// from their own state, without a message ([RawNode.ReadIndex]). Package
// [github.com/weftraft/weft/leases] says how, docs/roster-leases.md when it is worth it.
//
// Leases need [Config.Clock], [Config.PreVote] and [Config.CheckQuorum]. All members should
// have the same settings; members without leases grant none. Before leases are switched off
// at a member that restarts they are retired ([RawNode.RetireLeases]).
//
// Reads are linearizable as long as the clocks of all members run as DriftPPM and
// Resolution say, and go on while a process is paused, or the system suspended. Where a
// virtual machine is paused together with its clock leases must be off.
type Leases struct {
	// Tick is how often the host calls Tick; not 0. Leases go by the clock, but know from
	// it how long an election timeout is.
	Tick time.Duration
	// Boot differs in every run of this node. 0: 8 random bytes of crypto/rand. A host
	// that wants a node to be a function of its inputs counts its starts.
	Boot uint64
	// Lease is the longest time for which a grant binds its grantor; 0 means 1 s. No
	// lease outlives ElectionTick-1 ticks without a word of the leader.
	Lease time.Duration
	// Quarantine is the time after a start for which the node does not vote, campaign
	// or grant; 0 means Lease, and less is refused. After Lease was lowered, Quarantine
	// is the longest Lease of earlier runs, until a run has outlived its quarantine.
	Quarantine time.Duration
	// Heartbeat is how often leases are renewed; 0 means HeartbeatTick ticks. At most
	// a third of Lease, and of the election timeout, less what drift takes off; at least Tick.
	Heartbeat time.Duration
	// Fail is the time for which a responder may keep a write waiting before the
	// leader removes it; 0 means 500 ms, or 4 heartbeats if that is more. At
	// least 2 heartbeats, and 4 ticks. A write waits for a responder that died for Fail, two
	// ticks and Lease at most. A responder that keeps writes waiting for half of Fail again and
	// again is removed, too.
	Fail time.Duration
	// Hold is how long a read waits here to be answered, because this node has no
	// lease at the moment, or what it has to wait for is not committed, before it goes
	// to the leader; 0 means Heartbeat, and more than an hour is an hour.
	Hold time.Duration
	// DriftPPM bounds the rates of the clocks of all members, in microseconds a second,
	// at most 250,000; 0 means 1000. If Config.Clock has a method Fit() error, as that of
	// [github.com/weftraft/weft/leases/clock.Watched], it is asked at each tick, and while it
	// returns an error the node answers no read by a lease and grants none.
	DriftPPM int
	// Resolution is how far a reading may be behind the clock; 0 means 1 ms. Like Lease, Quarantine, Fail and
	// ElectionTick-1 ticks, it is at most an hour.
	Resolution time.Duration
	// Notes turns on early accept notes: nodes tell responders, too, what they hold,
	// and a responder knows half a round trip sooner what is committed. Reads at the leader
	// may have to wait for writes under way. The same at all members.
	Notes bool
	// Wanted is the responders that a leader names if it knows no roster of an earlier
	// leader; see [RawNode.SetResponders]. [leases.AllVoters] stands for all voters.
	Wanted []leases.Want
	// Retired has this node, whenever it becomes leader, begin as after
	// RetireLeases(true). A group whose members were all restarted with Retired, one by
	// one, can be restarted without leases as soon as LeaseStatus.Retired is true at the
	// leader.
	Retired bool
	// Tuner, if set, has responders chosen by where spans are read. nil: the tuner is off
	// until SetResponders switches it on.
	Tuner *leases.TunerConfig
	// Spans, if set, returns the keys that a payload writes: every key if it
	// returns nil. Of a coded entry it gets the clear prefix. It must never leave out
	// a key; one too many costs time. Each member goes by its own Spans, which nobody
	// compares, and during an upgrade gets payloads of later versions: of a payload that
	// it does not know to the end Spans returns nil. nil: a payload writes every key.
	Spans func(data []byte) []leases.Span
	// Served, if set, is told of each read of this node's host that the node answers by
	// its own lease, as the leader or as a responder, before its ReadState is in a Ready.
	// rctx is what the host passed to ReadIndex.
	Served func(rctx []byte, leads bool)
}

// mistakes calls refuse for each field that is out of its bounds.
func (l *Leases) mistakes(c *Config, refuse func(wrong bool, format string, args ...any)) {
	refuse(c.Clock == nil, "Leases need a Clock; set Config.Clock to one that counts the time for which the system is suspended")
	refuse(!c.PreVote, "Leases need PreVote: without it a node that comes back ends all leases")
	refuse(!c.CheckQuorum, "Leases need CheckQuorum: without it any candidate ends all leases")
	refuse(l.Tick <= 0, "Leases.Tick is %v; it must be the time between two calls of Tick", l.Tick)
	refuse(l.Heartbeat > 0 && l.Heartbeat < l.Tick, "Leases.Heartbeat is %v; it must be 0 (meaning HeartbeatTick ticks) or at least Tick, %v, because leases are renewed at ticks", l.Heartbeat, l.Tick)
	refuse(l.Fail > 0 && l.Fail < 4*l.Tick, "Leases.Fail is %v; it must be 0 (meaning 500 ms, or 4 heartbeats) or at least 4 ticks, %v, because silence is noticed at ticks", l.Fail, 4*l.Tick)
	refuse(l.Hold < 0, "Leases.Hold is %v; it must be 0 (meaning Heartbeat) or more", l.Hold)
	if l.Tick > 0 && c.ElectionTick > 1 && c.HeartbeatTick > 0 && c.ID != None {
		s := l.settings(c)
		s.Boot = max(s.Boot, 1) // if 0, it is drawn as the node starts
		if err := s.Validate(); err != nil {
			refuse(true, "Leases: %w", err)
		}
	}
}

// settings are those of package leases, with a Boot of 0 as it is.
func (l *Leases) settings(c *Config) leases.Config {
	s := leases.Config{
		ID: leases.NodeID(c.ID), Boot: leases.Boot(l.Boot), Lease: l.Lease, Quarantine: l.Quarantine, Heartbeat: l.Heartbeat, Fail: l.Fail,
		ElectionTimeout: time.Duration(c.ElectionTick-1) * l.Tick, // by ticks, a node may be that early
		DriftPPM:        l.DriftPPM, Resolution: l.Resolution, Notes: l.Notes, Wanted: l.Wanted, Retired: l.Retired, Tuner: l.Tuner,
	}
	if s.Heartbeat == 0 {
		s.Heartbeat = time.Duration(c.HeartbeatTick) * l.Tick
	}
	if s.Fail == 0 {
		s.Fail = max(500*time.Millisecond, 4*s.Heartbeat)
	}
	return s
}

// fitClock is a Clock that is watched. Fit returns why the clock cannot carry leases, or nil.
type fitClock interface{ Fit() error }

// lease lays leases over what the node has, if the configuration asks for them.
func (r *raft) lease() error {
	l := r.cfg.Leases
	if l == nil {
		return nil
	}
	below, prefix := r.extension, -1
	if r.cfg.Coding != nil {
		prefix = r.cfg.Coding.ClearPrefix
	}
	settings := l.settings(&r.cfg)
	if settings.Boot == 0 {
		settings.Boot = leases.Boot(randomBoot())
	}
	cfg := leasing.Config{
		Leases: settings, Clock: r.cfg.Clock.Now, Spans: l.Spans, Hold: min(l.Hold, time.Hour), Served: l.Served, CommittableBy: below.CommittableBy,
		Clear: func(e *pb.Entry) []byte {
			if data := e.GetData(); prefix < 0 || !ecraft.IsEnvelope(data, prefix) {
				return data
			}
			return e.GetData()[:prefix]
		},
	}
	if c, ok := r.cfg.Clock.(fitClock); ok {
		cfg.Fit, cfg.Warn = c.Fit, r.cfg.Logger.Warningf
	}
	if cfg.Hold == 0 {
		cfg.Hold = cfg.Leases.Heartbeat
	}
	x, err := leasing.New(r.id, cfg, shownLog{r.log}, shownRaft{r}, r.term == 0 && r.vote == None)
	if err != nil {
		return err
	}
	r.extension = &both{extension: below, leases: x}
	return nil
}
