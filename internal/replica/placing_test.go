// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/internal/wire"
)

// placed is a cluster whose nodes have a placement, with weights by id, as settings.
type placed struct {
	*cluster
	at map[uint64]*placement.Node
	// slow are the nodes at which writes seem to take a quarter of a second.
	slow map[uint64]bool
}

func newPlaced(t *testing.T, core NewCore, weights ...int) *placed {
	p := &placed{cluster: newCluster(t, core), at: map[uint64]*placement.Node{}, slow: map[uint64]bool{}}
	var ids []uint64
	for i := range weights {
		ids = append(ids, uint64(i+1))
	}
	for i, id := range ids {
		n, err := placement.NewNode(placement.NodeConfig{ID: id, Timeout: electionTicks * tick, Clock: func() time.Duration { return p.now }, Weight: weights[i]})
		require.NoError(t, err)
		p.at[id] = n
		p.add(id, ids)
		p.nodes[id].cfg.Placement = n
		p.start(p.nodes[id])
	}
	return p
}

// serve lets ticks pass in which each node measures writes.
func (p *placed) serve(ticks int) {
	for range ticks {
		for id, n := range p.at {
			for range 5 {
				n.Synced(map[bool]time.Duration{false: 5 * time.Millisecond, true: 250 * time.Millisecond}[p.slow[id]])
			}
		}
		p.run(1)
	}
}

// leader returns the node that leads.
func (p *placed) leader() uint64 {
	for _, id := range p.ids() {
		if p.nodes[id].r.leads() {
			return id
		}
	}
	return 0
}

// A leader at which writes take long hands over within six election timeouts, to a member that is fast, has
// caught up, and has told so; and counts why.
func TestSlowLeaderHandsOverToTheFastMember(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		p := newPlaced(t, core, 0, 0, 0)
		p.elect(1)
		p.serve(3 * electionTicks)
		require.Equal(t, uint64(1), p.leader())
		p.slow[1], p.slow[2] = true, true
		p.serve(6 * electionTicks)
		require.Equal(t, uint64(3), p.leader())
		require.Equal(t, uint64(1), p.nodes[1].r.Status().Counters.HandOversSlow)
		p.slow[1] = false
		p.serve(10 * electionTicks)
		require.Equal(t, uint64(3), p.leader(), "there is no reason to go back")
	})
}

// A leader that is alarmed looks at each tick, so that it hands over as soon as its process has stood still often enough.
func TestLeaderLooksAtEachTickWhenAlarmed(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for phase := range electionTicks / placement.LooksPerTimeout {
			p := newPlaced(t, core, 0, 0, 0)
			p.elect(1)
			p.serve(3*electionTicks + phase)
			took := 0
			for ; p.nodes[1].r.Status().Counters.HandOversSlow == 0; took++ {
				require.Less(t, took, 7, "phase %d", phase)
				p.at[1].Ticked(tick / 2)
				p.serve(1)
			}
			require.GreaterOrEqual(t, took, 5, "phase %d", phase)
		}
	})
}

// A leader keeps its office while the members that are faster lag, are silent, say nothing of themselves, as members
// of earlier versions do, or cannot write.
func TestSlowLeaderStaysIfNoFastMemberCouldLead(t *testing.T) {
	for name, hinder := range map[string]func(p *placed){
		"silent": func(p *placed) {
			p.lose = func(m wire.Message) bool { return m.From == 3 }
		},
		"without placement": func(p *placed) {
			p.lose = func(m wire.Message) bool { _, health := m.Body.(wire.Health); return health }
			p.serve(5 * electionTicks)
		},
		"lagging": func(p *placed) {
			p.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() == wire.ClassAppend }
			for i := range 1500 {
				p.propose(1, fmt.Sprint(i))
				p.settle()
			}
		},
		"stalled": func(p *placed) {
			p.nodes[3].full = true
			_ = p.nodes[3].r.Stalled(fmt.Errorf("no room"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlaced(t, Weft, 0, 0, 0)
			p.elect(1)
			p.serve(3 * electionTicks)
			hinder(p)
			p.slow[1], p.slow[2] = true, true
			for range 20 {
				p.serve(electionTicks)
				if p.nodes[3].full {
					_ = p.nodes[3].r.Stalled(fmt.Errorf("no room"))
				}
			}
			require.Equal(t, uint64(1), p.leader())
		})
	}
}

// A leader hands over to the member with the largest weight; a weight that changes, at a node or in one group, takes
// effect while the nodes run.
func TestLeadershipFollowsWeights(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		p := newPlaced(t, core, 0, 0, 200)
		p.elect(1)
		p.serve(6 * electionTicks)
		require.Equal(t, uint64(3), p.leader(), "its weight is the largest")
		require.Equal(t, uint64(1), p.nodes[1].r.Status().Counters.HandOversPreferred)
		require.NoError(t, p.at[3].SetWeight(-1))
		p.serve(20 * electionTicks)
		require.NotEqual(t, uint64(3), p.leader(), "its weight is 0")
		other := 3 - p.leader()
		p.nodes[other].r.SetLeaderWeight(300)
		p.serve(40 * electionTicks)
		require.Equal(t, other, p.leader(), "its weight in this group is the largest")
		require.Equal(t, 300, p.nodes[other].r.Status().Weight)
		require.Equal(t, 0, p.nodes[other].r.Status().Progress[3].Weight)
		require.True(t, p.nodes[other].r.Status().Progress[3].Worse)
		p.nodes[other].r.SetLeaderWeight(0)
		p.serve(10 * electionTicks)
		require.Equal(t, 100, p.nodes[other].r.Status().Weight, "the weight of the node counts again")
		weight, _ := p.nodes[3].r.placing.weightOf(other)
		require.Equal(t, 100, weight)
	})
}

