// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// The tests' batches are those of node 2: its data begins with a 2, then the batch's sequence.
func batch(sequence byte, size int) []byte {
	return append([]byte{2, sequence}, bytes.Repeat([]byte{sequence}, size-2)...)
}

func newGiver() *Giver {
	return &Giver{Announced: func(peer uint64) bool { return peer == 2 }, Batch: func(peer uint64, data []byte) (wire.CommandID, bool) {
		return wire.CommandID{Origin: 2, Boot: 7, Sequence: uint64(data[1])}, uint64(data[0]) == peer
	}}
}

// app returns an append behind an index, of entries with these data.
func app(to, term, index uint64, data ...[]byte) wire.Message {
	m := &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: &to, Term: &term, LogTerm: new(uint64(1)), Index: &index, Commit: new(uint64(1))}
	for i, d := range data {
		m.Entries = append(m.Entries, &pb.Entry{Type: pb.EntryNormal.Enum(), Term: &term, Index: new(index + uint64(i) + 1), Data: d})
	}
	return wire.Message{Group: 1, From: 1, To: to, Body: wire.Raft{Message: m, Digests: wire.Digests{First: 9}}}
}

func named(t *testing.T, g *Giver, m wire.Message) wire.Named {
	t.Helper()
	n, ok := g.Name(m, 0).Body.(wire.Named)
	require.True(t, ok, "a message with names")
	return n
}

// has returns what finds these batches.
func has(kept ...[]byte) func(boot, sequence uint64) []byte {
	return func(boot, sequence uint64) []byte {
		for _, k := range kept {
			if boot == 7 && uint64(k[1]) == sequence {
				return k
			}
		}
		return nil
	}
}

func requireSame(t *testing.T, original wire.Message, joined wire.Raft) {
	t.Helper()
	whole := original.Body.(wire.Raft)
	require.True(t, proto.Equal(whole.Message, joined.Message))
	require.Equal(t, whole.Digests, joined.Digests)
}

func TestJoinedMessageEqualsItsOriginal(t *testing.T) {
	g, tk := newGiver(), &Taker{Patience: 10}
	other := append([]byte{3, 1}, make([]byte, 1000)...)
	whole := app(2, 5, 10, batch(1, 1000), other, batch(2, 600), []byte{2, 3}, nil)
	n := named(t, g, whole)
	require.Len(t, n.Names, 2)
	require.Less(t, wire.Message{Body: n}.Size(), whole.Size()-1600+200)
	joined, ok, lack, err := tk.Arrive(1, n, has(batch(2, 600), batch(1, 1000)), 0)
	require.NoError(t, err)
	require.True(t, ok)
	require.Nil(t, lack)
	requireSame(t, whole, joined)
	require.Equal(t, uint64(1600), g.Counts.Saved)
}

func TestOnlyPeersThatAnnouncedNamesGetTheirOwnLargeBatchesNamed(t *testing.T) {
	g := newGiver()
	conf := app(2, 5, 10, batch(1, 1000))
	conf.Body.(wire.Raft).Entries[0].Type = pb.EntryConfChangeV2.Enum()
	for what, m := range map[string]wire.Message{
		"a peer without names": app(3, 5, 10, append([]byte{3, 1}, make([]byte, 1000)...)),
		"another's batch":      app(2, 5, 10, append([]byte{3, 1}, make([]byte, 1000)...)),
		"a small batch":        app(2, 5, 10, batch(1, minBytes-1)),
		"no entries":           app(2, 5, 10),
		"a change of members":  conf,
		"no append":            {To: 2, Body: wire.Transfer{}},
	} {
		require.Equal(t, m, g.Name(m, 0), what)
	}
	require.Len(t, named(t, g, app(2, 5, 10, batch(1, minBytes))).Names, 1)
}

// Batches of one number may differ, as a node encodes a batch again without the calls that have ended.
func TestOtherBytesOfABatchAreNotJoined(t *testing.T) {
	other := batch(1, 1000)
	other[999]++
	for _, kept := range [][]byte{nil, {}, other, batch(1, 999), batch(1, 1001)} {
		g, tk := newGiver(), &Taker{Patience: 10}
		n := named(t, g, app(2, 5, 10, batch(1, 1000)))
		_, ok, lack, err := tk.Arrive(1, n, func(uint64, uint64) []byte { return kept }, 0)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, &Ask{1, wire.Lack{Term: 5, Number: 1}}, lack)
	}
}

