// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// A learner follows a leader that it does not hear, and a removed one does so without end. A gateway that
// has nothing but queries leaves it all the same.
func TestGatewayLeavesALearnerThatHearsNoLeader(t *testing.T) {
	for what, cutOff := range map[string]func(c *gated){
		"cut off": func(c *gated) {
			c.lose = func(m wire.Message) bool { return m.From == 4 && m.To != 9 || m.To == 4 && m.From != 9 }
		},
		"removed": func(c *gated) {
			require.NoError(c.t, c.change(1, single(pb.ConfChangeRemoveNode, 4)).Err)
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := newGated(t, nil, 1, 2, 3)
			c.elect(1)
			c.add(4, nil)
			require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, 4)).Err)
			c.g.SetHomes([]uint64{4}, nil)
			c.run(60)
			require.EqualValues(t, 4, c.g.Status().Home)
			require.EqualValues(t, 1, c.g.Status().Lead)
			c.g.SetHomes(c.ids(), nil)
			cutOff(c)
			c.run(60)
			require.NotEqualValues(t, 4, c.g.Status().Home)
			require.EqualValues(t, 1, c.g.Status().Lead)
		})
	}
}

// Where no other node can be a gateway's home, as where a group has one voter, or the followers are cut off from the gateway, the
// leader is. The gateway looks for another one now and then, and comes back.
func TestGatewayGoesBackToALeaderThatAloneAnswers(t *testing.T) {
	for _, homes := range [][]uint64{{1}, {1, 2}, {1, 2, 3}, {1, 2, 3, 4, 5}, nil} {
		c := newGated(t, nil, 1)
		if homes == nil {
			c = newGated(t, nil, 1, 2, 3)
			c.lose = func(m wire.Message) bool { return m.From == 9 && m.To != 1 || m.To == 9 && m.From != 1 }
			homes = c.ids()
		}
		c.elect(1)
		c.g.SetHomes(homes, nil)
		for range 12 {
			call := c.propose("a")
			c.run(60)
			require.NoError(t, c.result(call).Err, "homes %v", homes)
		}
	}
}

// A home that is about to stop has its gateways go when they have the results of what is under way. It waits for them, and for
// one that is silent not without end.
func TestGatewayLosesNoResultOfAHomeThatStops(t *testing.T) {
	for late := range 4 { // reports take so many ticks
		c := newGated(t, nil, 1, 2, 3)
		c.elect(1)
		c.run(30)
		home := c.nodes[c.g.Status().Home]
		held := make([][]wire.Message, late+1)
		c.lose = func(m wire.Message) bool {
			_, report := m.Body.(wire.Report)
			if report && late > 0 {
				held[late-1] = append(held[late-1], m)
			}
			return report && late > 0
		}
		var calls []Call
		for i := range 40 {
			calls = append(calls, c.propose("a"))
			if i == 20 {
				home.r.TurnGatewaysAway()
				home.r.TurnGatewaysAway()
			}
			c.run(1)
			for _, m := range held[0] {
				require.NoError(t, c.g.Receive(m))
			}
			held = append(held[1:], nil)
			require.Equal(t, i >= 20 && i < 19+2*late, home.r.Status().Waiting > 0, "late %d, tick %d", late, i)
		}
		require.NotEqual(t, home.r.cfg.ID, c.g.Status().Home)
		for _, call := range calls[:30] {
			require.NoError(t, c.result(call).Err, late)
		}
	}
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	home := c.nodes[c.g.Status().Home]
	c.lose = func(m wire.Message) bool { return m.From == 9 }
	home.r.TurnGatewaysAway()
	require.Equal(t, 1, home.r.Status().Waiting)
	c.run(home.r.cfg.ElectionTick)
	require.Zero(t, home.r.Status().Waiting)
	require.Empty(t, home.r.home.guests)
}

