// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mesh is nodes whose reports take a time each way, drawn anew around a mean for each.
type mesh struct {
	nodes  []*Node // 1 to len
	now    time.Duration
	oneWay func(from, to uint64) time.Duration
}

func newMesh(t *testing.T, size int, oneWay func(from, to uint64) time.Duration) *mesh {
	m := &mesh{oneWay: oneWay}
	for id := range uint64(size) {
		skew := time.Duration(id) * time.Hour // clocks have nothing in common
		n, err := NewNode(NodeConfig{ID: id + 1, Timeout: timeout, Clock: func() time.Duration { return m.now + skew }})
		require.NoError(t, err)
		m.nodes = append(m.nodes, n)
	}
	return m
}

// pass lets reports travel for a time. Nodes look at different times.
func (m *mesh) pass(lasting time.Duration) {
	const step = time.Millisecond
	type arrival struct {
		at       time.Duration
		from, to uint64
		what     Report
	}
	var under []arrival
	all := m.voters()
	for end := m.now + lasting; m.now < end; m.now += step {
		for i, n := range m.nodes {
			if m.now%(timeout/2) == time.Duration(i)*130*time.Millisecond%(timeout/2) {
				from := uint64(i + 1)
				n.Owed(all, func(to uint64, r Report) {
					under = append(under, arrival{m.now + m.oneWay(from, to), from, to, r})
				})
			}
		}
		under = slices.DeleteFunc(under, func(a arrival) bool {
			if a.at > m.now {
				return false
			}
			m.nodes[a.to-1].Heard(a.from, a.what)
			return true
		})
	}
}

// write has all nodes be under load.
func (m *mesh) write() {
	for _, n := range m.nodes {
		n.Synced(time.Millisecond)
	}
}

func (m *mesh) voters() (all []uint64) {
	for i := range m.nodes {
		all = append(all, uint64(i+1))
	}
	return all
}

// Each node learns how long each of the others takes to reach a majority, whatever the clocks show; and when the links
// of one become slow, all know within three election timeouts, and no other node's figure changes.
func TestNodesKnowHowLongEachTakesToReachAMajority(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		size := 3 + 2*rng.IntN(2)
		slow := 1 + uint64(rng.IntN(size))
		by := time.Millisecond
		m := newMesh(t, size, func(from, to uint64) time.Duration {
			if from == slow || to == slow {
				return by
			}
			return time.Millisecond
		})
		m.pass(4 * timeout)
		check := func(id uint64, want time.Duration) {
			for i, n := range m.nodes {
				require.InDelta(t, want, n.Reach(id, m.voters()), float64(3*time.Millisecond), "seed %d: node %d of node %d", seed, i+1, id)
			}
		}
		for id := range uint64(size) {
			check(id+1, 2*time.Millisecond)
			require.True(t, m.nodes[id].Calm())
		}
		by = 20 * time.Millisecond
		m.pass(4 * timeout)
		for id := uint64(1); id <= uint64(size); id++ {
			if id == slow {
				check(id, 40*time.Millisecond)
			} else {
				check(id, 2*time.Millisecond)
			}
			require.False(t, m.nodes[id-1].Calm())
			require.False(t, m.nodes[id-1].Alarmed(), "seed %d: it is too long ago", seed)
		}
		require.InDelta(t, 40*time.Millisecond, m.nodes[slow-1].Own().Reach, float64(3*time.Millisecond))
	}
}

// Only the voters of a group count: the round trip to the last of the nearest that are a majority with the node.
func TestReachIsToAMajorityOfTheVoters(t *testing.T) {
	links := []Link{{9, 1}, {2, 10}, {3, 20}, {4, 30}, {5, 40}}
	for _, tt := range []struct {
		voters []uint64
		want   time.Duration
	}{
		{[]uint64{1}, 0}, {[]uint64{1, 2}, 10}, {[]uint64{1, 2, 3}, 10}, {[]uint64{1, 3, 4}, 20}, {[]uint64{1, 2, 3, 4}, 20},
		{[]uint64{1, 2, 3, 4, 5}, 20}, {[]uint64{1, 6, 7, 8, 5}, 0}, {[]uint64{1, 6, 7, 4, 5}, 40}, {nil, 0},
	} {
		require.Equal(t, tt.want, reachOf(1, links, tt.voters), "%v", tt.voters)
	}
}

// Answers that cannot be are no round trips, and a single one that is late is no figure.
func TestRoundTripsAreOfAnswersThatCanBe(t *testing.T) {
	var tr trips
	now := 100 * timeout
	for name, r := range map[string]Report{
		"none":              {},
		"of the future":     {Answers: now + 1},
		"held too long":     {Answers: now - 1, Held: 2},
		"of long ago":       {Answers: now - roundsLast*timeout - 1},
		"of before its own": {Answers: -5},
	} {
		tr.answered(now, timeout, r)
		require.Zero(t, tr.round(now, timeout), name)
	}
	answer := func(took time.Duration) {
		now += timeout
		tr.answered(now, timeout, Report{Answers: now - took - 300, Held: 300})
	}
	answer(40)
	require.EqualValues(t, time.Microsecond, tr.round(now, timeout))
	answer(timeout / 4)
	require.EqualValues(t, time.Microsecond, tr.round(now, timeout), "the shorter of two")
	answer(timeout / 4)
	require.Equal(t, timeout/4, tr.round(now, timeout))
	before := tr
	tr.answered(now+1, timeout, Report{Answers: tr.stamp})
	require.Equal(t, before, tr, "the same answer twice")
	require.Zero(t, tr.round(now+roundsLast*timeout+1, timeout), "too old")
}

