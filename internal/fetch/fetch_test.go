// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// ends keeps what a receiver does.
type ends struct {
	sends []wire.Message
	begun []*pb.Message
	data  []string
	fails []error
	full  bool           // there is no place
	asked []wire.Urgency // for places
}

func (e *ends) Send(m wire.Message) { e.sends = append(e.sends, m) }
func (e *ends) Place(u wire.Urgency) bool {
	e.asked = append(e.asked, u)
	return !e.full
}
func (e *ends) Begin(h *pb.Message)      { e.begun = append(e.begun, h) }
func (e *ends) Data(data []byte, _ bool) { e.data = append(e.data, string(data)) }
func (e *ends) Fail(err error)           { e.fails = append(e.fails, err) }

// said returns what was sent since the last call, a line each.
func (e *ends) said() (lines []string) {
	for _, m := range e.sends {
		switch b := m.Body.(type) {
		case wire.Fetch:
			lines = append(lines, fmt.Sprintf("%d %s %d to %d", m.To, [...]string{"", "ask", "take", "again", "lives"}[b.Step], b.Number, b.Until))
		case wire.ChunkStatus:
			lines = append(lines, fmt.Sprintf("%d %t %s", m.To, b.OK, b.Reason))
		}
	}
	e.sends = nil
	return lines
}

const (
	leader   = 1
	patience = 80 * time.Second
)

// receiver is node 4, to which leader 1 has offered a snapshot of index 50 in term 7.
func receiver(sources ...uint64) (*Receiver, *ends) {
	on := &ends{}
	r := NewReceiver(Config{Group: 9, ID: 4, First: 100, Repeat: 2 * time.Second, Patience: patience}, on)
	r.Offer(0, leader, wire.Offer{Stream: 5, Term: 7, Index: 50, Sources: sources}, wire.UrgencyVoter)
	return r, on
}

func header(term, index uint64) *pb.Message {
	return &pb.Message{Type: pb.MsgSnap.Enum(), Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Term: &term, Index: &index}}}
}

func (r *Receiver) piece(now time.Duration, from, number uint64, last bool) {
	c := wire.Chunk{Stream: r.stream, Number: number, Data: fmt.Append(nil, "piece ", number), Last: last}
	if number == 0 {
		c.Header = header(6, 60)
	}
	r.Chunk(now, from, c)
}

// The first member that agrees is the source; the leader is, if it alone has agreed after twice its
// time, or if all others have refused.
func TestNearestMemberIsTheSource(t *testing.T) {
	yes := func(r *Receiver) wire.ChunkStatus { return wire.ChunkStatus{Stream: r.stream, OK: true} }
	no := func(r *Receiver) wire.ChunkStatus { return wire.ChunkStatus{Stream: r.stream, Reason: "busy"} }
	for name, c := range map[string]struct {
		say  func(*Receiver)
		want uint64
	}{
		"3 is first":                     {func(r *Receiver) { r.Status(5, 3, yes(r)); r.Status(6, 2, yes(r)) }, 3},
		"2 is behind the leader":         {func(r *Receiver) { r.Status(5, 1, yes(r)); r.Status(9, 2, yes(r)); r.Tick(10) }, 2},
		"2 is later than twice its time": {func(r *Receiver) { r.Status(5, 1, yes(r)); r.Tick(9); r.Tick(10); r.Status(11, 2, yes(r)) }, 1},
		"2 and 3 refuse":                 {func(r *Receiver) { r.Status(5, 1, yes(r)); r.Status(6, 2, no(r)); r.Status(7, 3, no(r)) }, 1},
		"a stranger, and an old answer": {func(r *Receiver) {
			r.Status(1, 8, yes(r))
			r.Status(2, 3, wire.ChunkStatus{Stream: r.stream - 1, OK: true})
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, on := receiver(2, 3)
			require.Equal(t, []string{"2 ask 0 to 0", "3 ask 0 to 0", "1 ask 0 to 0"}, on.said())
			c.say(r)
			require.Equal(t, c.want, r.Source())
		})
	}
	r, on := receiver(2)
	on.said()
	r.Status(5, 2, no(r))
	r.Status(5, 1, no(r))
	require.Equal(t, []string{"1 false node 1: busy"}, on.said(), "the offer has failed")
	require.False(t, r.Busy())
	r, _ = receiver(2)
	r.Status(5, 2, no(r))
	r.Status(6, 2, no(r)) // by a network that doubles it
	require.True(t, r.Busy(), "the leader has not answered")
	r, on = receiver(2)
	on.said()
	r.Tick(patience / 4)
	require.False(t, r.Busy())
	require.Equal(t, []string{"1 false no member sends a snapshot: "}, on.said())
}