func TestLackIsAnsweredWithTheDataAndOnce(t *testing.T) {
	g, tk := newGiver(), &Taker{Patience: 10}
	whole := app(2, 5, 10, batch(1, 1000), batch(2, 1000))
	n := named(t, g, whole)
	_, _, lack, err := tk.Arrive(1, n, has(batch(2, 1000)), 3)
	require.NoError(t, err)
	_, ok, again, err := tk.Arrive(1, n, has(), 3)
	require.False(t, ok)
	require.NoError(t, err)
	require.Nil(t, again, "a message that comes twice lacks its data once")
	_, ok, waits := tk.Resolve(n, 12)
	require.False(t, ok)
	require.True(t, waits)

	fill, ok, err := g.Lack(2, lack.Body.(wire.Lack), 4)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, tk.Fill(1, fill, 4))
	joined, ok, _ := tk.Resolve(n, 12)
	require.True(t, ok)
	requireSame(t, whole, joined)

	fill, ok, err = g.Lack(2, lack.Body.(wire.Lack), 4)
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, fill.Data, "the original is gone")
	for what, lack := range map[string]wire.Lack{"an earlier term": {Term: 4, Number: 1}, "a later term": {Term: 6, Number: 1}} {
		_, ok, err = g.Lack(2, lack, 4)
		require.NoError(t, err)
		require.False(t, ok, what)
	}
	for _, number := range []uint64{0, 2, 1<<64 - 1} {
		_, _, err = g.Lack(2, wire.Lack{Term: 5, Number: number}, 4)
		require.ErrorIs(t, err, errBad)
	}
}

func TestMessageIsLostIfItsDataDoesNotComeOrDoesNotFit(t *testing.T) {
	lacking := func() (*Taker, wire.Named) {
		tk := &Taker{Patience: 10}
		n := named(t, newGiver(), app(2, 5, 10, batch(1, 1000)))
		_, ok, lack, err := tk.Arrive(1, n, has(), 3)
		require.NoError(t, err)
		require.False(t, ok)
		require.NotNil(t, lack)
		return tk, n
	}
	lost := func(tk *Taker, n wire.Named, tick uint64) {
		t.Helper()
		_, ok, waits := tk.Resolve(n, tick)
		require.False(t, ok)
		require.False(t, waits)
		require.Empty(t, tk.waits)
	}
	tk, n := lacking()
	lost(tk, n, 13)

	tk, n = lacking()
	tk.Lost(3)
	_, _, waits := tk.Resolve(n, 4)
	require.True(t, waits, "another connection broke")
	tk.Lost(1)
	lost(tk, n, 4)

	tk, n = lacking()
	require.NoError(t, tk.Fill(1, wire.Fill{Term: 5, Number: 1}, 4), "the data is gone")
	lost(tk, n, 4)

	for what, data := range map[string][][]byte{"too many": {batch(1, 1000), nil}, "too short": {batch(1, 999)}, "other bytes": {batch(9, 1000)}} {
		tk, n = lacking()
		require.ErrorIs(t, tk.Fill(1, wire.Fill{Term: 5, Number: 1, Data: data}, 4), errBad, what)
		lost(tk, n, 4)
	}

	tk, n = lacking()
	for _, other := range []wire.Fill{{Term: 4, Number: 1}, {Term: 5, Number: 2}} {
		other.Data = [][]byte{batch(1, 1000)}
		require.NoError(t, tk.Fill(1, other, 4))
	}
	require.NoError(t, tk.Fill(3, wire.Fill{Term: 5, Number: 1, Data: [][]byte{batch(1, 1000)}}, 4), "of another node")
	_, _, waits = tk.Resolve(n, 4)
	require.True(t, waits)
	tk.Forget(n)
	lost(tk, n, 4)
}

func TestMessageThatHasTheNumberOfAnotherIsLost(t *testing.T) {
	tk := &Taker{Patience: 10}
	n := named(t, newGiver(), app(2, 5, 10, batch(1, 1000)))
	other := named(t, newGiver(), app(2, 5, 10, batch(1, 1000), batch(2, 1000)))
	for _, m := range []wire.Named{n, other} {
		_, ok, _, err := tk.Arrive(1, m, has(), 0)
		require.NoError(t, err)
		require.False(t, ok)
	}
	require.NoError(t, tk.Fill(1, wire.Fill{Term: 5, Number: 1, Data: [][]byte{batch(1, 1000)}}, 0))
	_, ok, waits := tk.Resolve(other, 1)
	require.False(t, ok)
	require.False(t, waits)
	_, ok, _ = tk.Resolve(n, 1)
	require.True(t, ok)
}

