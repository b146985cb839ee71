// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/leases"
)

var deadLeaders = flag.Uint64("deadleaders", 3, "how many leaders TestReadsGoOnWhileLeadersDie kills in each case")

// The window of reads after the kill, and how long a read may take. With the defaults of a Host,
// where an election timeout is a second, these are 2 s.
const (
	afterKill    = 2 * electionTime
	readDeadline = 2 * electionTime
)

// deadLeaderCase is how nodes read, and whether leases and writes are on.
type deadLeaderCase struct {
	name   string
	nodes  int
	leases bool
	writes bool
	policy replica.ReadPolicy
	least  float64 // the share of reads that must be answered within an election timeout
}

// measuredReads are reads that began in the window, at one kind of node.
type measuredReads struct {
	begun int
	took  []time.Duration // of those that were answered
}

func (m *measuredReads) within(d time.Duration) float64 {
	n := 0
	for _, t := range m.took {
		if t <= d {
			n++
		}
	}
	return float64(n) / float64(m.begun)
}

// quantile counts a read without an answer as one that took longer than all others.
func (m *measuredReads) quantile(q float64) string {
	slices.Sort(m.took)
	i := int(q * float64(m.begun))
	if i >= len(m.took) {
		return "none"
	}
	return m.took[i].Round(10 * time.Microsecond).String()
}

// TestReadsGoOnWhileLeadersDie kills leaders and reads at each surviving node, in virtual time, by
// each policy, and prints which share of the reads is answered, and how fast. An election timeout of
// the simulator is a tenth of a Host's.
func TestReadsGoOnWhileLeadersDie(t *testing.T) {
	var cases []deadLeaderCase
	for _, nodes := range []int{3, 5} {
		for _, writes := range []bool{false, true} {
			cases = append(cases,
				deadLeaderCase{name: "ReadIndex", nodes: nodes, writes: writes, policy: replica.ReadIndex{}},
				deadLeaderCase{name: "AtResponder", nodes: nodes, leases: true, writes: writes, policy: replica.AtResponder{}, least: 0.99},
				deadLeaderCase{name: "LeaderLease", nodes: nodes, leases: true, writes: writes, policy: replica.LeaderLease{}},
				deadLeaderCase{name: "QuorumRead", nodes: nodes, writes: writes, policy: replica.QuorumRead{}},
			)
		}
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "nodes\tpolicy\tleases\twrites\treads\twithin 1/100\t1/10\t1/1 timeout\tanswered\tmedian\tp99\tworst node\t")
	for _, c := range cases {
		all, worst := &measuredReads{}, 1.0
		for seed := uint64(1); seed <= *deadLeaders; seed++ {
			for _, m := range readsAfterKill(t, seed, c) {
				all.begun += m.begun
				all.took = append(all.took, m.took...)
				worst = min(worst, m.within(readDeadline))
			}
		}
		fmt.Fprintf(table, "%d\t%s\t%t\t%t\t%d\t%.2f%%\t%.2f%%\t%.2f%%\t%.2f%%\t%s\t%s\t%.2f%%\t\n", c.nodes, c.name, c.leases, c.writes, all.begun,
			100*all.within(electionTime/100), 100*all.within(electionTime/10), 100*all.within(electionTime), 100*all.within(readDeadline),
			all.quantile(0.5), all.quantile(0.99), 100*worst)
		require.NotZero(t, all.begun)
		assert.GreaterOrEqual(t, all.within(electionTime), c.least, "%+v", c)
	}
	require.NoError(t, table.Flush())
	t.Logf("reads begun within %v of %d kills a row; an election timeout is %v\n%s", afterKill, *deadLeaders, electionTime, out.String())
}

// readsAfterKill kills a leader, and returns the reads at each surviving node.
func readsAfterKill(t *testing.T, seed uint64, c deadLeaderCase) (reads []*measuredReads) {
	s := newScenario(t, seed, func(p *plan) {
		p.voters = c.nodes
		p.costs.Delay = 100 * time.Microsecond
		if c.leases {
			p.leasing = leasing{on: true, lease: electionTime, fail: electionTime / 2, driftPPM: 1000, notes: true, spans: true}
		}
	})
	g := s.groups[0]
	if c.writes {
		for range 4 {
			s.addClient(g)
		}
	}
	s.pass(5 * electionTime)
	leader := g.leading()
	require.NotNil(t, leader)
	if c.leases {
		s.reaches(5*electionTime, "all nodes answer by leases", func() bool {
			for _, id := range g.founders {
				if r, ok := s.node(id).members[g.id].local.Read(&replica.ReadOptions{}); !ok || r.By == replica.ServedByLeader {
					return false
				}
			}
			return true
		})
		leader = g.leading()
	}
	leader.n.crash(false)
	end := s.Now() + afterKill
	for _, id := range g.founders {
		if id != leader.n.id {
			m := &measuredReads{}
			reads = append(reads, m)
			s.readAt(s.node(id).members[g.id], m, end, c)
		}
	}
	s.pass(afterKill + readDeadline + electionTime)
	return reads
}

// readAt begins a read at a node each hundredth of an election timeout.
func (s *scenario) readAt(m *member, into *measuredReads, end time.Duration, c deadLeaderCase) {
	if s.Now() >= end {
		return
	}
	began := s.Now()
	into.begun++
	key := uint8(into.begun % s.plan.keys)
	o, want := replica.ReadOptions{Policy: c.policy, Spans: []leases.Span{spanOf(key)}}, m.g.fresh.acked[key]
	answered := func() { into.took = append(into.took, s.Now()-began) }
	m.n.bound(func() {
		if m.readAtOnce(key, o, want) {
			answered()
			return
		}
		m.call(readDeadline, 0, func(r *replica.Replica, id replica.Call, by replica.Deadline) {
			r.ReadWith(id, o, by)
		}, func(d replica.Done) {
			if d.Err == nil {
				m.readEnds(key, o, d.Read, want)
				answered()
			}
		})
	})()
	s.After(electionTime/100, func() { s.readAt(m, into, end, c) })
}