// A header that does not fit the offer, or a source that has given up, has another one asked.
func TestSourceThatDoesNotFitIsReplaced(t *testing.T) {
	for name, spoil := range map[string]func(*Receiver){
		"index below that of the offer":   func(r *Receiver) { r.Chunk(2, 2, wire.Chunk{Stream: r.stream, Header: header(6, 49)}) },
		"term beyond that of the offer":   func(r *Receiver) { r.Chunk(2, 2, wire.Chunk{Stream: r.stream, Header: header(8, 60)}) },
		"no header":                       func(r *Receiver) { r.Chunk(2, 2, wire.Chunk{Stream: r.stream}) },
		"it gives up before it has begun": func(r *Receiver) { r.Status(2, 2, wire.ChunkStatus{Stream: r.stream, Reason: "gone"}) },
	} {
		t.Run(name, func(t *testing.T) {
			r, on := receiver(2, 3)
			r.Status(1, 2, wire.ChunkStatus{Stream: r.stream, OK: true})
			on.said()
			spoil(r)
			require.Empty(t, on.begun)
			require.Equal(t, []string{"3 ask 0 to 0", "1 ask 0 to 0"}, on.said()[1:])
		})
	}
}

// Pieces that nobody asked for are dropped, and missing pieces are asked for again.
func TestReceiverTakesWhatItAskedFor(t *testing.T) {
	r, on := receiver(2)
	r.Status(1, 2, wire.ChunkStatus{Stream: r.stream, OK: true})
	on.said()
	r.piece(2, 3, 0, false)
	r.piece(2, 2, Window, false)
	require.Empty(t, on.begun)
	require.Empty(t, on.data)
	r.piece(2, 2, 0, false)
	r.piece(2, 2, 0, false)
	require.Len(t, on.begun, 1)
	require.Equal(t, "1 4 7 60", fmt.Sprint(on.begun[0].GetFrom(), on.begun[0].GetTo(), on.begun[0].GetTerm(), on.begun[0].GetSnapshot().GetMetadata().GetIndex()))
	r.piece(3, 2, 2, false)
	r.piece(3, 2, 3, false)
	require.Equal(t, []string{"2 again 1 to 16"}, on.said(), "once")
	for i := range uint64(8) {
		r.piece(4, 2, 1+i, false)
	}
	require.EqualValues(t, 1, r.cfg.Counts.Resumed)
	for range 8 {
		r.Took(5)
	}
	require.Equal(t, []string{"2 take 9 to 24"}, on.said())
	r.Tick(6 + 2*time.Second)
	require.Equal(t, []string{"2 again 9 to 24"}, on.said())
	r.Tick(4 + patience/4)
	require.Len(t, on.fails, 1, "the source is silent")
	r.Restored(5+patience/4, errors.New("not whole"))
	require.Equal(t, asking, r.stage)
	require.Equal(t, []uint64{leader}, r.candidates())
}

// A leader of a later term takes an offer over, and the snapshot goes on.
func TestLaterLeaderTakesTheFetchOver(t *testing.T) {
	r, on := receiver(2)
	r.Status(1, 2, wire.ChunkStatus{Stream: r.stream, OK: true})
	r.piece(2, 2, 0, false)
	on.said()
	r.Offer(3, 3, wire.Offer{Stream: 1, Term: 6, Index: 55}, wire.UrgencyVoter)
	require.Equal(t, []string{"3 false node 1 offered a snapshot in term 7"}, on.said())
	r.Offer(3, 3, wire.Offer{Stream: 2, Term: 8, Index: 55}, wire.UrgencyVoter)
	require.Empty(t, on.fails)
	r.piece(4, 2, 1, true)
	require.Equal(t, "3 8 60", fmt.Sprint(r.Header().GetFrom(), r.Header().GetTerm(), r.Header().GetSnapshot().GetMetadata().GetIndex()))
	r.Restored(5, nil)
	require.Equal(t, []string{"2 true ", "3 true "}, on.said())
	require.Equal(t, []string{"piece 0", "piece 1"}, on.data)

	r, on = receiver(2)
	r.Status(1, 2, wire.ChunkStatus{Stream: r.stream, OK: true})
	r.piece(2, 2, 0, false)
	r.Offer(3, 3, wire.Offer{Stream: 2, Term: 8, Index: 61}, wire.UrgencyVoter)
	require.Len(t, on.fails, 1, "the leader has no use for index 60")
}

