// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/names"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// namedCluster returns three nodes that give names, with node 1 as their leader. Batches looked for are
// missing while *missing says so.
func namedCluster(t *testing.T, core NewCore, missing *bool) *cluster {
	c := newCluster(t, core, 1, 2, 3)
	for _, id := range c.ids() {
		c.nodes[id].cfg.Names = &Names{Announced: func(uint64) bool { return true }, Forget: func() bool { return *missing }}
		c.start(c.nodes[id])
	}
	c.elect(1)
	return c
}

func large(i int) string { return fmt.Sprint(i, strings.Repeat("x", 1000)) }

func TestLeaderSendsNamesOfTheBatchesOfItsFollowers(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		missing := false
		c := namedCluster(t, core, &missing)
		back := 0 // bytes that came from node 2, and go back to it
		c.lose = func(m wire.Message) bool {
			if b, ok := m.RaftBody(); ok && m.To == 2 && b.GetType() == pb.MsgApp {
				for _, e := range b.Entries {
					back += len(e.GetData())
				}
			}
			return false
		}
		for i := range 10 {
			c.propose(2, large(i))
			c.run(1)
		}
		c.run(10)
		require.Len(t, c.agree(), 10)
		require.Zero(t, back)
		require.Equal(t, uint64(10), c.nodes[2].r.NameCounts().Joined)
		require.Zero(t, c.nodes[3].r.NameCounts(), "node 3 has sent none of the batches")
	})
}

// A message that lacks its data waits, and what comes behind it waits, too: the core sees no gap.
func TestMessagesBehindALackKeepTheirOrder(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		missing := false
		c := namedCluster(t, core, &missing)
		var fills []wire.Message
		rejects, hold := 0, true
		c.lose = func(m wire.Message) bool {
			if b, ok := m.Body.(wire.Raft); ok && b.GetReject() {
				rejects++
			}
			if _, ok := m.Body.(wire.Fill); ok && hold {
				fills = append(fills, m)
				return true
			}
			return false
		}
		missing = true
		calls := []Call{c.propose(2, large(0))}
		c.settle()
		missing = false
		calls = append(calls, c.propose(1, "behind"))
		c.settle()
		calls = append(calls, c.propose(2, large(2)))
		c.settle()
		require.Len(t, fills, 1)
		require.Equal(t, 6, c.nodes[2].r.Status().Resolve.Length, "three appends, and three of a commit index alone")
		require.NoError(t, c.nodes[2].r.Receive(fills[0]))
		c.run(3)
		require.Zero(t, rejects)
		for _, call := range calls {
			require.NoError(t, c.result(call).Err)
		}
		require.Len(t, c.agree(), 3)
		require.Equal(t, uint64(1), c.nodes[2].r.NameCounts().Late)
		require.Equal(t, uint64(1), c.nodes[2].r.NameCounts().Joined)

		// A fill that is lost is waited for, for an election timeout, and the core makes up for it.
		missing = true
		c.propose(2, large(1))
		c.settle()
		missing = false
		require.Len(t, fills, 2)
		c.run(40)
		require.Len(t, c.agree(), 4)
		require.Equal(t, uint64(1), c.nodes[2].r.NameCounts().GivenUp)
	})
}

// What is dropped at any time changes no verdict, and peers that lack much get no names.
func TestGroupWorksWhileEveryBatchIsMissing(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		missing := true
		c := namedCluster(t, core, &missing)
		var calls []Call
		for i := range 30 {
			calls = append(calls, c.propose(uint64(i%3+1), large(i)))
			c.run(1)
		}
		c.run(30)
		for _, call := range calls {
			require.NoError(t, c.result(call).Err)
		}
		require.Len(t, c.agree(), 30)
		counts := c.nodes[1].r.NameCounts()
		require.Equal(t, uint64(2), counts.Pauses)
		require.Equal(t, uint64(8), counts.Filled, "four lacks of each peer")
	})
}

// What a node has kept counts as nothing until the log has it.
func TestJoinedBatchIsNotAcknowledgedBeforeItIsDurable(t *testing.T) {
	missing := false
	c := namedCluster(t, Weft, &missing)
	c.nodes[2].hung = true
	before := c.nodes[1].r.Status().Progress[2].Match
	c.propose(2, large(0))
	c.settle()
	require.Equal(t, uint64(1), c.nodes[2].r.NameCounts().Joined)
	require.Equal(t, before, c.nodes[1].r.Status().Progress[2].Match)
	c.nodes[2].hung = false
	c.run(10)
	require.Greater(t, c.nodes[1].r.Status().Progress[2].Match, before)
}

