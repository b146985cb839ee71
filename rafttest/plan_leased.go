// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"time"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// leasedPlan is what a seed draws about leases. Plans without leases have none.
type leasedPlan struct {
	cfg    raft.Leases // of a process with the longest leases
	spans  bool        // reads and entries tell their keys
	rates  [maxNodes + 1]float64
	ambush float64 // chance of a fault where a message of leases matters
	rename time.Duration
	retire float64 // chance that an operator switches leases off and on again
	probe  time.Duration
	late   uint // the nodes without leases, by bit: they grant nothing
	// retune is how often an operator switches the tuner; 0: there is none.
	retune time.Duration
	tuning world.Draws
	// unfit is how often some node's clock leaves its bound; 0: none does.
	unfit  time.Duration
	clocks world.Draws
}

// drawLeased draws a plan with leases over a plan without. The draws have a stream
// of their own.
func (p *plan) drawLeased(d world.Draws, beyond float64) {
	p.preVote, p.checkQuorum, p.lease = true, true, false
	if voters := world.Pick(d, 1, 2, 3, 3, 3, 4, 5, 5, 6, 7); p.coded == nil {
		p.voters = voters
	}
	p.spares = min(d.IntN(4), maxNodes-p.voters)
	p.duration = d.Span(time.Second, 3*time.Second)
	p.links.Most = min(p.links.Most, 8*time.Millisecond)
	p.links.Least = min(p.links.Least, p.links.Most/2)
	p.syncMax, p.syncMin = min(p.syncMax, 4*time.Millisecond), min(p.syncMin, time.Millisecond)
	p.drift = min(p.drift, 0.2)
	p.outage = d.Span(100*time.Millisecond, time.Second)
	for _, mean := range []*time.Duration{&p.crash, &p.partition, &p.oneWay, &p.isolate, &p.pause, &p.slowDsk, &p.membership, &p.transfer, &p.campaign, &p.forget} {
		*mean /= 4 // runs are brief
	}
	l := &leasedPlan{
		spans:  d.Chance(0.5),
		ambush: d.Rate(0.5, 0.005, 0.2),
		rename: d.Every(0.6, 50*time.Millisecond, time.Second),
		retire: world.Pick(d, 0, 0, 0.1),
		probe:  d.Span(2*time.Millisecond, 20*time.Millisecond),
	}
	if d.Chance(0.1) {
		l.late = uint(d.IntN(1 << maxNodes))
	}
	for l.cfg.Tick == 0 || (&raft.Config{ID: 1, ElectionTick: electionTicks, HeartbeatTick: p.heartbeatTick, MaxInflightMsgs: 1,
		Storage: raft.NewMemoryStorage(), PreVote: true, CheckQuorum: true, Clock: struct{ raft.Clock }{}, Leases: &l.cfg}).Validate() != nil {
		l.cfg = raft.Leases{
			Tick: tickTime, Boot: 1,
			Lease:      d.Span(60*time.Millisecond, 300*time.Millisecond),
			Heartbeat:  d.Span(5*time.Millisecond, 25*time.Millisecond),
			Fail:       d.Span(30*time.Millisecond, 120*time.Millisecond),
			Hold:       world.Pick(d, 0, time.Millisecond, time.Second),
			DriftPPM:   world.Pick(d, 1000, 20_000, 100_000),
			Resolution: world.Pick(d, time.Microsecond, time.Millisecond),
			Notes:      d.Chance(0.5),
			Wanted:     someWanted(d, p.voters+p.spares),
		}
		if beyond > 0 {
			l.cfg.DriftPPM = 100_000
		}
	}
	rho := float64(l.cfg.DriftPPM) / 1e6 * max(beyond, 1)
	for id := range l.rates {
		l.rates[id] = max(0.05, 1+rho*world.Pick(d, -1, -1, 0, 1, 1, 2*d.Float64()-1))
	}
	p.leased = l
}

// drawTuner has a quarter of the runs with leases choose responders by where keys are read,
// and an operator switch that on and off. The draws have a stream of their own.
func (l *leasedPlan) drawTuner(d world.Draws) {
	if !d.Chance(0.25) {
		return
	}
	l.tuning, l.retune = d, d.Span(30*time.Millisecond, 400*time.Millisecond)
	l.cfg.Tuner = &leases.TunerConfig{Window: d.Span(20*time.Millisecond, 150*time.Millisecond), Spans: d.Between(1, 5), Least: d.Between(1, 6)}
	if d.Chance(0.5) {
		l.cfg.Wanted = nil
	}
}

// someWanted draws responders, for all keys or for two parts of them.
func someWanted(d world.Draws, nodes int) []leases.Want {
	some := func() (ids []leases.NodeID) {
		for id := range nodes {
			if d.Chance(0.5) {
				ids = append(ids, leases.NodeID(id+1))
			}
		}
		return ids
	}
	if d.Chance(0.5) {
		at := keyName(uint8(1 + d.IntN(3)))
		return []leases.Want{{Span: leases.Span{End: at}, Nodes: some()}, {Span: leases.Span{Start: at}, Nodes: some()}}
	}
	return []leases.Want{{Nodes: some()}}
}

func keyName(key uint8) string { return string(rune('a' + key)) }

// spansOf returns the keys of a command: every key if the data are no command.
func spansOf(data []byte) []leases.Span {
	c, err := decodeCommand(data)
	if err != nil {
		return nil
	}
	return []leases.Span{leases.KeySpan(keyName(c.key))}
}
