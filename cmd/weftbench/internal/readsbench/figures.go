// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// Load is the load of a figure of a paper.
type Load struct {
	// Network and Policy are names of [Networks] and of the policies.
	Network, Policy string
	Keys            int
	Writes          float64
	// Responders is the number of responders besides the leader, the nearest to the leader first;
	// 0: those of the network, and none if None is set.
	Responders int
	None       bool
	// Covered, if not 0, is the share of keys that have responders.
	Covered float64
}

// Measure runs a load.
func (cfg *Config) Measure(l Load) (Cell, error) {
	s, err := l.setup()
	if err != nil {
		return Cell{}, err
	}
	return cfg.run(s, l.Writes)
}

func (l Load) setup() (setup, error) {
	i := slices.IndexFunc(Networks(), func(n Network) bool { return n.Name == l.Network })
	p := policy(l.Policy)
	if i < 0 || p == nil {
		return setup{}, fmt.Errorf("no network %q, or no policy %q", l.Network, l.Policy)
	}
	s := setup{net: Networks()[i], policy: p, keys: l.Keys}
	if l.Responders > 0 || l.None {
		s.net.Responders = slices.Sorted(slices.Values(s.net.nearest()[:l.Responders]))
	}
	s.wanted = []leases.Want{{Nodes: s.net.Responders}}
	if l.Covered > 0 {
		end := binary.BigEndian.AppendUint32(nil, uint32(float64(l.Keys)*l.Covered))
		s.wanted[0].Span = leases.Span{Start: string(binary.BigEndian.AppendUint32(nil, 0)), End: string(end)}
	}
	return s, nil
}

// HoldsIn measures, in a network, how a write delays reads of its key, by policy.
func (cfg *Config) HoldsIn(network string, names []string) (rows []Hold, err error) {
	for _, name := range names {
		s, err := Load{Network: network, Policy: name, Keys: 1}.setup()
		if err != nil {
			return nil, err
		}
		row, err := cfg.hold(s.net, s.policy)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Op is an op of a client at a time.
type Op struct {
	Write bool
	Begun time.Duration
	Took  time.Duration
}

// RosterChange is what a client near the leader sees when a responder fails, and when the roster is
// changed by a call.
type RosterChange struct {
	Ops []Op
	// FailedHeld and CalledHeld are the longest writes after the responder failed, and after the roster
	// was changed.
	FailedHeld, CalledHeld time.Duration
	// LateReads is the number of reads that took more than 5 ms longer than a local one.
	LateReads, Reads int
	Wrong            int
}

const (
	changeRate   = 2500 * time.Microsecond
	changeFails  = 800 * time.Millisecond
	changeCalled = 7200 * time.Millisecond
	changeEnd    = 9 * time.Second
)

// ChangeRoster runs the failure and the change of a roster in the wide network: the responder at UT
// fails after 0.8 s, and after 7.2 s the responder at MA is taken out of the roster by a call.
func (cfg *Config) ChangeRoster(name string) (out RosterChange, err error) {
	s, err := Load{Network: "wan", Policy: name, Keys: 1000}.setup()
	if err != nil {
		return out, err
	}
	s.seed, s.value, s.work, s.read = cfg.Seed, cfg.Value, messageWork, readWork
	g, err := newGroup(s)
	if err != nil {
		return out, err
	}
	start := g.c.Now()
	g.onDone(func(o *op) { out.saw(o, start, s.net.Client) })
	g.every(changeRate, start+changeEnd, func() { g.begin(s.net.Leader, g.rng.IntN(s.keys), g.rng.IntN(2) == 0) })
	g.c.At(start+changeFails, func() { g.c.Kill(2) })
	var refused error
	g.c.At(start+changeCalled, func() {
		refused = g.c.Do(s.net.Leader, 0, func(rn *raft.RawNode) {
			if err := rn.SetResponders([]leases.Want{{Nodes: []leases.NodeID{5}}}); err != nil {
				g.check.first = err.Error()
			}
		})
	})
	if err := g.c.Run(start + changeEnd); err != nil {
		return out, err
	}
	if refused != nil || g.check.first != "" {
		return out, fmt.Errorf("the roster is not changed: %w %s", refused, g.check.first)
	}
	if err := g.c.Restart(2); err != nil {
		return out, err
	}
	if err := g.drain(); err != nil {
		return out, err
	}
	out.Wrong = g.check.wrong()
	return out, nil
}

// saw counts an op.
func (out *RosterChange) saw(o *op, start, client time.Duration) {
	x := Op{o.write, o.begun - start, o.latency()}
	out.Ops = append(out.Ops, x)
	switch {
	case !o.write:
		out.Reads++
		if x.Took > client+5*time.Millisecond {
			out.LateReads++
		}
	case x.Begun+x.Took < changeFails:
	case x.Begun < changeCalled-time.Second:
		out.FailedHeld = max(out.FailedHeld, x.Took)
	default:
		out.CalledHeld = max(out.CalledHeld, x.Took)
	}
}
