// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/fetch"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

func TestCatchUpOfNoBytesIsRefused(t *testing.T) {
	for _, bytes := range []int64{0, -1} {
		_, err := NewCatchUp(bytes)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, fmt.Sprintf("are %d, want 1 or more", bytes))
	}
	var none *CatchUp
	require.Zero(t, none.Sending())
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
			Replica:      ReplicaConfig{ID: 1, Group: 7, Log: heardLog(5)},
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
		Replica:      ReplicaConfig{ID: 1, Group: 7, Log: heardLog(5)},
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
