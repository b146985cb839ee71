// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	timeout = time.Second
	look    = timeout / LooksPerTimeout
)

func syncs(d time.Duration) Figure { return Figure{Sync: d} }

func member(id uint64, weight int, d time.Duration) Member {
	return Member{ID: id, Weight: weight, Figure: syncs(d), Fit: true}
}

// watch looks until the judge hands over, and returns when and to which member; 0 if it never does.
func watch(j *Judge, begin, lasting time.Duration, own Member, others ...Member) (Verdict, time.Duration) {
	for now := begin + look; now <= begin+lasting; now += look {
		if v := j.Look(now, look, timeout, 1, own, others); v.Reason != Stay {
			return v, now - begin
		}
	}
	return Verdict{}, 0
}

func TestLeaderThatIsMuchSlowerHandsOverAfterThreeTimeouts(t *testing.T) {
	var j Judge
	v, after := watch(&j, 0, time.Hour, member(1, 100, 50*time.Millisecond), member(2, 100, 6*time.Millisecond), member(3, 100, 5*time.Millisecond))
	require.Equal(t, Slow, v.Reason)
	require.Contains(t, []uint64{2, 3}, v.To)
	require.Equal(t, syncs(50*time.Millisecond), v.Own)
	require.Equal(t, patience*timeout, after)
}

// Nothing moves if the difference is small in ratio, or small in time; and not to a member that could not lead at
// once, is slow itself, has measured other work, or leads only if no other can.
func TestLeaderStaysIfNobodyIsKnownToBeBetter(t *testing.T) {
	unfit := member(2, 100, time.Millisecond)
	unfit.Fit = false
	without := member(2, 100, 0)
	without.Figure = Figure{Turn: time.Millisecond}
	for name, other := range map[string]Member{
		"a ratio of four":     member(2, 100, 10*time.Millisecond),
		"as slow":             member(2, 100, 40*time.Millisecond),
		"unfit":               unfit,
		"no writes there":     without,
		"nothing is measured": member(2, 100, 0),
		"weight 0":            member(2, 0, time.Millisecond),
	} {
		var j Judge
		v, _ := watch(&j, 0, time.Hour, member(1, 100, 40*time.Millisecond), other)
		require.Equal(t, Stay, v.Reason, name)
	}
	var j Judge
	v, _ := watch(&j, 0, time.Hour, member(1, 100, 4*time.Millisecond), member(2, 100, 10*time.Microsecond))
	require.Equal(t, Stay, v.Reason, "4 ms are not worth a hand-over")
}

// A process that is stopped most of the time is noticed behind disks that take much longer; a leader's work is not.
func TestSlowProcessIsNoticedBehindSlowDisks(t *testing.T) {
	with := func(id uint64, wait time.Duration) Member {
		m := member(id, 100, 40*time.Millisecond)
		m.Figure.Wait = wait
		return m
	}
	var j, other Judge
	v, after := watch(&j, 0, time.Hour, with(1, 16*time.Millisecond), with(2, time.Millisecond))
	require.Equal(t, uint64(2), v.To)
	require.Equal(t, patience*timeout, after)
	v, _ = watch(&other, 0, time.Hour, with(1, 9*time.Millisecond), with(2, time.Millisecond))
	require.Equal(t, Stay, v.Reason)
	j.Changed(0, timeout, 2, with(2, 16*time.Millisecond).Figure)
	v, _ = watch(&j, 0, 100*timeout, with(1, 16*time.Millisecond), with(2, time.Millisecond))
	require.Equal(t, Stay, v.Reason, "the other one was as slow when it led")
}

// A leader whose process stands still again and again hands over at the first look, if the others do not limp, and if leadership has
// not moved lately; and as late as others if nothing but its disk is slow.
func TestLeaderThatLimpsHandsOverAtOnce(t *testing.T) {
	const ms = time.Millisecond
	with := func(id uint64, sync, wait time.Duration) Member {
		m := member(id, 100, sync)
		m.Figure.Wait, m.Limps = wait, id == 1
		return m
	}
	for name, tt := range map[string]struct {
		own, other Member
		moved      bool
		at         time.Duration // 0: never
	}{
		"limps":                        {own: with(1, 5*ms, 16*ms), other: with(2, 5*ms, ms), at: look},
		"limps, with slow disks":       {own: with(1, 40*ms, 16*ms), other: with(2, 40*ms, ms), at: look},
		"leadership has moved lately":  {own: with(1, 5*ms, 16*ms), other: with(2, 5*ms, ms), moved: true, at: 2*patience*timeout + look},
		"the other limps as well":      {own: with(1, 5*ms, 16*ms), other: with(2, 5*ms, 14*ms)},
		"a slow disk, and short waits": {own: with(1, 50*ms, 6*ms), other: with(2, 5*ms, ms), at: patience * timeout},
	} {
		var j Judge
		if tt.moved {
			j.Changed(0, timeout, 3, Figure{})
		}
		_, at := watch(&j, 0, 100*timeout, tt.own, tt.other)
		require.Equal(t, tt.at, at, name)
	}
}

func TestSlowLeaderHandsOverToTheLargestWeightAmongTheFast(t *testing.T) {
	var j Judge
	v, _ := watch(&j, 0, time.Hour, member(1, 100, 90*time.Millisecond), member(2, 50, 5*time.Millisecond), member(3, 70, 6*time.Millisecond), member(4, 200, 80*time.Millisecond))
	require.Equal(t, uint64(3), v.To)
}