func TestReportsHaveBoundedLinks(t *testing.T) {
	n := newClocked(t, 0)
	n.now = timeout
	n.Report(2)
	var many []Link
	for id := uint64(1000); id > 2; id-- {
		many = append(many, Link{id, time.Duration(id)})
	}
	n.Heard(2, Report{Stamp: 5, Answers: timeout - 1, Links: many})
	require.Equal(t, many[len(many)-1], n.others[2].links[0], "the nearest first")
	require.Len(t, n.others[2].links, maxLinks)
	n.now += timeout / 16
	r := n.Report(2)
	require.Equal(t, []Link{{2, time.Microsecond}}, r.Links)
	require.EqualValues(t, 5, r.Answers)
}

func reaches(id uint64, weight int, d, reach time.Duration) Member {
	m := member(id, weight, d)
	m.Figure.Reach = reach
	return m
}

// A leader that takes five times as long as others, and 5 ms longer, to reach a majority hands over after the usual
// time, but never to a member of another weight for its links: between weights, links do not count.
func TestLinksCountBetweenMembersOfTheSameWeight(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		own    Member
		others []Member
		to     uint64
		reason Reason
	}{
		"far":                         {reaches(1, 100, ms, 40*ms), []Member{reaches(2, 100, ms, 4*ms), reaches(3, 100, ms, 4*ms)}, 3, Slow},
		"far, without load":           {reaches(1, 100, 0, 40*ms), []Member{reaches(2, 100, 0, 4*ms)}, 2, Slow},
		"a ratio of four":             {reaches(1, 100, ms, 40*ms), []Member{reaches(2, 100, ms, 10*ms)}, 0, Stay},
		"4 ms":                        {reaches(1, 100, ms, 4*ms), []Member{reaches(2, 100, ms, 10*time.Microsecond)}, 0, Stay},
		"far, and so is another":      {reaches(1, 100, ms, 40*ms), []Member{reaches(2, 100, ms, 4*ms), reaches(3, 100, ms, 50*ms)}, 2, Slow},
		"nothing known of the others": {reaches(1, 100, ms, 40*ms), []Member{reaches(2, 100, ms, 0)}, 0, Stay},
		"nothing known here":          {reaches(1, 100, ms, 0), []Member{reaches(2, 100, ms, ms)}, 0, Stay},
		"near, but slow":              {reaches(1, 100, ms, 40*ms), []Member{reaches(2, 100, 50*ms, ms)}, 0, Stay},
		"far on purpose":              {reaches(1, 200, ms, 90*ms), []Member{reaches(2, 100, ms, ms)}, 0, Stay},
		"preferred, though far":       {reaches(1, 100, ms, ms), []Member{reaches(2, 200, ms, 90*ms), reaches(3, 200, ms, 5*ms)}, 3, Preferred},
		"preferred, all far":          {reaches(1, 100, ms, ms), []Member{reaches(2, 200, ms, 90*ms)}, 2, Preferred},
		"slow, to the nearer":         {reaches(1, 100, 90*ms, ms), []Member{reaches(2, 100, ms, 90*ms), reaches(3, 100, ms, 5*ms)}, 3, Slow},
		"slow, to the far":            {reaches(1, 100, 90*ms, ms), []Member{reaches(2, 100, ms, 90*ms)}, 2, Slow},
	} {
		var j Judge
		v, after := watch(&j, 0, time.Hour, tt.own, tt.others...)
		require.Equal(t, tt.reason, v.Reason, name)
		require.Equal(t, tt.to, v.To, name)
		require.True(t, tt.reason == Stay || after >= patience*timeout && after <= patience*timeout+look, name)
	}
}

