// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/fetch"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
)

// queue is a lane with named places.
type queue struct {
	lane
	names map[*place]string
}

func newQueue(limit int64) *queue {
	return &queue{newLane(limit), map[*place]string{}}
}

func (q *queue) add(now time.Duration, name string, u wire.Urgency, left, bytes int64) *place {
	p := &place{urgency: u, left: left}
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
	require.Equal(t, []*place{edge}, q.turns(0))
	q.add(0, "another edge", wire.UrgencyEdge, 0, 4)
	require.Empty(t, q.turns(0))
	require.EqualValues(t, 16, q.statistics(0).UsedBytes)
	q.leave(voters[0])
	require.Equal(t, "another edge", q.names[q.turns(0)[0]])
	q.leave(edge)
	require.Empty(t, q.turns(0), "what it had is spared")
	require.Equal(t, CatchUpStats{LimitBytes: 16, UsedBytes: 12, Waiting: 2, Turns: 5, Oldest: 7}, q.statistics(7))
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
			var running []*place
			passed := map[*place]int{} // turns of others
			ahead := map[*place]int{}  // places that waited when the place came
			come := func(now time.Duration) {
				p := q.add(now, "", wire.Urgency(rnd.IntN(4)), rnd.Int64N(50), 1+rnd.Int64N(limit+1))
				ahead[p] = len(q.waits) - 1
			}
			var gone *place // that left the last
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
func largest(places []*place) (bytes int64) {
	for _, p := range places {
		bytes = max(bytes, p.held)
	}
	return bytes
}

// Places of several goroutines get what they ask for, and all bytes come back.
func TestCatchUpIsSharedByGoroutines(t *testing.T) {
	c, err := NewCatchUp(10)
	require.NoError(t, err)
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			free := make(chan struct{}, 1)
			p := &place{direction: taking, ready: func() { free <- struct{}{} }}
			for i := range 500 {
				if !c.ask(p, wire.Urgency(i%4), 0, 4) {
					<-free
				}
				c.give(p, 1)
				c.leave(p)
			}
		}()
	}
	for range 8 {
		<-done
	}
	s := c.Taking()
	require.Zero(t, s.UsedBytes)
	require.Zero(t, s.Waiting)
	require.EqualValues(t, 4000, s.Turns)
	require.Zero(t, c.Sending().Turns)
}

func TestCatchUpOfNoBytesIsRefused(t *testing.T) {
	for _, bytes := range []int64{0, -1} {
		_, err := NewCatchUp(bytes)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, fmt.Sprintf("are %d, want 1 or more", bytes))
	}
	var none *CatchUp
	require.True(t, none.ask(nil, 0, 0, 1<<60))
	require.True(t, none.hasRoom(sending, 0, 1<<60))
	none.give(nil, 1)
	none.leave(nil)
}

// viewed is a journal whose view is of a thousand bytes.
type viewed struct{ journal }

type view struct {
	meta SnapshotMeta
	io.Reader
}

func (v *viewed) Snapshot() (Snapshot, error) {
	return view{SnapshotMeta{v.index, v.host}, strings.NewReader(strings.Repeat("x", 1000))}, nil
}
func (v view) Meta() SnapshotMeta { return v.meta }
func (view) Close() error         { return nil }

// sources are two groups of node 1 that share a budget of one window. Members 2 and 3 fetch.
func sources(t *testing.T) (hosts [2]*Host, tr tapped, budget *CatchUp) {
	const chunk = 10
	tr = tapped{make(chan wire.Message, 10_000), map[uint64]wire.ChunkStatus{}}
	budget, err := NewCatchUp(fetch.Window * chunk * 4 / 3)
	require.NoError(t, err)
	for i := range hosts {
		hosts[i], err = New(Config{
			Replica:      ReplicaConfig{ID: 1, Group: 7, Log: replicatest.NewMemLog()},
			StateMachine: &viewed{}, Transport: tr, TickInterval: 7 * time.Millisecond, ChunkBytes: chunk, CatchUp: budget,
		})
		require.NoError(t, err)
		hosts[i].chunk(20, 0, true)
		require.True(t, tr.status(t, 20).OK)
		delete(tr.seen, 20)
	}
	return hosts, tr, budget
}

func (h *Host) fetch(from uint64, f wire.Fetch) {
	f.Term, f.Index = 5, 70
	h.Receive(wire.Message{Group: 7, From: from, To: 1, Body: f})
	synctest.Wait()
}

