// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// A busy leader appends at once what comes while nothing is under way; what comes later goes with the commit of that.
func TestBatchesOfOthersWaitForTheRoundUnderWayAtABusyLeader(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	leader := c.elect(1)
	leader.r.cfg.Busy, leader.r.cfg.Tick = func() float64 { return busyFrom }, tick
	var acks []wire.Message
	c.lose = func(m wire.Message) bool {
		ack := m.To == 1 && m.Class() == wire.ClassControl
		if ack {
			acks = append(acks, m)
		}
		return ack
	}
	begun := leader.r.last
	c.propose(2, "a")
	c.settle()
	require.Equal(t, begun+1, leader.r.last)
	c.propose(2, "b")
	c.propose(3, "c")
	c.settle()
	require.Equal(t, begun+1, leader.r.last, "a round is under way")
	require.Len(t, leader.r.inbox.waits, 2)
	c.propose(1, "own")
	c.settle()
	require.Equal(t, begun+2, leader.r.last, "a leader's own commands wait for other things")

	c.lose = func(wire.Message) bool { return false }
	c.wires = append(c.wires, acks...)
	c.settle()
	require.Equal(t, begun+4, leader.r.last)
	require.Empty(t, leader.r.inbox.waits)
	require.Zero(t, leader.r.inbox.waiting)
	require.Len(t, c.agree(), 4)
}

func TestBatchesOfOthersDoNotWaitFor(t *testing.T) {
	for _, why := range []string{"what is full", "long", "far members", "a former leader", "idle processors"} {
		t.Run(why, func(t *testing.T) {
			c := newCluster(t, Weft, 1, 2, 3)
			leader := c.elect(1)
			box, share := &leader.r.inbox, busyFrom
			leader.r.cfg.Busy, leader.r.cfg.Tick = func() float64 { return share }, tick
			switch why {
			case "far members":
				box.typical = busyEvery
			case "idle processors":
				share = busyFrom / 2
			}
			c.lose = func(m wire.Message) bool { return m.To == 1 && m.Class() == wire.ClassControl }
			c.propose(2, "a")
			c.settle()
			c.propose(2, "b")
			c.settle()
			switch why {
			case "what is full":
				require.Len(t, box.waits, 1)
				leader.r.cfg.MaxBatchBytes = 60
				c.propose(3, fmt.Sprintf("%60d", 1))
			case "long":
				c.now += busyEvery - 1
				c.turn(leader)
				require.Len(t, box.waits, 1)
				c.now++
			case "a former leader":
				require.Len(t, box.waits, 1)
				c.elect(3)
			}
			c.settle()
			c.turn(leader)
			require.Empty(t, box.waits)
			c.lose = func(wire.Message) bool { return false }
			c.run(30)
			require.GreaterOrEqual(t, len(c.agree()), 2)
		})
	}
}

// Few calls leave a gateway at once. Of many, the next batch waits, for a part of a batch's usual time, for the clients whose
// calls have just ended.
func TestCrowdAtAGatewayGathers(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	held := []wire.Message{}
	c.lose = func(m wire.Message) bool {
		results := m.To == 9
		if results {
			held = append(held, m)
		}
		return results
	}
	box := &c.g.outbox
	made := func(calls int) uint64 {
		for range calls {
			c.propose("x")
		}
		c.settle()
		return c.g.Status().Counters.Batches
	}
	answer := func() {
		box.typical = 2 * time.Millisecond
		c.lose, c.wires, held = func(wire.Message) bool { return false }, append(c.wires, held...), nil
	}
	due := func() time.Duration {
		at, due := c.g.Deadline()
		require.True(t, due)
		return at - c.now
	}
	require.Equal(t, uint64(1), made(1))
	require.Equal(t, uint64(2), made(1), "two may be under way")
	require.Equal(t, uint64(2), made(crowd))
	require.Equal(t, gatewayWait, due())
	answer()
	require.Equal(t, uint64(2), made(0), "two calls have ended, and their clients may call again")
	require.Equal(t, box.typical/2, due())
	require.Equal(t, uint64(2), made(1))
	require.Equal(t, uint64(3), made(1), "all have")
	require.Len(t, c.done, crowd+4)

	c.now += gatewayWait
	require.Equal(t, uint64(4), made(1), "the last batch was long ago")
	require.Len(t, c.done, crowd+5)
	require.Equal(t, 1, box.expected, "of the last batch, not of earlier ones")
	c.now += gatewayWait
	require.Equal(t, uint64(5), made(1))
	box.expected, box.typical = crowd, gatewayWait
	require.Equal(t, uint64(6), made(1), "a few do not wait for each other")
	box.expected, box.typical = 2*largeCrowd, gatewayWait
	require.Equal(t, uint64(6), made(largeCrowd-1))
	require.Equal(t, uint64(7), made(1), "so many need not wait for more")
	require.Equal(t, 2*largeCrowd, box.expected, "the others, and those of the batch that has ended")
	require.Equal(t, uint64(7), made(1))
	c.now += gatewayWait
	require.Equal(t, uint64(8), made(1), "the others have gone")
	require.Equal(t, 2, box.expected)
}
