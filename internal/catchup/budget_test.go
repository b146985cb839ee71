// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package catchup

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// queue is a lane with named places.
type queue struct {
	lane
	names map[*Place]string
}

func newQueue(limit int64) *queue {
	return &queue{newLane(limit), map[*Place]string{}}
}

func (q *queue) add(now time.Duration, name string, u wire.Urgency, left, bytes int64) *Place {
	p := &Place{urgency: u, left: left}
	q.names[p] = name
	q.wait(p, now, bytes)
	return p
}

// order returns the names of the places in the order of their turns; each leaves before the next begins.
func (q *queue) order() (names []string) {
	for turns := q.turns(0); len(turns) > 0; turns = q.turns(0) {
		for _, p := range turns {
			names = append(names, q.names[p])
			q.leave(p)
		}
	}
	return names
}

// The most urgent goes first, then the snapshot with the fewest bytes left, then the oldest; each fourth turn is the
// oldest's.
func TestMostUrgentCatchesUpFirst(t *testing.T) {
	q := newQueue(10)
	q.add(0, "learner", wire.UrgencyLearner, 1, 8)
	q.add(0, "voter of unknown size", wire.UrgencyVoter, 0, 8)
	q.add(0, "of an earlier version", 0, 9, 8)
	q.add(0, "small voter", wire.UrgencyVoter, 3, 8)
	q.add(0, "edge", wire.UrgencyEdge, 1000, 8)
	q.add(0, "small edge", wire.UrgencyEdge, 5, 8)
	require.Equal(t, []string{
		"small edge", "edge", "small voter", "learner", "of an earlier version", "voter of unknown size",
	}, q.order())
}

// A quarter is spared for the first urgency: others cannot fill it, and its use takes no turn from the others.
func TestUrgentSnapshotHasRoomBesideAllOthers(t *testing.T) {
	q := newQueue(16)
	for i := range 5 {
		q.add(0, fmt.Sprint("voter ", i), wire.UrgencyVoter, 0, 4)
	}
	voters := q.turns(0)
	require.Len(t, voters, 3)
	edge := q.add(0, "edge", wire.UrgencyEdge, 0, 4)
	require.Equal(t, []*Place{edge}, q.turns(0))
	q.add(0, "another edge", wire.UrgencyEdge, 0, 4)
	require.Empty(t, q.turns(0))
	require.EqualValues(t, 16, q.statistics(0).UsedBytes)
	q.leave(voters[0])
	require.Equal(t, "another edge", q.names[q.turns(0)[0]])
	q.leave(edge)
	require.Empty(t, q.turns(0), "what it had is spared")
	require.Equal(t, Stats{LimitBytes: 16, UsedBytes: 12, Waiting: 2, Turns: 5, Oldest: 7}, q.statistics(7))
}

// A window that is larger than what there is goes when no other does.
func TestWindowLargerThanTheBudgetGoesAlone(t *testing.T) {
	q := newQueue(10)
	large := q.add(0, "large", wire.UrgencyVoter, 0, 100)
	require.Len(t, q.turns(0), 1)
	q.add(0, "small", wire.UrgencyVoter, 0, 1)
	require.Empty(t, q.turns(0))
	q.leave(large)
	require.Len(t, q.turns(0), 1)
	q.add(0, "large", wire.UrgencyVoter, 0, 100)
	require.Empty(t, q.turns(0))
}

// Whatever is drawn, the bytes under way are within the bound and add up, nothing waits for nothing, and each place has
// its turn although more urgent places come without end.
func TestCatchUpInDrawnOrders(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			limit := 1 + rnd.Int64N(100)
			q := newQueue(limit)
			var running []*Place
			passed := map[*Place]int{} // turns of others
			ahead := map[*Place]int{}  // places that waited when the place came
			come := func(now time.Duration) {
				p := q.add(now, "", wire.Urgency(rnd.IntN(4)), rnd.Int64N(50), 1+rnd.Int64N(limit+1))
				ahead[p] = len(q.waits) - 1
			}
			var gone *Place // that left the last
			for step := range 1000 {
				now := time.Duration(step)
				switch {
				case len(q.waits) > 0 && rnd.IntN(8) == 0:
					gone = q.waits[rnd.IntN(len(q.waits))]
					q.leave(gone)
				case rnd.IntN(3) > 0 && len(q.waits) < 20:
					come(now)
				case len(running) > 0:
					i := rnd.IntN(len(running))
					p := running[i]
					if half := p.held / 2; rnd.IntN(2) == 0 && half > 0 {
						q.give(p, half)
					} else {
						q.leave(p)
						running = append(running[:i], running[i+1:]...)
					}
				}
				require.NotContains(t, q.waits, gone)
				for p := q.turn(now); p != nil; p = q.turn(now) {
					running = append(running, p)
					for _, other := range q.waits {
						if p.spare == 0 {
							passed[other]++
						}
						require.Less(t, passed[other], patience*(ahead[other]+1), "a place waits for more than its turns")
					}
				}
				held := int64(0)
				for _, p := range running {
					held += p.held
				}
				s := q.statistics(now)
				require.Equal(t, held, s.UsedBytes)
				require.LessOrEqual(t, q.spare.used, limit/4)
				require.True(t, held <= limit || largest(running) > limit-limit/4, "%d bytes under way, the bound is %d", held, limit)
				for _, p := range q.waits {
					require.NotZero(t, p.want)
					require.NotZero(t, q.common.used, "something waits, and nothing is under way")
				}
				require.Equal(t, len(q.waits), s.Waiting)
				require.LessOrEqual(t, s.Urgent, s.Waiting)
			}
			for _, p := range running {
				q.leave(p)
			}
			for len(q.waits) > 0 {
				for _, p := range q.turns(0) {
					q.leave(p)
				}
			}
			require.Zero(t, q.common.used+q.spare.used)
		})
	}
}

// largest returns the bytes of the largest place.
func largest(places []*Place) (bytes int64) {
	for _, p := range places {
		bytes = max(bytes, p.held)
	}
	return bytes
}

// Places of several goroutines get what they ask for, and all bytes come back. In a bubble a place that waits for nothing ends
// the test at once.
func TestCatchUpIsSharedByGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(10, func() time.Duration { return 0 })
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				free := make(chan struct{}, 1)
				p := &Place{Direction: Taking, Ready: func() { free <- struct{}{} }}
				for i := range 500 {
					if !c.Ask(p, wire.Urgency(i%4), 0, 4) {
						<-free
					}
					c.Give(p, 1)
					c.Leave(p)
				}
			})
		}
		all.Wait()
		s := c.Statistics(Taking)
		require.Zero(t, s.UsedBytes)
		require.Zero(t, s.Waiting)
		require.EqualValues(t, 4000, s.Turns)
		require.Zero(t, c.Statistics(Sending).Turns)
	})
}

func TestNoBudgetBoundsNothing(t *testing.T) {
	var none *Budget
	require.True(t, none.Ask(nil, 0, 0, 1<<60))
	require.True(t, none.HasRoom(Sending, 0, 1<<60))
	none.Give(nil, 1)
	none.Leave(nil)
	require.Zero(t, none.Statistics(Taking))
}