// sent returns how many chunks of each stream were sent, and how often a stream was said to live.
func (t tapped) sent() (chunks, lives map[uint64]int) {
	chunks, lives = map[uint64]int{}, map[uint64]int{}
	for len(t.out) > 0 {
		switch b := (<-t.out).Body.(type) {
		case wire.Chunk:
			chunks[b.Stream]++
		case wire.ChunkStatus:
			if b.OK {
				lives[b.Stream]++
			}
		}
	}
	return chunks, lives
}

// A source sends a window to the most urgent of those that wait, whichever group it is of, tells the others that it
// lives, and sends no stranger to a leader with room elsewhere.
func TestSourceServesTheMostUrgentGroupFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts, tr, budget := sources(t)
		const first, learner, edge, late = 1<<63 + 1, 1<<63 + 2, 1<<63 + 3, 1<<63 + 4
		hosts[0].fetch(2, wire.Fetch{Step: wire.FetchAsk, Stream: first, Urgency: wire.UrgencyVoter})
		hosts[0].fetch(3, wire.Fetch{Step: wire.FetchAsk, Stream: learner, Urgency: wire.UrgencyLearner})
		hosts[1].fetch(3, wire.Fetch{Step: wire.FetchAsk, Stream: edge, Urgency: wire.UrgencyEdge})
		_, said := tr.sent()
		require.Equal(t, map[uint64]int{first: 1, learner: 1, edge: 1}, said)
		hosts[0].fetch(2, wire.Fetch{Step: wire.FetchTake, Stream: first, Until: fetch.Window})
		hosts[0].fetch(3, wire.Fetch{Step: wire.FetchTake, Stream: learner, Until: fetch.Window})
		hosts[1].fetch(3, wire.Fetch{Step: wire.FetchTake, Stream: edge, Until: fetch.Window})
		chunks, _ := tr.sent()
		require.Equal(t, map[uint64]int{first: fetch.Window}, chunks)
		require.Equal(t, 2, budget.Sending().Waiting)
		require.Equal(t, 1, budget.Sending().Urgent)
		hosts[1].fetch(2, wire.Fetch{Step: wire.FetchAsk, Stream: late, Urgency: wire.UrgencyVoter})
		require.ErrorContains(t, errorOf(tr.status(t, late)), replica.ErrOutgoingFull.Error(), "another source may have room")

		time.Sleep(time.Second)
		chunks, said = tr.sent()
		require.Empty(t, chunks)
		require.Greater(t, said[learner], 10)
		require.Greater(t, said[edge], 10)

		hosts[0].fetch(2, wire.Fetch{Step: wire.FetchTake, Stream: first, Number: fetch.Window, Until: 2 * fetch.Window})
		chunks, _ = tr.sent()
		require.Equal(t, map[uint64]int{edge: fetch.Window}, chunks, "it passes the one that was under way, too")
		hosts[1].Receive(wire.Message{Group: 7, From: 3, To: 1, Body: wire.ChunkStatus{Stream: edge, OK: true}})
		synctest.Wait()
		chunks, _ = tr.sent()
		require.Equal(t, map[uint64]int{first: fetch.Window}, chunks)
		hosts[0].Receive(wire.Message{Group: 7, From: 2, To: 1, Body: wire.ChunkStatus{Stream: first, Reason: "gone"}})
		synctest.Wait()
		chunks, _ = tr.sent()
		require.Equal(t, map[uint64]int{learner: fetch.Window}, chunks)
		for _, h := range hosts {
			stopped(t, h)
		}
		require.Zero(t, budget.Sending().UsedBytes)
		require.Zero(t, budget.Sending().Waiting)
	})
}

// A state of fewer chunks than a window holds no more bytes than its chunks have.
func TestSmallStateHoldsNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts, tr, budget := sources(t)
		const stream = 1<<63 + 1
		hosts[0].fetch(2, wire.Fetch{Step: wire.FetchAsk, Stream: stream})
		for number := uint64(0); number < 96; number += 8 {
			hosts[0].fetch(2, wire.Fetch{Step: wire.FetchTake, Stream: stream, Number: number, Until: number + fetch.Window})
		}
		chunks, _ := tr.sent()
		require.Equal(t, 101, chunks[stream], "a hundred, and an empty one at the end")
		require.EqualValues(t, (101-88)*10, budget.Sending().UsedBytes)
		for _, h := range hosts {
			stopped(t, h)
		}
	})
}

