// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// A leader whose host applies nothing keeps no more payloads with its codewords than
// the budget says, and one entry; it still makes what its members are sent.
func TestCodewordsAreBounded(t *testing.T) {
	const size, budget = 1 << 16, 1 << 18
	f := newFake(t, func(c *Config) { c.Memory = budget })
	l := f.leads()
	for i := range 20 {
		f.proposes(bytes.Repeat([]byte{byte(i)}, size))
	}
	g := f.ledger
	check := func(most int) {
		kept := 0
		for _, rec := range g.recs {
			if rec.word != nil {
				kept += rec.hdr.PayloadLen
			}
		}
		require.Equal(t, kept, g.words)
		require.LessOrEqual(t, kept, most)
	}
	require.Len(t, g.recs, 20)
	check(budget + size)

	made, _ := f.Form(2, f.entries, math.MaxInt)
	require.Len(t, made, 20)
	for _, e := range made {
		env, err := ecraft.Parse(e.Data, 0, 2)
		require.NoError(t, err)
		require.NoError(t, env.Own.Verify())
		require.Equal(t, 1, env.Own.Count)
	}
	require.Equal(t, 20, l.raiser.raise(func(id uint64) bool { return id != 3 }), "at work with all of them")
	f.perform()
	check(20 * size)
	f.proposes(make([]byte, size))
	check(budget + size)
	f.Truncated(g.recs[10].id.Index)
	check(budget)
	g.forgetUpTo(noLimit - 1)
	require.Zero(t, g.words)
}

// A question for more entries than a node asks for, and headers that are not those
// of coded entries or too many, are refused. Headers of entries that are not compacted
// here are not asked for, and are not kept.
func TestHostileQuestionsAndHeadersAreRefused(t *testing.T) {
	f := newFake(t)
	ask := f.unitsMessage(MsgUnitsAsk, 1, forAsk)
	for i := range uint64(maxRecovered + 1) {
		ask.Entries = append(ask.Entries, named(ecraft.ID{Term: 1, Index: i + 1}, nil))
	}
	require.Error(t, f.Check(ask))

	f.compacted = maxHeaders + 1
	l := f.leads()
	l.check.checked = checked{voters: f.members.Voters[0], headers: map[uint64]*record{}}
	carrier := ecraft.AppendHeader(nil, &ecraft.Header{Kind: ecraft.Carrier, Encoder: 2})
	for _, n := range []int{1, maxHeaders + 1} {
		answer := f.unitsMessage(MsgUnits, 1, forHeaderAnswer)
		answer.From, answer.Index, answer.Commit = new(uint64(2)), new(uint64(1)), new(uint64(maxHeaders+1))
		for i := range n {
			answer.Entries = append(answer.Entries, named(ecraft.ID{Term: 1, Index: uint64(i) + 1}, carrier))
		}
		require.NoError(t, f.Check(answer))
		require.Error(t, f.Step(answer))
		require.Empty(t, l.check.headers)
	}

	answer := f.unitsMessage(MsgUnits, 1, forHeaderAnswer)
	answer.From, answer.Index, answer.Commit = new(uint64(2)), new(uint64(1)), new(uint64(noLimit))
	answer.Entries = append(answer.Entries, named(ecraft.ID{Term: 1, Index: maxHeaders + 2}, ecraft.AppendHeader(nil, codedFor(text(80)))))
	require.NoError(t, f.Step(answer))
	require.Empty(t, l.check.headers)
}

// The members that an entry names are as many as its sender likes; a node keeps
// account of those that it knows.
func TestStrangersHaveNoAccount(t *testing.T) {
	f := newFake(t)
	f.follow(2)
	payload := make([]byte, 100)
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload), Layout: ecraft.NewLayout(3, 4),
		Encoder: 2, Members: []uint64{1, 3, 98, 99}, Units: []uint8{1, 1, 1, 1},
	}
	f.takes(0, named(ecraft.ID{Term: 2, Index: 1}, ecraft.Seal(nil, h, 1, 0, ecraft.NewCodeword(h, payload), nil)))
	require.Len(t, f.ledger.recs, 1)
	for id := range f.accounts.of {
		require.LessOrEqual(t, id, uint64(3))
	}
	require.True(t, f.accounts.of[3].capable)
}

// A leader that checks a change has compacted an entry, has its payload all the same,
// and is told a header by a member that lies. No units are made by that.
func TestHeaderOfAnotherPayloadMakesNoUnits(t *testing.T) {
	payload := text(800)
	id := ecraft.ID{Term: 1, Index: 1}
	f := newFake(t)
	l := f.leads()
	h := codedFor(payload)
	f.payloads.store.Expect(id, h, ecraft.NewCodeword(h, payload).Strip(0, 0, h.D))
	for _, lie := range []func(h *ecraft.Header){
		func(h *ecraft.Header) { h.PayloadLen = ecraft.MaxPayload },
		func(h *ecraft.Header) { h.PayloadCRC++ },
		nil,
	} {
		h := codedFor(payload)
		if lie != nil {
			lie(h)
		}
		l.check.headers = map[uint64]*record{id.Index: {id: id, hdr: h}}
		word, err := l.forms.words.riderWord(id)
		if lie != nil {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, payload, word.Payload())
	}
}

// What a leader wanted for others is let go of when it leads no more, and not later,
// when it may be what the node needs to win a term.
func TestWantsEndWithLeadership(t *testing.T) {
	f := newFake(t)
	f.follow(2)
	e := coded(ecraft.ID{Term: 2, Index: 1}, make([]byte, 1<<16))
	f.takes(1, e)
	f.leads()
	f.wants.wantAhead([]*pb.Entry{e})
	rec := f.ledger.find(1)
	require.True(t, rec.pinned)
	f.follow(2)
	require.False(t, rec.pinned)
	require.Empty(t, f.payloads.wanted)
}

// TestCoverEndsWithLeadership: a leader has seen that the acknowledgements of its term
// cover an entry. In another term members may have lost the entry, so the leader of then
// looks again.
func TestCoverEndsWithLeadership(t *testing.T) {
	f := newFake(t)
	l := f.leads()
	f.proposes(text(800))
	rec := f.ledger.recs[0]
	for _, pr := range f.members.Progress {
		pr.Match = rec.id.Index
	}
	require.True(t, l.rule.cover(rec))
	f.follow(2)
	require.False(t, rec.covered)
}

// What was forgotten for lack of room is expected again in the next tick, or once
// something is applied.
func TestForgottenEntriesWait(t *testing.T) {
	f := newFake(t)
	require.True(t, f.payloads.mayExpect(5))
	f.payloads.noRoomFrom, f.payloads.noRoomTick = 5, f.ticks
	require.True(t, f.payloads.mayExpect(4))
	require.False(t, f.payloads.mayExpect(5))
	f.Tick()
	require.True(t, f.payloads.mayExpect(5))
	f.payloads.noRoomTick = f.ticks
	require.False(t, f.payloads.mayExpect(6))
	f.Applied(1)
	require.True(t, f.payloads.mayExpect(6))
}