// A transport that cannot reach the home says so at once, each time that something is sent there. What was asked is asked again
// once a tick.
func TestQueriesWaitATickForAHomeThatIsUnreachable(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	home, sent := c.g.Status().Home, 0
	c.g.Query(1000, []byte("q"), ReadOptions{}, c.now+100*tick)
	for range 3 {
		c.now += tick
		c.g.Tick(c.now)
		for range 10 {
			for _, m := range c.g.Flush(c.now).Sends {
				if m.Kind().String() == "gateway-query" {
					sent++
				}
			}
			c.g.Unreachable(home)
		}
	}
	require.Equal(t, 3, sent)
}

// A gateway may be farther from the members than these are from each other, by more than the time that it gives a home at first.
func TestGatewayFarFromAllMembersFindsAHome(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	const way = 4 // ticks, in each direction
	held := make([][]wire.Message, way)
	c.lose = func(m wire.Message) bool {
		gateway := m.From == 9 || m.To == 9
		if gateway {
			held[way-1] = append(held[way-1], m)
		}
		return gateway
	}
	pass := func(n int) {
		for range n {
			c.run(1)
			for _, m := range held[0] {
				if m.To == 9 {
					require.NoError(t, c.g.Receive(m))
				} else {
					require.NoError(t, c.nodes[m.To].r.Receive(m))
				}
			}
			held = append(held[1:], nil)
		}
	}
	pass(200)
	require.NotZero(t, c.g.Status().Lead)
	call := c.propose("a")
	pass(60)
	require.NoError(t, c.result(call).Err)
}

// A gateway asks again, because its question may be lost. Its home, which waits for a leader, has the question once.
func TestQueryThatIsAskedAgainIsOne(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.g.SetHomes([]uint64{2}, nil)
	c.run(30)
	require.EqualValues(t, 2, c.g.Status().Home)
	c.lose = func(m wire.Message) bool { return m.From == 2 && m.To != 9 || m.To == 2 && m.From != 9 }
	c.g.Query(1000, []byte("q"), ReadOptions{}, c.now+100*tick)
	c.run(50)
	require.Greater(t, c.g.Status().Counters.QueriesAgain, uint64(2))
	require.EqualValues(t, 1, c.nodes[2].r.Status().Counters.Queries)
	require.Equal(t, 1, c.nodes[2].r.home.asked)
	c.run(51)
	require.Error(t, c.result(1000).Err)
	require.Empty(t, c.nodes[2].r.home.queries, "it has ended")
	require.Zero(t, c.nodes[2].r.home.asked)
}

// settleAt has the gateway take a node for its home, while it knows no other, and then know these.
func (c *gated) settleAt(home uint64, homes []uint64) {
	c.g.SetHomes([]uint64{home}, nil)
	c.run(60)
	require.Equal(c.t, home, c.g.Status().Home)
	c.g.SetHomes(homes, nil)
}

// ticksUntilHome lets time pass until the gateway has one of these homes, and knows the leader.
func (c *gated) ticksUntilHome(homes ...uint64) (ticks int) {
	for s := c.g.Status(); s.Lead == 0 || !slices.Contains(homes, s.Home); s = c.g.Status() {
		require.Less(c.t, ticks, 100)
		c.run(1)
		ticks++
	}
	return ticks
}

// A cluster has nodes without a replica of the group, and knows members of long ago: each such node would be silent for a while.
func TestGatewayAsksMembersFirst(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.settleAt(3, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15})
	c.lose = func(m wire.Message) bool { return m.From == 3 || m.To == 3 }
	require.LessOrEqual(t, c.ticksUntilHome(1, 2), 2*c.nodes[1].r.cfg.ElectionTick)

	c.lose = func(m wire.Message) bool { return m.From == 9 || m.To == 9 }
	c.run(20)
	c.g.members = &pb.ConfState{Voters: []uint64{14, 15}} // all members have changed meanwhile
	c.lose = func(wire.Message) bool { return false }
	c.ticksUntilHome(1, 2, 3)
}

