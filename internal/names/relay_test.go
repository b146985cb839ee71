// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// The tests' leader is node 1 in zone a, with voter 2 and learner 3; in zone b are the voters 4 and 5 and the learner 6;
// node 7 has said no zone. Node 8 is another voter in zone a.
func newZonedGiver() *Giver {
	z := &Zones{
		Own:    "a",
		Of:     func(peer uint64) string { return []string{"", "a", "a", "a", "b", "b", "b", "", "a"}[peer] },
		Fit:    func(uint64) bool { return true },
		Voter:  func(peer uint64) bool { return peer != 3 && peer != 6 },
		Weight: func(uint64) int { return 100 }, Learners: func() bool { return true },
	}
	return &Giver{Zones: z, Whole: func(data []byte) bool { return data[0] != 'c' }}
}

var members = []uint64{2, 3, 4, 5, 6, 7, 8}

// give returns what the members are sent in the place of an append.
func give(g *Giver, tick, term, index uint64, data ...[]byte) map[uint64]wire.Body {
	return giveTo(g, tick, term, index, members, data...)
}

func giveTo(g *Giver, tick, term, index uint64, to []uint64, data ...[]byte) map[uint64]wire.Body {
	var turn []wire.Message
	for _, id := range to {
		turn = append(turn, app(id, term, index, data...))
	}
	g.Turn(turn)
	out := map[uint64]wire.Body{}
	for _, m := range turn {
		out[m.To] = g.Name(m, tick).Body
	}
	return out
}

// relays returns who is sent which relay.
func relays(sent map[uint64]wire.Body) map[uint64]uint64 {
	out := map[uint64]uint64{}
	for to, body := range sent {
		if n, ok := body.(wire.Named); ok {
			out[to] = n.Names[0].Relay
		}
	}
	return out
}

func TestOneMemberOfAZoneIsSentTheData(t *testing.T) {
	data := batch(1, 1000)
	for what, c := range map[string]struct {
		change func(z *Zones)
		data   []byte
		want   map[uint64]uint64
	}{
		"a voter of each zone, for its voters if the leader is in another, and for its learners": {nil, data, map[uint64]uint64{3: 2, 5: 4, 6: 4}},
		"the voter with the largest weight": {func(z *Zones) {
			z.Weight = func(peer uint64) int { return 100 + int(peer) }
		}, data, map[uint64]uint64{3: 8, 4: 5, 6: 5}},
		"a learner, if no voter can be the relay": {func(z *Zones) {
			z.Fit = func(peer uint64) bool { return peer != 2 && peer != 4 }
			z.Voter = func(peer uint64) bool { return peer < 3 }
		}, data, map[uint64]uint64{6: 5, 8: 3}},
		"voters whose zone is not known either, for learners alone": {func(z *Zones) { z.Of = func(uint64) string { return "" } }, data, map[uint64]uint64{3: 2, 6: 4}},
		"the same where the leader has no zone":                     {func(z *Zones) { z.Own, z.Of = "", func(uint64) string { return "" } }, data, map[uint64]uint64{3: 2, 6: 4}},
		"nobody where all vote and no zone is known": {func(z *Zones) {
			z.Of, z.Voter = func(uint64) string { return "" }, func(uint64) bool { return true }
		}, data, map[uint64]uint64{}},
		"nobody of an earlier version":     {func(z *Zones) { z.Fit = func(peer uint64) bool { return peer != 5 } }, data, map[uint64]uint64{3: 2, 6: 4}},
		"small data goes directly":         {nil, batch(1, minBytes-1), map[uint64]uint64{}},
		"a unit differs from peer to peer": {nil, append([]byte{'c'}, data...), map[uint64]uint64{}},
	} {
		t.Run(what, func(t *testing.T) {
			g := newZonedGiver()
			if c.change != nil {
				c.change(g.Zones)
			}
			require.Equal(t, c.want, relays(give(g, 0, 5, 10, c.data)))
		})
	}
}