// A leader whose links have become long hands over at the first look, if its last round trips leave no doubt: not if it has
// been far all along, if leadership has moved lately, or if it is the weight that counts.
func TestLeaderWhoseLinksBecomeLongHandsOverAtOnce(t *testing.T) {
	const ms = time.Millisecond
	own := func(reach, surely time.Duration) Member {
		m := reaches(1, 100, ms, reach)
		m.Surely = surely
		return m
	}
	other, queue := reaches(2, 100, ms, 4*ms), own(44*ms, 40*ms)
	queue.Figure.Send = 10 * ms
	for name, tt := range map[string]struct {
		before, after Member
		moved         bool
		at            time.Duration
	}{
		"near, then far":              {before: own(4*ms, 4*ms), after: own(44*ms, 40*ms), at: look},
		"far all along":               {before: own(44*ms, 40*ms), after: own(44*ms, 40*ms), at: patience*timeout - look},
		"a round trip was short":      {before: own(4*ms, 4*ms), after: own(44*ms, 4*ms), at: patience * timeout},
		"near, then a little far":     {before: own(4*ms, 4*ms), after: own(23*ms, 22*ms), at: patience * timeout},
		"a queue":                     {before: own(4*ms, 4*ms), after: queue, at: patience * timeout},
		"leadership has moved lately": {before: own(4*ms, 4*ms), after: own(44*ms, 40*ms), moved: true, at: 2*patience*timeout + look},
	} {
		var j Judge
		if tt.moved {
			j.Changed(0, timeout, 3, Figure{})
		}
		require.Equal(t, Stay, j.Look(look, look, timeout, 1, tt.before, []Member{other}).Reason, name)
		v, at := watch(&j, look, time.Hour, tt.after, other)
		require.Equal(t, uint64(2), v.To, name)
		require.Equal(t, tt.at, at, name)
	}
	var j Judge
	j.Near()
	v, _ := watch(&j, 0, look, own(44*ms, 40*ms), other)
	require.Equal(t, uint64(2), v.To, "looks were left out before")
}

// A node whose links become long alarms its groups once it has as many long round trips as are sure, for an election
// timeout; the others do not.
func TestLongLinksAlarmTheirNode(t *testing.T) {
	by, tick := time.Millisecond, timeout/2
	m := newMesh(t, 3, func(from, to uint64) time.Duration {
		if from == 1 || to == 1 {
			return by
		}
		return time.Millisecond
	})
	m.pass(4 * timeout)
	by = 20 * time.Millisecond
	alarms := 0
	for i := range 20 {
		m.write()
		m.pass(tick)
		require.False(t, m.nodes[1].Alarmed() || m.nodes[2].Alarmed())
		if m.nodes[0].Alarmed() {
			alarms++
			require.GreaterOrEqual(t, i, roundsKept-1)
		}
	}
	require.InDelta(t, timeout/tick, alarms, 1)
}

// However round trips are drawn from the same spread, no leader is sure to be farther than the others.
func TestJitterIsNoReasonToHandOver(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m := newMesh(t, 3, func(uint64, uint64) time.Duration { return time.Millisecond << rng.IntN(7) })
		var j Judge
		j.Near()
		for range 200 {
			m.write()
			m.pass(look)
			n, voters := m.nodes[0], m.voters()
			own := reaches(1, 100, time.Millisecond, n.Reach(1, voters))
			own.Surely = n.Surely(voters)
			var others []Member
			for id := uint64(2); id <= 3; id++ {
				others = append(others, reaches(id, 100, time.Millisecond, n.Reach(id, voters)))
			}
			require.Equal(t, Stay, j.Look(m.now, look, timeout, 1, own, others).Reason, "seed %d", seed)
		}
	}
}

// A queue that every leader has on its links is tried at each member once, and a member whose links have recovered is
// as good as any.
func TestQueuesOfEveryLeaderMoveLeadershipOnce(t *testing.T) {
	j := &Judge{}
	was := reaches(2, 100, time.Millisecond, 40*time.Millisecond).Figure
	j.Changed(0, timeout, 2, was)
	own := reaches(1, 100, time.Millisecond, 40*time.Millisecond)
	v, _ := watch(j, 0, 100*timeout, own, reaches(2, 100, time.Millisecond, time.Millisecond))
	require.Equal(t, Stay, v.Reason)
	v, _ = watch(j, 100*timeout, 5*timeout, own, reaches(2, 100, time.Millisecond, 30*time.Millisecond)) // without the leader's work
	require.Equal(t, Stay, v.Reason)
	v, _ = watch(j, 105*timeout, 50*timeout, own, reaches(2, 100, time.Millisecond, time.Millisecond))
	require.Equal(t, Slow, v.Reason)
}

// However far drawn members are, slow, and preferred, leadership comes to rest: after the last move each leader stays.
func TestLeadershipComesToRest(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		pick := func(of ...time.Duration) time.Duration { return of[rng.IntN(len(of))] * time.Millisecond }
		var all []Member
		judges := map[uint64]*Judge{}
		for id := uint64(1); id <= 5; id++ {
			all = append(all, reaches(id, 50*rng.IntN(4), pick(1, 4, 20, 90), pick(0, 1, 4, 20, 90)))
			judges[id] = &Judge{}
		}
		leader, moves, last := uint64(1), 0, time.Duration(0)
		for now := look; now < 150*timeout; now += look {
			own := all[leader-1]
			others := slices.DeleteFunc(slices.Clone(all), func(m Member) bool { return m.ID == leader })
			if v := judges[leader].Look(now, look, timeout, seed, own, others); v.Reason != Stay {
				for _, j := range judges {
					j.Changed(now, timeout, leader, own.Figure)
				}
				leader, last = v.To, now
				moves++
			}
		}
		require.LessOrEqual(t, moves, 4, "seed %d: %v", seed, all)
		require.Less(t, last, 60*timeout, "seed %d: %v", seed, all)
	}
}