// A new gateway knows no member, and asks all nodes in its book of addresses in turn, also those removed long ago. Each that is silent costs
// a third of an election timeout, and each that refuses the connection two ticks.
func TestNewGatewayGetsThroughItsBook(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	homes := c.ids()
	for id := uint64(10); id < 31; id++ {
		homes = append(homes, id)
	}
	const before = 15 // of the 21 are asked before the first that lives, as the gateway begins by its number
	for _, refuse := range []bool{false, true} {
		c.g = c.newGateway(1, nil)
		c.g.SetHomes(homes, nil)
		each := (c.nodes[1].r.cfg.ElectionTick + 2) / 3
		if refuse {
			each = 2
		}
		for range before*each + 2 {
			if home := c.g.Status().Home; refuse && home > 9 {
				c.g.Unreachable(home)
			}
			c.run(1)
		}
		require.NotZero(t, c.g.Status().Lead, "refuse: %t", refuse)
	}
}

// A home that has applied its own removal hears of no later entry.
func TestGatewayLeavesARemovedHome(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.settleAt(3, c.ids())
	require.NoError(t, c.change(1, single(pb.ConfChangeRemoveNode, 3)).Err)
	require.LessOrEqual(t, c.ticksUntilHome(1, 2), c.nodes[1].r.cfg.ElectionTick)
}

// A home may be behind for long, such as a node that was down and catches up. A gateway with queries alone finds another one.
func TestQueriesFindAHomeThatIsNotBehind(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.settleAt(3, c.ids())
	c.nodes[3].held = true
	c.cluster.propose(1, "a")
	c.settle()
	for i := range 2 * c.nodes[3].r.cfg.ElectionTick { // the home gets an index for each
		c.g.Query(Call(1000+i), []byte("q"), ReadOptions{}, c.now+100*tick)
		c.run(1)
	}
	require.EqualValues(t, 2, c.g.Status().Home)
	require.NotEmpty(t, c.nodes[2].r.home.queries, "the driver answers")
}

// The others may hear nothing of a home that hears them: it follows the leader, and has an answer to no read.
func TestQueriesFindAHomeThatIsHeard(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.settleAt(3, c.ids())
	c.lose = func(m wire.Message) bool { return m.From == 3 && m.To != 9 }
	c.g.Query(1000, []byte("q"), ReadOptions{}, c.now+100*tick)
	c.run(2 * c.nodes[3].r.cfg.ElectionTick)
	require.EqualValues(t, 2, c.g.Status().Home)
	require.Len(t, c.nodes[2].r.home.queries, 1, "the driver answers")
}

// A home in the gateway's zone that hears the leader and is behind answers a knock. The gateway has just left it, and does not come
// back soon.
func TestGatewayDoesNotComeBackToAHomeThatIsBehind(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.settleAt(3, c.ids())
	c.g.SetHomes(c.ids(), []uint64{3})
	c.nodes[3].held = true
	c.propose("a")
	c.ticksUntilHome(2)
	for range 10 * c.nodes[3].r.cfg.ElectionTick {
		c.propose("b")
		c.run(1)
		require.EqualValues(t, 2, c.g.Status().Home)
	}
}

// A home that is cut off from the other members, and not from the gateway, keeps it from a healthy group for no longer than an
// election would.
func TestGatewayLeavesAHomeThatIsCutOff(t *testing.T) {
	for _, learns := range []bool{false, true} {
		c := newGated(t, nil, 1, 2, 3)
		c.elect(1)
		home := uint64(3)
		if learns {
			home = 4
			c.add(4, nil)
			require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, 4)).Err)
		}
		c.settleAt(home, c.ids())
		c.lose = func(m wire.Message) bool { return m.From == home && m.To != 9 || m.To == home && m.From != 9 }
		require.LessOrEqual(t, c.ticksUntilHome(1, 2, 7-home), 2*c.nodes[1].r.cfg.ElectionTick+3, "learns: %t", learns)
	}
}