// An offer waits for a place: the leader hears that it is followed, a later leader takes it over, and nobody is asked
// before there is one.
func TestOfferWaitsForAPlace(t *testing.T) {
	on := &ends{full: true}
	r := NewReceiver(Config{Group: 9, ID: 4, First: 100, Repeat: 2 * time.Second, Patience: patience}, on)
	offer, now := wire.Offer{Stream: 5, Term: 7, Index: 50, Sources: []uint64{2}}, patience
	r.Offer(now, leader, offer, wire.UrgencyLearner)
	r.Tick(now + time.Second)
	require.True(t, r.Busy())
	require.Empty(t, on.said())
	now += 2 * time.Second
	r.Offer(now, leader, offer, wire.UrgencyLearner)
	r.Tick(now)
	require.Equal(t, []string{"1 lives 0 to 0"}, on.said(), "the leader repeats its offer until it hears this")
	now += patience / 8
	r.Tick(now)
	require.Equal(t, []string{"1 lives 0 to 0"}, on.said())
	r.Offer(now, 3, wire.Offer{Stream: 1, Term: 8, Index: 55, Sources: []uint64{2}}, wire.UrgencyEdge)
	require.Equal(t, []wire.Urgency{wire.UrgencyLearner, wire.UrgencyEdge}, on.asked)
	require.Empty(t, on.said())
	r.Placed(now)
	require.Equal(t, wire.UrgencyEdge, on.sends[0].Body.(wire.Fetch).Urgency)
	require.Equal(t, []string{"2 ask 0 to 0", "3 ask 0 to 0"}, on.said())
	r.Placed(now)
	r.Outdated(errors.New("too late"))
	require.Empty(t, on.said(), "it does not wait any more")

	for _, err := range []error{nil, errors.New("of an earlier term")} {
		r, on = receiver()
		r, on.full = NewReceiver(r.cfg, on), true
		r.Offer(0, leader, wire.Offer{Stream: 5, Term: 7, Index: 50}, wire.UrgencyVoter)
		on.said()
		r.Outdated(err)
		require.False(t, r.Busy())
		require.Equal(t, err == nil, on.sends[0].Body.(wire.ChunkStatus).OK)
	}
}

// A source that says that it lives is waited for, as long as it says so.
func TestSourceThatLivesIsWaitedFor(t *testing.T) {
	r, on := receiver(2)
	r.Status(1, 2, wire.ChunkStatus{Stream: r.stream, OK: true})
	now := time.Duration(0)
	for range 100 {
		now += time.Second
		r.Status(now, 2, wire.ChunkStatus{Stream: r.stream, OK: true})
		r.Status(now, 1, wire.ChunkStatus{Stream: r.stream, Reason: "not the source"})
		r.Tick(now)
	}
	require.EqualValues(t, 2, r.Source())
	for _, line := range on.said() {
		require.NotContains(t, line, "again")
	}
	r.Tick(now + patience/4)
	require.Zero(t, r.Source())
}

// A stream keeps what was not taken, sends it again, and keeps no more than a window.
func TestStreamKeepsWhatWasNotTaken(t *testing.T) {
	var s Stream
	want := func(step wire.FetchStep, number, until uint64) error {
		return s.Want(wire.Fetch{Step: step, Number: number, Until: until})
	}
	sends := func() (numbers []uint64) {
		for number, reads, ok := s.Next(); ok; number, reads, ok = s.Next() {
			if reads {
				s.Read(fmt.Append(nil, number), number == 30)
			}
			c := s.Take()
			require.Equal(t, fmt.Sprint(number), string(c.Data))
			require.Equal(t, number == 30, c.Last)
			numbers = append(numbers, c.Number)
		}
		return numbers
	}
	require.NoError(t, want(wire.FetchTake, 0, 1000))
	require.Len(t, sends(), Window)
	require.NoError(t, want(wire.FetchTake, 10, 18))
	require.Equal(t, []uint64{16, 17}, sends())
	require.NoError(t, want(wire.FetchAgain, 12, 28))
	require.Equal(t, []uint64{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27}, sends())
	require.NoError(t, want(wire.FetchAgain, 11, 28), "it comes late, as chunk 11 was taken")
	require.Empty(t, sends())
	require.ErrorContains(t, want(wire.FetchTake, 29, 40), "chunk 29 is not there")
	require.NoError(t, want(wire.FetchTake, 28, 40))
	require.Equal(t, []uint64{28, 29, 30}, sends())
	require.Empty(t, sends())
	require.NoError(t, want(wire.FetchAgain, 30, 46))
	require.Equal(t, []uint64{30}, sends())
}
