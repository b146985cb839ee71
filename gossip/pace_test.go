// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// backlog is many entries of 64 KiB of which node 2 has nothing, and node 3 all.
func backlog(count int) (list []Lacking) {
	h := coded(1, 0, 1)
	h.PayloadLen = 64 << 10
	for i := range count {
		list = append(list, Lacking{ID: at(uint64(i + 1)), Header: h, Need: 1, First: []uint8{0, 0}, Overdue: true})
	}
	return list
}

// What no push brings any more is asked for at once; in messages of a bounded
// size, several at a time, and more only when that much was answered.
func TestAsksFillAWindow(t *testing.T) {
	p := NewPuller(2, PullerOptions{})
	p.SetMembers([]uint64{1, 2, 3})
	missing := backlog(1000)
	asks := p.Plan(0, missing, 1, nil)
	require.Len(t, asks, firstWindow/AskBytes)
	for _, a := range asks {
		require.EqualValues(t, 3, a.To)
		require.Len(t, a.Wants, AskBytes>>16)
	}
	require.Equal(t, firstWindow, p.onOrder)
	p.Answered(3, at(1))
	missing = missing[1:]
	require.Empty(t, p.Plan(0, missing, 1, nil), "not for every entry")
	for range AskBytes>>16 - 1 {
		p.Answered(3, missing[0].ID)
		missing = missing[1:]
	}
	p.Plan(0, missing, 1, nil)
	require.Equal(t, firstWindow+AskBytes, p.onOrder, "it answered within the tick, so it may have more to do")
}

// A peer that answers late is waited for longer. When it falls silent after that, the
// wait halves with each order that it leaves, down to the timeout.
func TestSilentPeerIsWaitedForLessEachTime(t *testing.T) {
	p := NewPuller(2, PullerOptions{Timeout: 10})
	p.SetMembers([]uint64{2, 3})
	now, missing := 0, backlog(5)
	plan := func() int { return len(p.Plan(now, missing[:1], 0, nil)) }
	for _, took := range []int{9, 18} {
		require.Equal(t, 1, plan())
		now += took
		require.Zero(t, plan())
		p.Answered(3, missing[0].ID)
		missing = missing[1:]
	}
	for silent, waits := range []int{37, 18, 10} {
		require.Equal(t, 1, plan())
		for range waits {
			require.Equal(t, silent, p.peers[3].unanswered)
			now++
			plan()
		}
		require.Equal(t, silent+1, p.peers[3].unanswered, "given up after %d ticks", waits)
		missing = missing[1:]
	}
}

// delivery is an answer on its way.
type delivery struct {
	id ecraft.ID
	at float64 // tick
}

// A node that has missed much fills its peer's link, whatever that carries and
// however far it is, and has next to nothing sent twice.
func TestPullFillsTheLink(t *testing.T) {
	for _, rate := range []float64{16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20} { // bytes a tick
		for _, trip := range []float64{0.1, 1, 3} { // ticks
			if rate*trip > 4<<20 {
				continue // more than may be on order
			}
			t.Run(fmt.Sprintf("%.0f KiB a tick, %v ticks away", rate/1024, trip), func(t *testing.T) {
				// So long that many entries come, and first to get going.
				warm, span := 40, 20+int(6<<20/rate)
				gotWarm, sentWarm := pullFor(warm, rate, trip)
				got, sent := pullFor(warm+span, rate, trip)
				got, sent = got-gotWarm, sent-sentWarm
				require.Greater(t, float64(got), 0.85*rate*float64(span))
				require.Less(t, sent, got*21/20+2*(64<<10))
			})
		}
	}
}

// pullFor pulls for so many ticks from one peer, and returns the bytes of entries
// that it got, and those that the peer was made to send for them. It looks at the
// link ten times a tick.
func pullFor(span int, rate, trip float64) (got, sent int) {
	p := NewPuller(2, PullerOptions{})
	p.SetMembers([]uint64{2, 3})
	const size, window = 64 << 10, 512
	missing := backlog(int(rate*float64(span))/size + 2*window)
	had := map[ecraft.ID]bool{}
	var link []delivery
	busy := 0.0
	plan := func(tick int, now float64) {
		for _, a := range p.Plan(tick, missing[:window], 0, nil) {
			for _, w := range a.Wants {
				busy = max(busy, now+trip) + size/rate
				link = append(link, delivery{w.ID, busy})
				sent += size
			}
		}
	}
	for step := range 10 * span {
		now, tick := float64(step)/10, step/10
		arrived := false
		for len(link) > 0 && link[0].at <= now {
			id := link[0].id
			link, arrived = link[1:], true
			p.Answered(3, id)
			if !had[id] {
				had[id] = true
				got += size
			}
		}
		for had[missing[0].ID] {
			missing = missing[1:]
		}
		if arrived || step%10 == 0 {
			plan(tick, now)
		}
	}
	return got, sent
}
