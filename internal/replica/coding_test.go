// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// codedCluster is a cluster in which everything that can be is coded.
func codedCluster(t *testing.T, ids ...uint64) *cluster {
	c := newCluster(t, Weft, ids...)
	c.coding = func() *raft.Coding { return &raft.Coding{Threshold: 64, Policy: ecraft.Levelled{}} } // links take no time here
	for _, id := range c.ids() {
		c.start(c.nodes[id])
	}
	return c
}

// A leader of five sends each follower a part of a large command; followers push
// what they got to each other, and all apply it. After a restart of all of them,
// what is in their logs is enough.
func TestCodedCommands(t *testing.T) {
	c := codedCluster(t, 1, 2, 3, 4, 5)
	lead := c.elect(1)
	c.run(5) // members tell that they can read coded entries
	const commands, size = 20, 30_000
	sent, pushed := 0, 0
	c.lose = func(m wire.Message) bool {
		if b, ok := m.Body.(wire.Raft); ok {
			for _, e := range b.Entries {
				if m.From == 1 && b.GetType() == pb.MsgApp {
					sent += len(e.GetData())
				} else if wire.AboutUnits(b.Message) {
					require.Equal(t, wire.ClassBackground, m.Class(), "units are pushed")
					pushed += len(e.GetData())
				}
			}
		}
		return false
	}
	for i := range commands {
		call := c.propose(uint64(1+i%5), strings.Repeat("x", size))
		c.settle()
		require.NoError(t, c.result(call).Err)
	}
	require.Len(t, c.agree(), commands)
	require.Less(t, float64(sent), 4.0/3*1.05*commands*size, "a third to each of four followers")
	require.Greater(t, pushed, commands*size, "the rest comes from other followers")

	s := lead.r.Status().Coding
	require.True(t, s.Active)
	require.Len(t, s.Members, 4)
	require.EqualValues(t, commands, s.Counters.Encoded)
	require.EqualValues(t, commands*size/1000, s.Counters.EncodedBytes/1000)
	require.EqualValues(t, commands, s.Counters.Levels[3])
	follower := c.nodes[2].r.Status().Coding
	require.EqualValues(t, commands, follower.Counters.Completed)
	require.False(t, follower.Active)

	for _, id := range c.ids() {
		c.nodes[id].sm = &journal{} // its state is lost, the log is not
		c.start(c.nodes[id])
	}
	c.lose = func(wire.Message) bool { return false }
	c.elect(4)
	c.run(10)
	require.Len(t, c.agree(), commands)
}

// Commands below the threshold cost the same with coding as without, but for a report in each
// acknowledgement: as many messages of each kind and writes, and nothing is due between ticks. Only
// an entry that may be coded has its leader ask what waits for the others.
func TestSmallCommandsCostNothingMore(t *testing.T) {
	const commands = 50
	type work struct {
		messages map[pb.MessageType]int
		bytes    int
		writes   uint64
	}
	run := func(coding func() *raft.Coding) (w work) {
		c := newCluster(t, Weft, 1, 2, 3)
		c.coding = coding
		questions := 0
		for _, id := range c.ids() {
			c.nodes[id].cfg.Backlog = func(uint64) (int, bool) { questions++; return 0, true }
			c.start(c.nodes[id])
		}
		c.elect(1)
		c.run(5)
		w.messages = map[pb.MessageType]int{}
		c.lose = func(m wire.Message) bool {
			core, ok := m.RaftBody()
			require.True(t, ok, "%T", m.Body)
			w.messages[core.GetType()]++
			w.bytes += m.Size() - len(core.GetContext())
			return false
		}
		for i := range commands {
			c.propose(1, strings.Repeat("x", 16))
			c.settle()
			_, due := c.nodes[1].r.Deadline()
			require.False(t, due)
			if i%10 == 0 {
				c.run(1)
			}
		}
		require.Len(t, c.agree(), commands)
		require.Zero(t, questions)
		for _, id := range c.ids() {
			w.writes += c.nodes[id].r.Status().Counters.Appends
		}
		c.lose = func(wire.Message) bool { return false }
		c.propose(1, strings.Repeat("x", raft.DefaultCodingThreshold))
		c.settle()
		if coding != nil {
			require.Equal(t, 3, questions, "one for each member")
		}
		return w
	}
	coded := run(func() *raft.Coding { return &raft.Coding{} })
	require.Equal(t, run(nil), coded)
}