// A lack that cannot be answered ends at the core: the peer was not reached.
func TestCoreHearsOfALackWhoseOriginalIsGone(t *testing.T) {
	missing := true
	c := namedCluster(t, Weft, &missing)
	c.lose = func(m wire.Message) bool { return m.To == 2 }
	call := c.propose(2, large(0))
	c.settle()
	require.Equal(t, uint64(1), c.nodes[1].r.NameCounts().Named)
	leader := c.nodes[1].r
	lack := wire.Message{Group: 7, From: 2, To: 1, Body: wire.Lack{Term: leader.Status().Term, Number: 1}}
	require.NoError(t, leader.Receive(lack))
	require.Equal(t, "StateReplicate", leader.Status().Progress[2].State)
	require.NoError(t, leader.Receive(lack))
	require.Equal(t, uint64(1), leader.NameCounts().Gone)
	require.Equal(t, "StateProbe", leader.Status().Progress[2].State)
	lack.Body = wire.Lack{Term: leader.Status().Term, Number: 2}
	require.ErrorIs(t, leader.Receive(lack), ErrBadMessage)
	c.lose = func(wire.Message) bool { return false }
	c.run(30)
	require.NoError(t, c.result(call).Err)
}

// Names are taken from everybody, and believed of nobody.
func TestFaultyNamesAreCountedAndHaveNoEffect(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	r := c.nodes[2].r
	st := r.Status()
	n := wire.Named{Number: 1, Names: []wire.Name{{Entry: 1, Length: 600, Sum: names.Sum(nil)}}}
	n.Message = &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: &st.Term, Index: &st.LastIndex, LogTerm: &st.Term, Commit: &st.Commit,
		Entries: []*pb.Entry{{Term: &st.Term, Index: new(st.LastIndex + 1)}}}
	require.ErrorIs(t, r.Receive(wire.Message{Group: 7, From: 1, To: 2, Body: n}), ErrBadMessage)
	require.Equal(t, st.Counters.BadMessages+1, r.Status().Counters.BadMessages)

	n.Names[0].Entry = 0
	require.NoError(t, r.Receive(wire.Message{Group: 7, From: 1, To: 2, Body: n}), "it lacks its data")
	require.Len(t, r.Flush(c.now).Sends, 1)
	bad := wire.Fill{Term: st.Term, Number: 1, Data: [][]byte{make([]byte, 600)}}
	require.ErrorIs(t, r.Receive(wire.Message{Group: 7, From: 1, To: 2, Body: bad}), ErrBadMessage)
	require.Equal(t, st.LastIndex, r.Status().LastIndex)
	require.Zero(t, r.Status().Resolve.Length)

	n.Number, n.Names[0].Length = 2, uint64(r.cfg.MaxUnresolvedBytes) // more than may wait, with the message
	require.NoError(t, r.Receive(wire.Message{Group: 7, From: 1, To: 2, Body: n}), "it waits alone")
	n.Number = 3
	require.ErrorIs(t, r.Receive(wire.Message{Group: 7, From: 1, To: 2, Body: n}), ErrOverloaded)
	require.Equal(t, 1, r.Status().Resolve.Length)
}

// A leader sends a message again that was refused, with the same names. So a message waits for its data however large it is.
func TestMessageLargerThanWhatMayWaitGetsThrough(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		missing := false
		c := namedCluster(t, core, &missing)
		n := c.nodes[2]
		n.cfg.MaxUnresolvedBytes = len(large(0))
		c.start(n)
		c.run(10)
		c.lose = func(m wire.Message) bool { // nothing comes behind it
			p, ok := wire.PlaceOf(m)
			return ok && p.Empty && m.To == 2
		}
		missing = true
		call := c.propose(2, large(0))
		c.run(10)
		require.NoError(t, c.result(call).Err)
		require.Equal(t, uint64(1), n.r.NameCounts().Late)
		require.Zero(t, n.r.NameCounts().GivenUp)
	})
}