// Where voters are sent whole appends anyway, each passes data on to its share of the learners, the same in each turn.
func TestLearnersShareTheVoters(t *testing.T) {
	g := newZonedGiver()
	g.Zones.Of = func(uint64) string { return "" }
	g.Zones.Voter = func(peer uint64) bool { return peer < 4 }
	want := map[uint64]uint64{4: 2, 5: 3, 6: 2, 7: 3, 8: 2}
	for i := range uint64(3) {
		require.Equal(t, want, relays(give(g, i, 5, 10+i, batch(byte(i), 1000))))
	}
}

// What a relay has not been sent, or was sent long ago, is not to be had from it.
func TestRelayIsNamedForWhatItWasSentOfLate(t *testing.T) {
	g := newZonedGiver()
	some := []uint64{4, 5}
	for i := range uint64(3) {
		require.Equal(t, map[uint64]uint64{5: 4}, relays(giveTo(g, 0, 5, 10+i, some, batch(1, relayBytes/2))))
	}
	require.Empty(t, relays(giveTo(g, 0, 5, 10, []uint64{6}, batch(1, 1000))), "it may be gone")
	require.Equal(t, map[uint64]uint64{6: 4}, relays(giveTo(g, 0, 5, 11, []uint64{6}, batch(1, 1000))))
	require.Empty(t, relays(giveTo(g, 0, 5, 13, []uint64{6}, batch(1, 1000))), "node 4 was not sent it")
	require.Equal(t, map[uint64]uint64{6: 4}, relays(giveTo(g, 0, 5, 11, []uint64{4, 6}, batch(1, 1000), batch(2, 1000), batch(3, 1000))), "node 4 is sent it again")
	require.Empty(t, relays(giveTo(g, 0, 6, 11, []uint64{6}, batch(1, 1000))), "the term is another")
}

func TestMemberThatIsSentTheMostIsTheRelay(t *testing.T) {
	g := newZonedGiver()
	give(g, 0, 5, 10, batch(1, 1000))
	require.Equal(t, map[uint64]uint64{6: 5}, relays(giveTo(g, 0, 5, 11, []uint64{5, 6}, batch(1, 1000))), "node 4 is sent nothing for now")
	require.Equal(t, map[uint64]uint64{4: 5, 6: 5}, relays(giveTo(g, 0, 5, 12, []uint64{4, 5, 6}, batch(1, 1000))), "and 5 stays, as nothing speaks for 4")
}

// chain is a leader, a relay (node 4) and a member behind it (node 5).
type chain struct {
	t     *testing.T
	g     *Giver
	relay *Relay
	tk    *Taker
	whole map[uint64]wire.Message // by number
	sent  map[uint64]wire.Named
}

func newChain(t *testing.T) *chain {
	return &chain{t, newZonedGiver(), &Relay{Patience: 10}, &Taker{Self: 5, Patience: 10, Hedge: 2}, map[uint64]wire.Message{}, map[uint64]wire.Named{}}
}

// append sends an entry, and returns what the member behind the relay asks, and the append for the relay.
func (c *chain) append(tick, index uint64, data ...[]byte) (*Ask, []*pb.Entry) {
	c.t.Helper()
	sent := give(c.g, tick, 5, index, data...)
	n, ok := sent[5].(wire.Named)
	require.True(c.t, ok)
	c.whole[n.Number], c.sent[n.Number] = app(5, 5, index, data...), n
	_, ok, ask, err := c.tk.Arrive(1, n, has(), tick)
	require.NoError(c.t, err)
	require.False(c.t, ok)
	return ask, sent[4].(wire.Raft).Entries
}

func (c *chain) wants(ask *Ask, tick uint64) {
	c.t.Helper()
	require.Equal(c.t, uint64(4), ask.To)
	c.relay.Want(5, ask.Body.(wire.Want), tick)
}

func (c *chain) fill(tick uint64) (filled int) {
	c.t.Helper()
	for _, a := range c.relay.Answers(tick) {
		require.Equal(c.t, uint64(5), a.To)
		require.NoError(c.t, c.tk.Fill(4, a.Body.(wire.Fill), tick))
		filled++
	}
	return filled
}

func (c *chain) joins(number, tick uint64) {
	c.t.Helper()
	joined, ok, _ := c.tk.Resolve(c.sent[number], tick)
	require.True(c.t, ok)
	requireSame(c.t, c.whole[number], joined)
}