// Densify makes a group's new entries plain.
func TestDensify(t *testing.T) {
	c := codedCluster(t, 1, 2, 3)
	lead := c.elect(1)
	c.run(5)
	call := c.propose(1, strings.Repeat("x", 1000))
	c.settle()
	require.NoError(t, c.result(call).Err)
	require.EqualValues(t, 1, lead.r.Status().Coding.Counters.Encoded)
	c.nodes[3].r.Densify(true)
	c.run(5)
	require.False(t, lead.r.Status().Coding.Active)
	call = c.propose(1, strings.Repeat("y", 1000))
	c.settle()
	require.NoError(t, c.result(call).Err)
	require.EqualValues(t, 1, lead.r.Status().Coding.Counters.Encoded)
	c.nodes[3].r.Densify(false)
	c.run(5)
	require.True(t, lead.r.Status().Coding.Active)
}

// A member without coding has the group go on without, and does not mind units.
func TestMemberWithoutCoding(t *testing.T) {
	c := codedCluster(t, 1, 2, 3)
	c.coding = nil
	c.nodes[3].cfg.Coding = nil
	c.start(c.nodes[3])
	lead := c.elect(1)
	c.run(5)
	call := c.propose(1, strings.Repeat("x", 1000))
	c.settle()
	require.NoError(t, c.result(call).Err)
	require.False(t, lead.r.Status().Coding.Active)
	require.Zero(t, lead.r.Status().Coding.Counters.Encoded)
	require.Nil(t, c.nodes[3].r.Status().Coding)

	before := c.nodes[3].r.Status()
	require.NoError(t, c.nodes[3].r.Receive(wire.Message{Group: 7, From: 2, To: 3, Body: wire.Raft{Message: &pb.Message{
		Type: raft.MsgUnits.Enum(), From: new(uint64(2)), To: new(uint64(3)), Context: []byte("p"),
	}}}))
	c.settle()
	require.Equal(t, before.Counters.BadMessages, c.nodes[3].r.Status().Counters.BadMessages)
}

// Upstream's core cannot code, and says so at once.
func TestCodingNeedsWeft(t *testing.T) {
	_, err := New(Config{Settings: Settings{ID: 1, Log: newMemLog(), Core: Upstream, Coding: &raft.Coding{}}})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "Coding is set, and the core does not code")
	_, err = New(Config{Settings: Settings{ID: 1, Log: newMemLog(), Coding: &raft.Coding{Threshold: -1}}})
	require.ErrorContains(t, err, "Coding.Threshold is -1")
}

// Everything that the core reports is counted, and passed on.
func TestCodingCounters(t *testing.T) {
	var c CodingCounters
	var seen heard
	r := codingRecorder{counts: &c, next: &seen}
	for kind := raft.CodingEncoded; kind <= raft.CodingDelayed; kind++ {
		before := c
		r.RecordCoding(raft.CodingEvent{Kind: kind, Count: 3, Bytes: 10, Level: 2})
		require.NotEqual(t, before, c, "event %d counts", kind)
	}
	require.Equal(t, int(raft.CodingDelayed)+1, int(seen))
	require.EqualValues(t, 1, c.Levels[2])
	require.Equal(t, 3*time.Microsecond, c.MaxDelay)
	r.RecordCoding(raft.CodingEvent{Kind: raft.CodingEncoded, Level: 100})
	require.EqualValues(t, 1, c.Levels[codingLevels])
}

type heard int

func (h *heard) RecordCoding(raft.CodingEvent) { *h++ }
