// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// A gateway that acknowledges nothing has its home keep small results: what they take in memory counts.
func TestSmallResultsCountWithTheirMemory(t *testing.T) {
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for _, commands := range []int{1, 100} {
		c := newGated(t, nil, 1)
		n := c.elect(1)
		require.NoError(t, n.r.Receive(wire.Message{Group: 7, From: 10, To: 1, Body: wire.Attach{Life: 1, Number: 1}}))
		_, guest := n.r.home.find(10)
		results := make([]any, commands)
		for i := range results {
			results[i] = "x"
		}
		before := heap()
		for i := range uint64(20_000 / commands) {
			n.r.home.take(Apply{guests: []guestEntry{{guest: guest, n: commands, results: wire.EntryResults{Boot: 1, Sequence: 1 + i, Index: 9 + i}}}}, results)
			n.r.home.tellAll()
			n.r.out = Output{}
		}
		took := heap() - before
		require.True(t, n.r.home.has(guest))
		require.Less(t, took, n.r.home.kept*5/4, "%d commands in a batch", commands)
		require.Greater(t, took, n.r.home.kept/4, "%d commands in a batch", commands)
		runtime.KeepAlive(n)
	}
}

type resolverFunc func(m wire.Message) (wire.Message, Resolution)

func (f resolverFunc) Resolve(m wire.Message, _ time.Duration) (wire.Message, Resolution) {
	return f(m)
}

// What a gateway has acknowledged, and a message that was resolved, take no memory any more: many may have waited before, and
// their array is used for long.
func TestQueuesLetGoOfWhatHasLeft(t *testing.T) {
	h, g := &home{}, &guest{}
	for i := range uint64(8) {
		g.kept = append(g.kept, keptReport{Report: wire.Report{Count: 1 + i, Entries: make([]wire.EntryResults, 1)}, bytes: 10})
	}
	kept := g.kept
	h.kept = 80
	h.acknowledged(g, 3)
	require.Equal(t, 50, h.kept)
	require.Len(t, g.kept, 5)
	for i := range kept {
		require.Equal(t, i < 3, kept[i].Entries == nil, i)
	}

	resolves := 0
	s := resolveStage{limit: 1 << 20, resolver: resolverFunc(func(m wire.Message) (wire.Message, Resolution) {
		if resolves == 0 {
			return m, asUnresolved
		}
		resolves--
		return m, asResolved
	})}
	for range 3 {
		_, _, err := s.offer(wire.Message{From: 1, To: 2, Body: wire.Lack{}}, 0, nil)
		require.NoError(t, err)
	}
	queue := s.lanes[0].queue
	resolves = 2
	s.again(0, nil, func(wire.Message, Resolution) {})
	require.Len(t, s.lanes[0].queue, 1)
	for i := range queue {
		require.Equal(t, i < 2, queue[i].msg.Body == nil, i)
	}
}

// A proposal that fits the frame of its sender may be too large for a leader's appends.
func TestLeaderRefusesAnEntryThatItCannotSend(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	leader := c.elect(1)
	c.run(3)
	for size, outcome := range map[int]wire.Outcome{maxEntryBytes + 1: wire.Malformed, MaxCommandBytes + 64: 0} {
		id := wire.CommandID{Origin: 9, Boot: 50, Sequence: 1}
		data := encodeBatch(id, 1, [][]byte{nil})
		v, _ := leader.r.inbox.check(9, wire.Proposal{ID: id, Number: 1, Term: leader.r.state.Term, Data: append(data, make([]byte, size-len(data))...)})
		require.Equal(t, outcome, v.Outcome, "%d bytes", size)
	}
}

// Each batch that was applied above an open one takes a place in the state of all members.
func TestGatewayLeavesFewBatchesOpen(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	leader := c.elect(1)
	c.run(3)
	for from, far := range map[uint64]uint64{2: maxWindow, 9: gatewayWindow} {
		for behind, outcome := range map[uint64]wire.Outcome{far: 0, far + 1: wire.Busy} {
			id := wire.CommandID{Origin: from, Boot: 50, Sequence: 1 + behind}
			v, err := leader.r.inbox.check(from, wire.Proposal{ID: id, Number: 1, Term: leader.r.state.Term, Data: encodeBatch(id, 1, nil)})
			require.NoError(t, err)
			require.Equal(t, outcome, v.Outcome, "node %d, %d behind", from, behind)
		}
	}
}