// A member with a larger weight gets leadership if it is about as fast, also if there is no load at all; a leader of
// weight 0 goes to any other.
func TestPreferredMemberGetsLeadershipIfItIsAsGood(t *testing.T) {
	for name, tt := range map[string]struct {
		own, other Member
		reason     Reason
	}{
		"larger":                  {member(1, 100, 5*time.Millisecond), member(2, 101, 6*time.Millisecond), Preferred},
		"equal":                   {member(1, 100, 5*time.Millisecond), member(2, 100, time.Millisecond), Stay},
		"larger and slow":         {member(1, 100, 5*time.Millisecond), member(2, 200, 90*time.Millisecond), Stay},
		"larger, no load":         {member(1, 100, 0), member(2, 200, 0), Preferred},
		"nothing known of 2":      {member(1, 100, 6*time.Millisecond), member(2, 200, 0), Stay},
		"own weight 0":            {member(1, 0, 5*time.Millisecond), member(2, 1, 5*time.Millisecond), Preferred},
		"both weight 0":           {member(1, 0, 5*time.Millisecond), member(2, 0, 5*time.Millisecond), Stay},
		"both weight 0, one slow": {member(1, 0, 90*time.Millisecond), member(2, 0, 5*time.Millisecond), Slow},
	} {
		var j Judge
		v, _ := watch(&j, 0, time.Hour, tt.own, tt.other)
		require.Equal(t, tt.reason, v.Reason, name)
	}
}

// A leader that is slow now and then is moved if it is slow for most of the time, and else never.
func TestShortSlownessMovesNothing(t *testing.T) {
	slow, fast, other := member(1, 100, 50*time.Millisecond), member(1, 100, 5*time.Millisecond), member(2, 100, 5*time.Millisecond)
	for bad, moves := range map[int]bool{1: false, 2: false, 3: true} { // of four looks
		var j Judge
		moved := false
		for i := range 10_000 {
			own := fast
			if i%4 < bad {
				own = slow
			}
			moved = moved || j.Look(time.Duration(i)*look, look, timeout, 1, own, []Member{other}).Reason != Stay
		}
		require.Equal(t, moves, moved, "%d of four looks", bad)
	}
}

// Under load that makes every leader look bad, each member is tried at most once; and the waits double.
func TestHandOversThatDoNotHelpEnd(t *testing.T) {
	const members = 5
	judges := map[uint64]*Judge{}
	for id := uint64(1); id <= members; id++ {
		judges[id] = &Judge{}
	}
	leader, now, moves := uint64(1), time.Duration(0), 0
	for now < forgetAfter*timeout {
		now += look
		own := member(leader, 100, 60*time.Millisecond)
		var others []Member
		for id := uint64(1); id <= members; id++ {
			if id != leader {
				others = append(others, member(id, 100, 5*time.Millisecond))
			}
		}
		if v := judges[leader].Look(now, look, timeout, 1, own, others); v.Reason != Stay {
			for _, j := range judges {
				j.Changed(now, timeout, leader, own.Figure)
			}
			leader = v.To
			moves++
		}
	}
	require.Equal(t, members-1, moves)
}

// However the figures of the members change, there are at most ten changes in 600 election timeouts.
func TestJudgesBoundTheChangesOfLeader(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		judges := []*Judge{{}, {}, {}}
		slow := []time.Duration{1, 1, 1}
		leader, changes := 0, 0
		for now := look; now < 600*timeout; now += look {
			for id := range slow {
				if rng.IntN(10) == 0 {
					slow[id] = []time.Duration{1, 100}[rng.IntN(2)]
				}
			}
			if rng.IntN(3) > 0 { // the leader is the slow node
				slow = []time.Duration{1, 1, 1}
				slow[leader] = 100
			}
			var own Member
			var others []Member
			for id, by := range slow {
				if m := member(uint64(id+1), 100+rng.IntN(2), by*time.Millisecond); id == leader {
					own = m
				} else {
					others = append(others, m)
				}
			}
			if v := judges[leader].Look(now, look, timeout, 1, own, others); v.Reason != Stay {
				for _, j := range judges {
					j.Changed(now, timeout, own.ID, Figure{})
				}
				leader = int(v.To - 1)
				changes++
			}
		}
		require.LessOrEqual(t, changes, 10, "seed %d", seed)
		require.NotZero(t, changes, "seed %d", seed)
	}
}

// A former leader that is slow without the leader's work, too, was slow for another reason than the work: once it
// is fast, it can lead again. A former leader that is fast as soon as another leads is not tried again.
func TestFormerLeaderIsTriedAgainIfItHasRecovered(t *testing.T) {
	for name, recovers := range map[string]bool{"slow as a follower, and then fast": true, "fast as a follower": false} {
		j := &Judge{}
		j.Changed(0, timeout, 2, syncs(50*time.Millisecond))
		own := member(1, 100, 5*time.Millisecond)
		was := member(2, 200, 5*time.Millisecond)
		if recovers {
			was.Figure = syncs(60 * time.Millisecond)
		}
		v, _ := watch(j, 0, 20*timeout, own, was)
		require.Equal(t, Stay, v.Reason, name)
		was.Figure = syncs(5 * time.Millisecond)
		v, _ = watch(j, 20*timeout, 20*timeout, own, was)
		require.Equal(t, recovers, v.Reason == Preferred, name)
	}
}