func TestRelayPassesDataOn(t *testing.T) {
	c := newChain(t)
	ask, entries := c.append(0, 10, batch(1, 1000), batch(2, 100), batch(3, 600))
	c.wants(ask, 0)
	require.Zero(t, c.fill(0), "the data has not arrived yet")
	_, _, waits := c.tk.Resolve(c.sent[1], 1)
	require.True(t, waits)
	c.relay.Saw(entries, 1)
	require.Equal(t, 1, c.fill(1))
	c.joins(1, 1)
	require.Equal(t, RelayCounts{Passed: 1, PassedBytes: 1600}, c.relay.Counts)

	ask, entries = c.append(1, 13, batch(4, 1000))
	c.relay.Saw(entries, 2)
	c.wants(ask, 2)
	require.Equal(t, 1, c.fill(2), "the data was there first")
	c.joins(2, 2)
	require.Empty(t, c.tk.waits)
	require.Zero(t, c.tk.Counts.Lacks)
	require.Equal(t, uint64(2*(2600)+2600), c.g.Counts.Relayed, "to nodes 3, 5 and 6")
}

// What a relay keeps is a matter of index and term together.
func TestRelayGivesNoOtherEntrysData(t *testing.T) {
	entry := func(index, term uint64) *pb.Entry {
		return &pb.Entry{Index: &index, Term: &term, Data: batch(byte(term), 600)}
	}
	for what, c := range map[string]struct {
		at   wire.EntryAt
		data []byte
		ends bool // at once
	}{
		"kept":                            {wire.EntryAt{Index: 5, Term: 3}, batch(3, 600), true},
		"replaced":                        {wire.EntryAt{Index: 4, Term: 2}, nil, true},
		"of a later term, to come":        {wire.EntryAt{Index: 4, Term: 4}, nil, false},
		"behind, to come":                 {wire.EntryAt{Index: 6, Term: 3}, nil, false},
		"before":                          {wire.EntryAt{Index: 2, Term: 2}, nil, true},
		"the end of the numbers, to come": {wire.EntryAt{Index: 1<<64 - 1, Term: 1<<64 - 1}, nil, false},
	} {
		t.Run(what, func(t *testing.T) {
			r := &Relay{Patience: 10}
			r.Want(5, wire.Want{Term: 3, Number: 1, Entries: []wire.EntryAt{{Index: 1, Term: 1}}}, 0)
			r.Saw([]*pb.Entry{entry(3, 2), entry(4, 2), entry(5, 2)}, 0)
			r.Saw([]*pb.Entry{entry(4, 3), entry(5, 3)}, 0)
			require.Len(t, r.Answers(0), 1)
			r.Want(6, wire.Want{Term: 3, Number: 2, Entries: []wire.EntryAt{c.at}}, 0)
			out := r.Answers(9)
			if !c.ends {
				require.Empty(t, out)
				out = r.Answers(10)
			}
			require.Len(t, out, 1)
			require.Equal(t, c.data, slices.Concat(out[0].Body.(wire.Fill).Data...))
		})
	}
}

func TestRelayKeepsWithinABoundAndWhileAsked(t *testing.T) {
	r := &Relay{Patience: 10}
	index := uint64(0)
	saw := func(size int, tick uint64) {
		index++
		r.Saw([]*pb.Entry{{Index: new(index), Term: new(uint64(1)), Data: batch(1, size)}}, tick)
	}
	saw(1000, 0)
	require.Empty(t, r.Answers(fresh-1))
	require.Len(t, r.kept, 1)
	require.Empty(t, r.Answers(fresh))
	require.Empty(t, r.kept, "nobody has asked")
	want := func(tick uint64) {
		r.Want(5, wire.Want{Term: 1, Number: 1, Entries: []wire.EntryAt{{Index: 1 << 40, Term: 1}}}, tick)
	}
	want(0)
	for range 9 {
		saw(relayBytes/2, 1)
	}
	require.Len(t, r.kept, 4)
	saw(9*relayBytes, 1)
	require.Len(t, r.kept, 1, "one is kept, of whatever size")
	require.Len(t, r.Answers(50), 1)
	require.Len(t, r.kept, 1)
	require.Empty(t, r.Answers(wanted))
	require.Empty(t, r.kept)
	for range 2 * maxWants {
		want(200)
	}
	require.Len(t, r.wants, maxWants)
	for range 20 {
		r.Want(5, wire.Want{Term: 1, Number: 1, Entries: slices.Repeat([]wire.EntryAt{{Index: 1 << 40, Term: 1}}, wire.MaxEntries)}, 200)
	}
	require.Len(t, r.wants, maxOpen/wire.MaxEntries)
	require.Equal(t, maxOpen, r.open)
	require.Len(t, r.Answers(210), maxOpen/wire.MaxEntries)
	require.Zero(t, r.open)
}

