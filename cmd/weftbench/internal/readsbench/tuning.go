// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/leases"
)

// Phase is the result of a way to choose responders, while the load had one shape.
type Phase struct {
	// Number counts phases from 1 on.
	Number int           `json:"number"`
	Way    string        `json:"way"`
	Load   string        `json:"load"`
	Read   time.Duration `json:"read_mean_ns"`
	Write  time.Duration `json:"write_mean_ns"`
	Local  float64       `json:"local"`
	// Responders names the responders of each half of the keys at the end, besides the leader.
	Responders string `json:"responders"`
	Wrong      int    `json:"wrong"`
}

// shape is a distribution of the load over two halves of the keys, a and b. Clients near some sites
// use the keys of a, the other clients the keys of b.
type shape struct {
	about  string
	a      []uint64 // nodes whose clients use the keys of a
	writes float64
}

var shapes = []shape{
	{"a near UT and APT, 1% writes", []uint64{2, 5}, 0.01},
	{"a near SC and MA, 1% writes", []uint64{3, 4}, 0.01},
	{"a near SC and MA, 30% writes", []uint64{3, 4}, 0.3},
	{"a near UT and APT, 1% writes", []uint64{2, 5}, 0.01},
}

const (
	tuningKeys  = 100
	tuningEvery = 5 * time.Millisecond // between two ops near a node
	tuningPhase = 20                   // windows in a phase
)

// half returns the span of the half of the keys with a key.
func half(key int) leases.Span {
	if key < tuningKeys/2 {
		return leases.Span{End: keySpan(tuningKeys / 2).Start}
	}
	return leases.Span{Start: keySpan(tuningKeys / 2).Start}
}

// Tuning measures ways to choose responders while the load moves.
func (cfg *Config) Tuning(ctx context.Context) ([]Phase, error) {
	var rows []Phase
	for _, way := range []struct {
		name, policy string
		nodes        []leases.NodeID
		tuned        bool
	}{
		{"nobody (leader lease)", "leader lease", nil, false},
		{"all nodes", "roster, notes", []leases.NodeID{2, 3, 4, 5}, false},
		{"tuner", "roster, notes", nil, true},
	} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := setup{net: Networks()[1], policy: policy(way.policy), keys: tuningKeys, value: cfg.Value, seed: cfg.Seed, span: half}
		s.net.Responders = way.nodes
		if way.tuned {
			s.tuner = &leases.TunerConfig{Window: cfg.Time / 10, Least: 20}
		}
		phases, err := cfg.tune(s, way.name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, phases...)
	}
	fmt.Fprintln(cfg.Progress, "the tuner")
	return rows, nil
}

// tune runs all shapes of the load, one after another. Clients ask at a fixed rate, because clients
// that wait for an answer would ask less where answers take long.
func (cfg *Config) tune(s setup, way string) ([]Phase, error) {
	g, err := newGroup(s)
	if err != nil {
		return nil, err
	}
	phase := tuningPhase * cfg.Time / 10
	now := &shapes[0]
	for id := uint64(1); id <= uint64(len(g.nodes)); id++ {
		g.every(tuningEvery, g.c.Now()+time.Duration(len(shapes))*phase, func() {
			key := g.rng.IntN(tuningKeys / 2)
			if !slices.Contains(now.a, id) {
				key += tuningKeys / 2
			}
			g.begin(id, key, g.rng.Float64() < now.writes)
		})
	}
	var rows []Phase
	for i := range shapes {
		now = &shapes[i]
		// The tuner needs the first half of a phase to adapt.
		if err := g.c.Run(g.c.Now() + phase/2); err != nil {
			return nil, err
		}
		var cell Cell
		t := newTally(g)
		g.done = t.add
		if err := g.c.Run(g.c.Now() + phase/2); err != nil {
			return nil, err
		}
		t.measure(&cell)
		rows = append(rows, Phase{Number: i + 1, Way: way, Load: now.about, Read: cell.ReadMean, Write: cell.WriteMean, Local: cell.Local, Responders: g.roster(), Wrong: g.check.stale})
	}
	return rows, g.drain()
}

// roster names the responders of each span in the leader's newest roster.
func (g *group) roster() string {
	r := g.c.Core(g.net.Leader).LeaseStatus().Roster
	if r == nil {
		return "-"
	}
	var parts []string
	for _, a := range r.Spans {
		var sites []string
		for _, x := range a.Responders {
			if uint64(x.Node) != g.net.Leader {
				sites = append(sites, g.net.Sites[x.Node-1])
			}
		}
		name := "all"
		switch a.Span {
		case half(0):
			name = "a"
		case half(tuningKeys - 1):
			name = "b"
		}
		if len(sites) > 0 {
			parts = append(parts, name+": "+strings.Join(sites, " "))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}