// When a leader dies, a member of weight 0 is not elected if another could be, whether the connections to the leader
// break or not; and it is elected if no other can be.
func TestMemberOfWeightZeroLeadsOnlyIfNoOtherCan(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		bothCores(t, func(t *testing.T, core NewCore) {
			for trial := range 20 {
				p := newPlaced(t, core, 0, -1, -1, 0, -1)
				for range trial {
					p.rand.Uint64() // other timeouts in each
				}
				p.elect(1)
				p.serve(3 * electionTicks)
				p.kill(1, breaks)
				p.leaderAfter()
				require.Equal(t, uint64(4), p.leader())
				p.run(3 * electionTicks)
				p.kill(4, breaks)
				p.leaderAfter() // all that are left have the weight 0
			}
		})
	}
}

// A member with a smaller weight whose log is the only complete one is elected all the same.
func TestSmallerWeightIsNoBarToTheOnlyPossibleLeader(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		p := newPlaced(t, core, 0, -1, 0)
		p.elect(1)
		p.serve(3 * electionTicks)
		p.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() == wire.ClassAppend }
		call := p.propose(1, "x")
		p.run(2)
		require.NoError(t, p.result(call).Err)
		p.kill(1, false)
		p.lose = func(wire.Message) bool { return false }
		require.LessOrEqual(t, p.leaderAfter(), 5*electionTicks)
		require.Equal(t, uint64(2), p.leader())
		p.serve(8 * electionTicks)
		require.Equal(t, uint64(3), p.leader(), "it has caught up, and another has the weight 0")
	})
}

// A leader whose disk is full tries members of weight 0 last.
func TestStalledLeaderTriesMembersOfWeightZeroLast(t *testing.T) {
	p := newPlaced(t, Weft, 0, -1, 0, -1, 0)
	p.elect(1)
	p.serve(3 * electionTicks)
	heirs := p.nodes[1].r.placing.heirs([]uint64{1, 2, 3, 4, 5})
	slices.Sort(heirs[:2])
	require.Equal(t, []uint64{3, 5}, heirs[:2])
}

// A leader is not sure of its distance from the others while a link from it is full.
func TestFullLinksAreNotLongOnes(t *testing.T) {
	p := newPlaced(t, Weft, 0, 0, 0)
	p.elect(1)
	p.serve(3 * electionTicks)
	leader := p.nodes[1].r
	for _, wait := range []int{0, fullBytes - 1, fullBytes} {
		leader.cfg.Backlog = func(id uint64) (int, bool) { return map[uint64]int{3: wait}[id], id != 1 }
		own, _ := leader.placing.candidates()
		require.Equal(t, wait < fullBytes, own.Surely > 0, "%d bytes wait for node 3", wait)
	}
}

// Members of an idle group with placement say nothing more than a report to each other member in an election timeout,
// and ten groups of the same nodes not more than one.
func TestIdleMembersSendOneReportInATimeout(t *testing.T) {
	p := newPlaced(t, Weft, 0, 0, 0)
	p.elect(1)
	p.run(3 * electionTicks)
	reports := 0
	p.lose = func(m wire.Message) bool {
		if _, ok := m.Body.(wire.Health); ok {
			reports++
		}
		return false
	}
	const timeouts = 20
	p.run(timeouts * electionTicks)
	require.InDelta(t, 3*2*timeouts, reports, 6)
	for _, id := range p.ids() {
		require.Len(t, p.at[id].Seen(), 3)
		require.True(t, p.at[id].Seen()[0].Counts && p.at[id].Seen()[2].Counts)
	}
}

// Writes are timed one after the other, until they are durable; a write that hangs counts with its age.
func TestWritesAreTimed(t *testing.T) {
	p := newPlaced(t, Weft, 0, 0, 0)
	p.elect(1)
	for range 10 {
		p.propose(1, "x")
		p.settle()
	}
	p.run(1)
	require.Less(t, p.at[1].Own().Sync, time.Millisecond, "no time passes in a write")
	p.nodes[2].hung = true
	p.propose(1, "y")
	p.settle()
	p.run(electionTicks - 1)
	require.Greater(t, p.at[2].Own().Sync, 3*tick)
	require.Less(t, p.at[3].Own().Sync, time.Millisecond)
	p.run(electionTicks)
	require.True(t, p.at[2].Own().Stalled, "the disk is late")
}

func TestLeaderWeightNeedsPlacement(t *testing.T) {
	err := Settings{ID: 1, Log: newMemLog(), LeaderWeight: 1001}.Validate()
	require.ErrorContains(t, err, "LeaderWeight is 1001, want at most 1000")
	require.ErrorContains(t, err, "Placement is")
}