// A relay is silent if no data of it comes for a while: a slow one is waited for, as the leader's link is no faster for more
// data.
func TestLeaderIsAskedWhenTheRelayIsSilent(t *testing.T) {
	c := newChain(t)
	var entries []*pb.Entry
	for i := range uint64(3) {
		ask, e := c.append(0, 10+i, batch(byte(i), 1000))
		c.wants(ask, 0)
		entries = append(entries, e...)
	}
	require.Empty(t, c.tk.Overdue(1))
	c.relay.Saw(entries[:1], 1)
	require.Equal(t, 1, c.fill(1))
	require.Empty(t, c.tk.Overdue(2), "the relay gave something a tick ago")
	asks := c.tk.Overdue(3)
	require.Equal(t, []Ask{{1, wire.Lack{Term: 5, Number: 2}}, {1, wire.Lack{Term: 5, Number: 3}}}, asks)
	require.Empty(t, c.tk.Overdue(6), "asked once")

	fill, ok, err := c.g.Lack(5, asks[0].Body.(wire.Lack), 4)
	require.True(t, ok)
	require.NoError(t, err)
	require.NoError(t, c.tk.Fill(1, fill, 4))
	c.joins(1, 4)
	c.joins(2, 4)
	c.relay.Saw(entries[1:], 5)
	require.Equal(t, 2, c.fill(5))
	require.Equal(t, uint64(1), c.tk.Counts.FillsLate)
	c.joins(3, 5)
	require.Equal(t, uint64(2), c.tk.Counts.Overdue)
}

// A question or an answer is lost, and the relay gives all later data: later messages wait for the one without data.
func TestLeaderIsAskedForDataThatARelayHasPassedOver(t *testing.T) {
	c := newChain(t)
	c.append(0, 10, batch(1, 1000)) // whose question is lost
	for tick := range uint64(20) {
		ask, entries := c.append(tick, 11+tick, batch(2, 1000))
		c.relay.Saw(entries, tick)
		c.wants(ask, tick)
		require.Equal(t, 1, c.fill(tick))
		asks := c.tk.Overdue(tick)
		require.Equal(t, tick == 2, len(asks) == 1, "tick %d", tick)
		if tick < 2 {
			continue
		}
		_, _, waits := c.tk.Resolve(c.sent[1], tick)
		require.Equal(t, tick < 2+c.tk.Patience, waits, "tick %d", tick)
	}
}

func TestLeaderIsAskedAtOnceWhenARelayHasNothing(t *testing.T) {
	for what, c := range map[string]struct {
		bad bool // an error
		do  func(tk *Taker) error
	}{
		"no data": {false, func(tk *Taker) error { return tk.Fill(4, wire.Fill{Term: 5, Number: 1}, 0) }},
		"other data": {true, func(tk *Taker) error {
			return tk.Fill(4, wire.Fill{Term: 5, Number: 1, Data: [][]byte{batch(2, 1000)}}, 0)
		}},
		"too much data":     {true, func(tk *Taker) error { return tk.Fill(4, wire.Fill{Term: 5, Number: 1, Data: make([][]byte, 2)}, 0) }},
		"a broken link":     {false, func(tk *Taker) error { tk.Lost(4); return nil }},
		"another's silence": {false, nil},
	} {
		t.Run(what, func(t *testing.T) {
			ch := newChain(t)
			ch.append(0, 10, batch(1, 1000))
			if c.do == nil {
				ch.tk.Lost(6)
				ch.tk.Lost(1)
				require.Empty(t, ch.tk.Overdue(0))
				return
			}
			err := c.do(ch.tk)
			require.Equal(t, c.bad, err != nil)
			if c.bad {
				require.ErrorIs(t, err, errBad)
			}
			require.Equal(t, []Ask{{1, wire.Lack{Term: 5, Number: 1}}}, ch.tk.Overdue(0))
			ch.tk.Lost(1)
			_, ok, waits := ch.tk.Resolve(ch.sent[1], 0)
			require.False(t, ok)
			require.False(t, waits, "nobody is left to ask")
		})
	}
}