func TestNamesThatStandForNoEntryAreRefused(t *testing.T) {
	for what, change := range map[string]func(n *wire.Named){
		"behind the last entry": func(n *wire.Named) { n.Names[1].Entry = 2 },
		"far behind":            func(n *wire.Named) { n.Names[1].Entry = 1 << 63 },
		"twice":                 func(n *wire.Named) { n.Names[1].Entry = 0 },
		"not in order":          func(n *wire.Named) { n.Names[0].Entry, n.Names[1].Entry = 1, 0 },
		"an entry with data":    func(n *wire.Named) { n.Entries[1].Data = []byte{1} },
		"a change of members":   func(n *wire.Named) { n.Entries[1].Type = pb.EntryConfChange.Enum() },
		"no append":             func(n *wire.Named) { n.Type = pb.MsgHeartbeat.Enum() },
		"no entries":            func(n *wire.Named) { n.Entries = nil },
		"of another index":      func(n *wire.Named) { n.Entries[1].Index = n.Entries[0].Index },
		"beyond the last index": func(n *wire.Named) { n.Index = new(uint64(1<<64 - 1)); n.Entries[0].Index = new(uint64(0)) },
	} {
		n := named(t, newGiver(), app(2, 5, 10, batch(1, 1000), batch(2, 1000)))
		change(&n)
		tk := &Taker{}
		_, ok, lack, err := tk.Arrive(1, n, has(batch(1, 1000), batch(2, 1000)), 0)
		require.ErrorIs(t, err, errBad, what)
		require.False(t, ok)
		require.Nil(t, lack)
		require.Empty(t, tk.waits)
	}
}

func TestOriginalsAreKeptUntilAcknowledgedOrReplacedAndWithinABound(t *testing.T) {
	g := newGiver()
	kept := func() int { return len(g.peers[2].kept) }
	for i := range uint64(3) {
		named(t, g, app(2, 5, 10+i, batch(1, 1000)))
	}
	require.Equal(t, 3, kept())
	g.Acked(2, 4, 13)
	g.Acked(2, 5, 10)
	g.Acked(3, 5, 13)
	require.Equal(t, 3, kept())
	g.Acked(2, 5, 11)
	require.Equal(t, 2, kept())
	g.Name(app(2, 5, 12, []byte{3}), 0)
	require.Equal(t, 1, kept(), "the append behind 12 replaces another one")
	require.Equal(t, 1000, g.peers[2].bytes)
	named(t, g, app(2, 6, 20, batch(1, 1000)))
	require.Equal(t, 1, kept(), "originals of an earlier term are of no use")
	for i := range uint64(10) {
		named(t, g, app(2, 6, 30+i, batch(1, keepBytes/4)))
		require.LessOrEqual(t, g.peers[2].bytes, keepBytes)
	}
	require.Equal(t, 4, kept())
	require.Equal(t, uint64(7), g.Counts.Unkept)
	fill, ok, err := g.Lack(2, wire.Lack{Term: 6, Number: 5}, 0)
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, fill.Data)
}

// Names go on with up to 1 lack in 100, and pause with more: longer each time, up to a bound, and
// briefly again after a good time.
func TestLacksAboveOnePercentPauseNames(t *testing.T) {
	g := newGiver()
	tick, index := uint64(0), uint64(1)
	send := func() bool {
		index++
		_, ok := g.Name(app(2, 5, index, batch(1, 600)), tick).Body.(wire.Named)
		return ok
	}
	lack := func() {
		_, ok, err := g.Lack(2, wire.Lack{Term: 5, Number: g.peers[2].last}, tick)
		require.NoError(t, err)
		require.True(t, ok)
	}
	for i := range 10_000 {
		require.True(t, send(), "message %d", i)
		if i%100 == 0 {
			lack()
		}
	}
	pause := func() uint64 {
		for range 1000 {
			if !send() {
				break
			}
			lack()
		}
		for range 5 {
			lack() // of messages that were under way
		}
		from := tick
		for ; !send(); tick++ {
			require.Less(t, tick-from, uint64(longestPause))
		}
		return tick - from
	}
	var pauses []uint64
	for range 9 {
		pauses = append(pauses, pause())
	}
	require.Equal(t, []uint64{50, 100, 200, 400, 800, 1600, 3200, 6400, 6400}, pauses)
	for range fullCredit {
		require.True(t, send())
	}
	require.Equal(t, uint64(50), pause())
}
