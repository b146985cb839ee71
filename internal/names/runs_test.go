// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// plain is an append of entries as a core makes them.
func plain(to, term, index uint64, data ...[]byte) wire.Message {
	m := app(to, term, index, data...)
	for _, e := range m.Body.(wire.Raft).Entries {
		e.Type = nil
	}
	return m
}

// small are the data of entries that are not worth a name each.
var small = [][]byte{batch(1, 200), batch(2, 100), batch(3, 300)}

// giveRuns returns what the members are sent in the place of an append, if all but node 3 take runs.
func giveRuns(g *Giver, change func(b wire.Raft), data ...[]byte) map[uint64]wire.Body {
	g.Runs = func(peer uint64) bool { return peer != 3 }
	var turn []wire.Message
	for _, id := range members {
		m := plain(id, 5, 10, data...)
		if change != nil {
			change(m.Body.(wire.Raft))
		}
		turn = append(turn, m)
	}
	g.Turn(turn)
	out := map[uint64]wire.Body{}
	for _, m := range turn {
		out[m.To] = g.Name(m, 0).Body
	}
	return out
}

// Of small entries a learner that takes runs gets one name. Voters are sent all, as a write waits for their acknowledgements.
func TestLearnersGetOneNameForManySmallEntries(t *testing.T) {
	g := newZonedGiver()
	sent := giveRuns(g, nil, small...)
	for _, id := range []uint64{2, 3, 4, 5, 7, 8} {
		require.IsType(t, wire.Raft{}, sent[id], "node %d", id)
	}
	n := sent[6].(wire.Named)
	require.Equal(t, wire.Run{Count: 3, Relay: 4, Length: 600, Sum: sumOf(small)}, n.Run)
	require.Empty(t, n.Entries)
	require.Less(t, wire.Message{Body: n}.Size(), 250)
	require.Equal(t, uint64(600), g.Counts.Relayed)
	g = newZonedGiver()
	g.Zones.Fit = func(peer uint64) bool { return peer == 3 || peer == 6 }
	g.Zones.Of = func(uint64) string { return "b" }
	require.IsType(t, wire.Raft{}, giveRuns(g, nil, small...)[6], "node 3, the relay, knows no runs")
}

func TestOneNameStandsForPlainEntriesAlone(t *testing.T) {
	for what, c := range map[string]struct {
		change func(b wire.Raft)
		data   [][]byte
	}{
		"one entry":                {nil, small[:1]},
		"few bytes":                {nil, [][]byte{batch(1, 200), batch(2, minBytes-201)}},
		"an empty entry":           {nil, append([][]byte{nil}, small...)},
		"a unit":                   {nil, append([][]byte{{'c'}}, small...)},
		"a change of members":      {func(b wire.Raft) { b.Entries[1].Type = pb.EntryConfChangeV2.Enum() }, small},
		"an entry of another term": {func(b wire.Raft) { b.Entries[0].Term = new(uint64(4)) }, small},
	} {
		sent := giveRuns(newZonedGiver(), c.change, c.data...)
		require.IsType(t, wire.Raft{}, sent[6], what)
	}
	g := newZonedGiver()
	g.Runs = func(uint64) bool { return true }
	for _, m := range []wire.Message{plain(4, 5, 10, small...), plain(6, 5, 12, small...), plain(6, 5, 15, small...)} { // the relay was not sent all
		g.Turn([]wire.Message{m})
		require.Equal(t, m, g.Name(m, 0))
	}
}

func TestRunIsJoinedWithTheRelaysDataOrTheLeaders(t *testing.T) {
	other := [][]byte{small[1], small[0], small[2]} // as many bytes
	for what, c := range map[string]struct {
		relay  [][]byte
		bad    bool
		leader bool
	}{
		"the relay's":                     {relay: small},
		"the leader's":                    {leader: true},
		"the leader's behind other bytes": {relay: other, bad: true, leader: true},
		"the leader's behind fewer bytes": {relay: small[:2], bad: true, leader: true},
	} {
		t.Run(what, func(t *testing.T) {
			g, tk := newZonedGiver(), &Taker{Self: 6, Patience: 10, Hedge: 2}
			n := giveRuns(g, nil, small...)[6].(wire.Named)
			_, ok, ask, err := tk.Arrive(1, n, has(), 0)
			require.NoError(t, err)
			require.False(t, ok)
			require.Equal(t, &Ask{4, wire.Want{Term: 5, Number: 1, Entries: []wire.EntryAt{{Index: 11, Term: 5}, {Index: 12, Term: 5}, {Index: 13, Term: 5}}}}, ask)
			relay := &Relay{Patience: 10}
			relay.Saw(plain(4, 5, 10, small...).Body.(wire.Raft).Entries, 0)
			relay.Want(6, ask.Body.(wire.Want), 0)
			require.Equal(t, []Ask{{6, wire.Fill{Term: 5, Number: 1, Data: small}}}, relay.Answers(0), "a relay keeps small entries, too")
			err = tk.Fill(4, wire.Fill{Term: 5, Number: 1, Data: c.relay}, 0)
			require.Equal(t, c.bad, err != nil)
			if c.leader {
				asks := tk.Overdue(0)
				require.Equal(t, []Ask{{1, wire.Lack{Term: 5, Number: 1}}}, asks)
				fill, ok, err := g.Lack(6, asks[0].Body.(wire.Lack), 0)
				require.NoError(t, err)
				require.True(t, ok)
				require.NoError(t, tk.Fill(1, fill, 0))
			}
			joined, ok, _ := tk.Resolve(n, 0)
			require.True(t, ok)
			requireSame(t, plain(6, 5, 10, small...), joined)
		})
	}
}

func TestFaultyRunsAreRefused(t *testing.T) {
	for what, change := range map[string]func(n *wire.Named){
		"with entries":               func(n *wire.Named) { n.Entries = []*pb.Entry{{}} },
		"with names":                 func(n *wire.Named) { n.Names = []wire.Name{{}} },
		"its receiver is the relay":  func(n *wire.Named) { n.Run.Relay = 6 },
		"beyond the end of numbers":  func(n *wire.Named) { n.Index = new(uint64(1<<64 - 2)) },
		"of another kind of message": func(n *wire.Named) { n.Type = pb.MsgHeartbeat.Enum() },
	} {
		n := giveRuns(newZonedGiver(), nil, small...)[6].(wire.Named)
		change(&n)
		_, _, _, err := (&Taker{Self: 6}).Arrive(1, n, has(), 0)
		require.ErrorIs(t, err, errBad, what)
	}
}

// Two messages of one number come from no leader: the run of the second may be another.
func TestRunThatHasTheNumberOfAnotherIsLost(t *testing.T) {
	tk := &Taker{Self: 6, Patience: 10}
	n := giveRuns(newZonedGiver(), nil, small...)[6].(wire.Named)
	_, _, _, err := tk.Arrive(1, n, has(), 0)
	require.NoError(t, err)
	require.NoError(t, tk.Fill(4, wire.Fill{Term: 5, Number: 1, Data: small}, 0))
	n.Run.Count = 2
	_, ok, waits := tk.Resolve(n, 0)
	require.False(t, ok || waits)
}