// A batch of the receiver's own that is missing is asked of the leader, and the rest of the message with it.
func TestMessageMayNameBatchesAndARelay(t *testing.T) {
	for _, missing := range []bool{false, true} {
		g := newZonedGiver()
		g.Announced = func(peer uint64) bool { return peer == 5 }
		g.Batch = func(peer uint64, data []byte) (wire.CommandID, bool) {
			return wire.CommandID{Origin: 5, Boot: 7, Sequence: uint64(data[1])}, data[0] == 5
		}
		own := append([]byte{5, 9}, batch(1, 1000)...)
		sent := give(g, 0, 5, 10, batch(1, 1000), own)
		n := sent[5].(wire.Named)
		require.Equal(t, []uint64{4, 0}, []uint64{n.Names[0].Relay, n.Names[1].Relay})
		tk := &Taker{Self: 5, Patience: 10, Hedge: 2}
		_, _, ask, err := tk.Arrive(1, n, func(boot, sequence uint64) []byte {
			if missing || boot != 7 || sequence != 9 {
				return nil
			}
			return own
		}, 0)
		require.NoError(t, err)
		if missing {
			require.Equal(t, &Ask{1, wire.Lack{Term: 5, Number: 1}}, ask)
			fill, _, err := g.Lack(5, ask.Body.(wire.Lack), 0)
			require.NoError(t, err)
			require.NoError(t, tk.Fill(1, fill, 0))
		} else {
			require.Equal(t, &Ask{4, wire.Want{Term: 5, Number: 1, Entries: []wire.EntryAt{{Index: 11, Term: 5}}}}, ask)
			require.NoError(t, tk.Fill(4, wire.Fill{Term: 5, Number: 1, Data: [][]byte{batch(1, 1000)}}, 0))
		}
		joined, ok, _ := tk.Resolve(n, 0)
		require.True(t, ok)
		requireSame(t, app(5, 5, 10, batch(1, 1000), own), joined)
	}
}

func TestMessageNamesOneOtherRelay(t *testing.T) {
	for what, relays := range map[string][2]uint64{"two": {4, 6}, "the receiver": {5, 5}} {
		n := give(newZonedGiver(), 0, 5, 10, batch(1, 1000), batch(2, 1000))[5].(wire.Named)
		n.Names[0].Relay, n.Names[1].Relay = relays[0], relays[1]
		_, _, _, err := (&Taker{Self: 5}).Arrive(1, n, has(), 0)
		require.ErrorIs(t, err, errBad, what)
	}
}

// A relay that is silent towards one member is passed by for this member, and by all others as soon as another member
// can be the relay.
func TestRelayThatIsLackedIsPassedBy(t *testing.T) {
	g := newZonedGiver()
	index := uint64(10)
	send := func(tick uint64) map[uint64]uint64 {
		index++
		return relays(give(g, tick, 5, index, batch(1, 1000)))
	}
	lack := func(peer, tick uint64) {
		_, ok, err := g.Lack(peer, wire.Lack{Term: 5, Number: g.peers[peer].last}, tick)
		require.True(t, ok)
		require.NoError(t, err)
	}
	for range 4 {
		require.Equal(t, map[uint64]uint64{3: 2, 5: 4, 6: 4}, send(0))
		lack(6, 0)
	}
	require.Equal(t, uint64(1), g.Counts.Pauses)
	require.Equal(t, map[uint64]uint64{3: 2, 4: 5, 6: 5}, send(1))
	for range 4 {
		send(1)
		lack(6, 1)
	}
	require.Equal(t, map[uint64]uint64{3: 2, 4: 5}, send(2), "node 6 gets nothing from either, and 5 stays")
}