func errorOf(st wire.ChunkStatus) error {
	if st.OK {
		return nil
	}
	return errors.New(st.Reason)
}

// The room is for what was not taken, whatever is sent again.
func TestRoomIsForWhatWasNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts, tr, budget := sources(t)
		const stream = 1<<63 + 1
		hosts[0].fetch(2, wire.Fetch{Step: wire.FetchAsk, Stream: stream})
		for _, step := range []struct {
			wire.FetchStep
			number, until uint64
			sends, used   int
		}{
			{wire.FetchTake, 0, 16, 16, 16},
			{wire.FetchAgain, 4, 20, 16, 16},
			{wire.FetchAgain, 4, 20, 16, 16},
			{wire.FetchTake, 12, 20, 0, 8},
			{wire.FetchTake, 20, 28, 8, 8},
			{wire.FetchAgain, 26, 42, 16, 16},
			{wire.FetchTake, 42, 42, 0, 0},
		} {
			hosts[0].fetch(2, wire.Fetch{Step: step.FetchStep, Stream: stream, Number: step.number, Until: step.until})
			chunks, _ := tr.sent()
			require.Equal(t, step.sends, chunks[stream], "%+v", step)
			require.EqualValues(t, step.used*10, budget.Sending().UsedBytes, "%+v", step)
		}
		for _, h := range hosts {
			stopped(t, h)
		}
		require.Zero(t, budget.Sending().UsedBytes)
	})
}

// A member that asks anew, perhaps after a restart, does not wait for the room that its earlier stream holds.
func TestMemberThatAsksAnewGivesItsRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts, tr, budget := sources(t)
		const first, again = 1<<63 + 1, 1<<63 + 2
		for _, stream := range []uint64{first, again} {
			hosts[0].fetch(2, wire.Fetch{Step: wire.FetchAsk, Stream: stream})
			hosts[0].fetch(2, wire.Fetch{Step: wire.FetchTake, Stream: stream, Until: fetch.Window})
		}
		chunks, _ := tr.sent()
		require.Equal(t, map[uint64]int{first: fetch.Window, again: fetch.Window}, chunks)
		require.EqualValues(t, fetch.Window*10, budget.Sending().UsedBytes)
		time.Sleep(time.Minute) // the member is silent
		require.Zero(t, budget.Sending().UsedBytes)
		for _, h := range hosts {
			stopped(t, h)
		}
	})
}

// A member that is silent while it waits for room leaves the queue.
func TestSilentMemberLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts, _, budget := sources(t)
		const first, silent = 1<<63 + 1, 1<<63 + 2
		hosts[0].fetch(2, wire.Fetch{Step: wire.FetchAsk, Stream: first})
		hosts[0].fetch(3, wire.Fetch{Step: wire.FetchAsk, Stream: silent})
		hosts[0].fetch(2, wire.Fetch{Step: wire.FetchTake, Stream: first, Until: fetch.Window})
		hosts[0].fetch(3, wire.Fetch{Step: wire.FetchTake, Stream: silent, Until: fetch.Window})
		for range 8 {
			require.Equal(t, 1, budget.Sending().Waiting)
			time.Sleep(4 * time.Second)
			hosts[0].fetch(2, wire.Fetch{Step: wire.FetchLives, Stream: first})
		}
		require.Zero(t, budget.Sending().Waiting)
		require.EqualValues(t, fetch.Window*10, budget.Sending().UsedBytes, "the other one lives")
		for _, h := range hosts {
			stopped(t, h)
		}
	})
}

// The size of a state is known from the state machine, and then from snapshots.
func TestSizeOfTheStateIsKnown(t *testing.T) {
	h, err := New(Config{
		Replica:      ReplicaConfig{ID: 1, Group: 7, Log: replicatest.NewMemLog()},
		StateMachine: &sized{}, Transport: tapped{make(chan wire.Message, 10), nil}, TickInterval: 17 * time.Millisecond,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Stop(t.Context())) }()
	require.EqualValues(t, 1000, h.left(0))
	require.EqualValues(t, 1, h.left(2000), "more than it was")
	h.sized(70, errors.New("it broke off"))
	require.EqualValues(t, 600, h.left(400))
	h.sized(70, nil)
	require.EqualValues(t, 30, h.left(40))
}

type sized struct{ journal }

func (*sized) SnapshotBytes() int64 { return 1000 }