// Five members in zones of two, two and one, and readers in the first two, node 1 leads. Of a coded entry 8/3 cross the borders: the leader
// sends one payload into the other zones, and each zone is pushed what its members lack together: 1/3 where there are two followers, and 2/3
// where there is one. A voter that passes nothing on, or gets nothing to pass on, delays others; a member of an earlier
// version is passed nothing.
func TestUnitsEnterAZoneOnce(t *testing.T) {
	zone := func(node uint64) string { return []string{"", "a", "b", "c", "a", "b", "a", "b"}[node] }
	c := newCluster(t, Weft, 1, 2, 3, 4, 5)
	c.coding = func() *raft.Coding { return &raft.Coding{Threshold: 64, Policy: ecraft.Levelled{}} }
	former, muted, deaf := uint64(0), uint64(0), uint64(0)
	place := func(n *node) {
		n.cfg.Names = &Names{Zone: zone, Relayed: func(node uint64) bool { return node != former }}
		c.start(n)
	}
	for _, id := range c.ids() {
		place(c.nodes[id])
	}
	c.elect(1)
	for _, id := range []uint64{6, 7} {
		place(c.add(id, nil))
		require.NoError(t, c.change(1, single(pb.ConfChangeAddLearnerNode, id)).Err)
	}
	c.run(30)
	crossed, passed, asked := 0, map[uint64]int{}, 0
	c.lose = func(m wire.Message) bool {
		b, ok := m.RaftBody()
		if !ok {
			return false
		}
		zones := b.GetType() == raft.MsgUnits && string(b.GetContext()) == "c"
		if zones {
			passed[m.To]++
		}
		if zone(m.From) != zone(m.To) {
			for _, e := range b.Entries {
				crossed += len(e.GetData())
			}
			if b.GetType() == raft.MsgUnitsAsk {
				asked++
			}
		}
		push := b.GetType() == raft.MsgUnits && string(b.GetContext()) == "p"
		return zones && m.From == muted || push && m.To == deaf && zone(m.From) != zone(deaf)
	}
	propose := func() {
		var calls []Call
		for i := range 24 {
			calls = append(calls, c.propose(1, strings.Repeat(large(i), 16)))
			c.run(1)
		}
		c.run(40)
		for _, call := range calls {
			require.NoError(t, c.result(call).Err)
		}
		c.agree()
	}
	propose()
	payload := 24 * 16 * len(large(0))
	t.Logf("%.2f bytes cross for a byte", float64(crossed)/float64(payload))
	require.Zero(t, asked)
	for _, id := range []uint64{2, 5, 6, 7} {
		require.Positive(t, passed[id], "to node %d", id)
	}
	require.InEpsilon(t, 8./3, float64(crossed)/float64(payload), 0.05, "units, and headers")

	muted = 2
	propose()
	require.Zero(t, asked, "those behind node 2 ask node 2")

	muted, deaf = 0, 2
	propose()
	require.Positive(t, asked, "what has not come into a zone is asked for in another")

	deaf, former = 0, 5
	clear(passed)
	propose()
	require.Zero(t, passed[5])
}

// Five members in two zones, node 1 leads: the data of an entry crosses the border between the zones once.
func TestDataEntersAZoneOnce(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3, 4, 5)
		zone := func(node uint64) string { return []string{"", "a", "a", "b", "b", "b"}[node] }
		for _, id := range c.ids() {
			c.nodes[id].cfg.Names = &Names{Zone: zone, Relayed: func(uint64) bool { return true }}
			c.start(c.nodes[id])
		}
		c.elect(1)
		crossed, mute := 0, uint64(0)
		c.lose = func(m wire.Message) bool {
			data := func(entries []*pb.Entry) (n int) {
				for _, e := range entries {
					n += len(e.GetData())
				}
				return n
			}
			switch b, ok := m.RaftBody(); {
			case zone(m.From) == zone(m.To):
			case ok && b.GetType() == pb.MsgApp:
				crossed += data(b.Entries)
			default:
				if f, ok := m.Body.(wire.Fill); ok {
					crossed += len(bytes.Join(f.Data, nil))
				}
			}
			_, fills := m.Body.(wire.Fill)
			return fills && m.From == mute
		}
		propose := func(n int) (bytes int) {
			var calls []Call
			for i := range n {
				calls = append(calls, c.propose(2, large(i)))
				c.run(1)
			}
			c.run(30)
			for _, call := range calls {
				require.NoError(t, c.result(call).Err)
			}
			return n * len(large(0))
		}
		want := propose(9)
		require.InDelta(t, want, crossed, float64(9*100), "once, and what goes with a batch")
		require.Equal(t, uint64(18), c.nodes[3].r.NameCounts().Passed, "to nodes 4 and 5")
		require.Zero(t, c.nodes[1].r.NameCounts().Filled)

		// A relay that passes nothing on costs the others some ticks, and is passed by.
		mute = 3
		propose(60)
		require.Len(t, c.agree(), 69)
		before := crossed
		require.LessOrEqual(t, c.nodes[1].r.NameCounts().Filled, uint64(12), "of the two, until each has lacked four messages")
		mute = 0
		want = propose(9)
		require.InDelta(t, want, crossed-before, float64(9*100), "another is the relay")
	})
}

// Nobody but a member gets data.
func TestStrangerIsPassedNothing(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	r := c.nodes[2].r
	at := wire.EntryAt{Index: 1, Term: 1}
	require.NoError(t, r.Receive(wire.Message{Group: 7, From: 9, To: 2, Body: wire.Want{Term: 1, Number: 1, Entries: []wire.EntryAt{at}}}))
	sends := r.Flush(c.now).Sends
	require.Len(t, sends, 1)
	require.Equal(t, wire.Fill{Term: 1, Number: 1}, sends[0].Body)
	require.Nil(t, r.naming.relay)
}

// All that a leader may have in flight to a node may wait for a slow relay, beside the memory of messages.
func TestWhatIsInFlightMayWaitForARelay(t *testing.T) {
	c := Config{}.withDefaults()
	require.Equal(t, 2*c.MaxInflightBytes, c.MaxUnresolvedBytes)
	c = Config{Settings: Settings{MaxInflightBytes: 1 << 10}}.withDefaults()
	require.Equal(t, 32<<20, c.MaxUnresolvedBytes)
}