// Gateways that all leave as much open as they may come to no more than what state machines take of the host, with what a leader's log
// has and is not applied.
func TestGatewaysLeaveFewBatchesOpenTogether(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	leader := c.elect(1)
	c.run(3)
	host := leader.r.host
	outcome := func(behind uint64) wire.Outcome {
		id := wire.CommandID{Origin: 9, Boot: 50, Sequence: 1 + behind}
		v, err := leader.r.inbox.check(9, wire.Proposal{ID: id, Number: 1, Term: leader.r.state.Term, Data: encodeBatch(id, 1, nil)})
		require.NoError(t, err)
		return v.Outcome
	}
	leader.r.last += largeTable / 4 // entries that are not applied
	require.Equal(t, wire.Busy, outcome(1+smallWindow))
	leader.r.last -= largeTable / 4
	require.Zero(t, outcome(gatewayWindow))
	for from := uint64(1000); host.size <= largeTable; from++ {
		row := &originRow{boot: 1, floor: 1}
		for behind := range uint64(gatewayWindow) {
			row.above = append(row.above, 2+behind)
		}
		host.origins[from] = row
		host.encode()
	}
	require.Zero(t, outcome(smallWindow), "an honest gateway goes on when the fate of its first batches is known")
	require.Equal(t, wire.Busy, outcome(1+smallWindow))
}

// A group has rows of so many gateways. A further one hears that at once, others go on, and so do members without a row.
func TestFurtherGatewayHearsThatThereAreTooMany(t *testing.T) {
	for _, known := range []bool{false, true} {
		c := newGated(t, nil, 1, 2, 3)
		c.elect(1)
		c.run(30)
		for _, id := range c.ids() {
			rows := c.nodes[id].r.host.origins
			for gateway := uint64(1000); len(rows) < maxOrigins-1; gateway++ {
				rows[gateway] = &originRow{boot: 1, floor: 2}
			}
			if rows[1001+maxOrigins] = (&originRow{boot: 1, floor: 2}); known {
				delete(rows, 1001+maxOrigins)
				rows[9] = &originRow{boot: 1, floor: 1}
			}
		}
		call, other := c.propose("a"), c.cluster.propose(2, "b")
		c.run(2)
		require.NoError(t, c.cluster.result(other).Err)
		err := c.result(call).Err
		if known {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "the leader does not take the entry: the group has had entries of 65536 nodes and gateways, and takes none of others, such as 9")
	}
}

// A leader listens to a bounded number of gateways. Members are none.
func TestMemberIsHeardInACrowdOfGateways(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	leader := c.elect(1)
	c.run(3)
	leader.r.inbox.seen = map[uint64]sending{}
	for id := range uint64(maxOrigins) {
		leader.r.inbox.seen[1000+id] = sending{1, 1}
	}
	require.ErrorContains(t, leader.r.Receive(wire.Message{Group: 7, From: 9, To: 1, Body: wire.Proposal{Term: leader.r.state.Term}}), "no more are listened to")
	call := c.cluster.propose(2, "a")
	c.cluster.run(1)
	require.NoError(t, c.cluster.result(call).Err)
	leader.r.host.origins[9] = &originRow{boot: 1, floor: 1}
	require.NoError(t, leader.r.Receive(wire.Message{Group: 7, From: 9, To: 1, Body: wire.Proposal{Term: leader.r.state.Term, ID: wire.CommandID{Origin: 9, Boot: 2, Sequence: 1}, Number: 1, Data: encodeBatch(wire.CommandID{Origin: 9, Boot: 2, Sequence: 1}, 1, nil)}}),
		"the gateway was heard under another leader")
}

// Behind such a start the id would have no other: a gateway takes no report of it, and nothing is above the highest number.
func TestStartBeyondAllClocksIsRefused(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	leader := c.elect(1)
	c.run(30)
	id := wire.CommandID{Origin: 9, Boot: math.MaxUint64, Sequence: 1}
	err := leader.r.Receive(wire.Message{Group: 7, From: 9, To: 1, Body: wire.Proposal{ID: id, Number: 1, Term: leader.r.state.Term, Data: encodeBatch(id, 1, nil)}})
	require.ErrorIs(t, err, ErrBadMessage)
	call := c.propose("a")
	c.run(3)
	require.NoError(t, c.result(call).Err)
}

// A gateway that acknowledges nothing has its home keep a report of each change of members.
func TestReportsWithoutResultsAreBounded(t *testing.T) {
	c := newGated(t, nil, 1)
	h := c.elect(1).r
	require.NoError(t, h.Receive(wire.Message{Group: 7, From: 10, To: 1, Body: wire.Attach{Life: 1, Number: 1}}))
	_, guest := h.home.find(10)
	for range maxKeptBytes/reportBytes + 1 {
		h.host.conf = &pb.ConfState{Voters: []uint64{1}}
		h.home.tellAll()
		h.out = Output{}
	}
	require.False(t, h.home.has(guest))
	require.Zero(t, h.home.kept)
}

// Without TLS a process may come as another gateway each time.
func TestLeaderNotesNothingOfGatewaysThatComeAndGo(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	r := c.elect(1).r
	heard := len(r.heard)
	for id := range uint64(100) {
		require.NoError(t, r.Receive(wire.Message{Group: 7, From: 1000 + id, To: 1, Body: wire.Proposal{}}))
	}
	require.Len(t, r.heard, heard)
	require.Empty(t, r.inbox.seen)
}
