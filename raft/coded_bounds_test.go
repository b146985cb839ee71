// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// codingNode starts node 1 of three that code.
func codingNode(t *testing.T, coding Coding) *raft {
	ms := NewMemoryStorage()
	require.NoError(t, ms.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}},
	}}))
	r, err := newRaft(&Config{
		ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: ms, MaxInflightMsgs: 8, MaxSizePerMsg: noLimit, Coding: &coding,
	})
	require.NoError(t, err)
	return r
}

// leaderOf makes it lead members that read envelopes.
func leaderOf(t *testing.T, r *raft) *leader {
	require.NoError(t, r.Step(&request(pb.MsgHup).msg))
	for _, id := range []uint64{2, 3} {
		require.NoError(t, r.Step(&pb.Message{Type: pb.MsgVoteResp.Enum(), From: new(id), To: new(r.id), Term: new(r.term)}))
		a := r.coded.account(id)
		a.reads(true)
		a.known = true
	}
	require.NotNil(t, r.leading())
	return r.leading()
}

// TestCodewordsAreBounded: a leader whose host applies nothing keeps no more
// payloads with its codewords than the budget says, and one entry; it still makes
// what its members are sent.
func TestCodewordsAreBounded(t *testing.T) {
	const size, budget = 1 << 16, 1 << 18
	r := codingNode(t, Coding{Memory: budget, Policy: ecraft.Levelled{}})
	l := leaderOf(t, r)
	for i := range 20 {
		require.NoError(t, r.Step(&request(pb.MsgProp).withFrom(1).withData(bytes.Repeat([]byte{byte(i)}, size)).msg))
	}
	g := &r.coded.ledger
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

	ents, err := r.log.slice(g.recs[0].id.index, r.log.last().index+1, noLimit)
	require.NoError(t, err)
	made, _ := l.forMember(2, ents, math.MaxInt)
	require.Len(t, made, 20)
	for _, e := range made {
		env, err := ecraft.Parse(e.Data, 0, 2)
		require.NoError(t, err)
		require.NoError(t, env.Own.Verify())
		require.Equal(t, 1, env.Own.Count)
	}
	require.Equal(t, 20, l.raise(func(id uint64) bool { return id != 3 }), "at work with all of them")
	check(20 * size)
	require.NoError(t, r.Step(&request(pb.MsgProp).withFrom(1).withData(make([]byte, size)).msg))
	check(budget + size)
	r.coded.dropFrom(g.recs[10].id.index)
	check(budget)
	g.release(noLimit - 1)
	require.Zero(t, g.words)
}

// TestRidersBehindASnapshot: an append whose riders speak of entries that a snapshot
// covers is taken while the host still has to apply that.
func TestRidersBehindASnapshot(t *testing.T) {
	r := codingNode(t, Coding{})
	r.becomeFollower(2, 2)
	require.NoError(t, r.Step(&pb.Message{Type: pb.MsgSnap.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)),
		Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(9)), Term: new(uint64(2)), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}},
		}}}))
	require.NotNil(t, r.log.tail.snapshot)
	carrier := &ecraft.Header{Kind: ecraft.Carrier, Encoder: 2, Riders: []ecraft.Rider{
		{ID: ecraft.ID{Term: 2, Index: 5}, Totals: []uint8{0, 2}},
	}}
	e := copyEntry(&pb.Entry{}, entryID{term: 2, index: 10})
	e.Data = ecraft.Seal(nil, carrier, 1, 0, nil, nil)
	require.NoError(t, r.Step(&pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)),
		LogTerm: new(uint64(2)), Index: new(uint64(9)), Commit: new(uint64(9)), Entries: []*pb.Entry{e}}))
	require.Equal(t, uint64(10), r.log.last().index)
}

// TestHostileQuestionsAndHeaders: a question for more entries than anybody asks for,
// and headers that are not those of coded entries or too many, are refused.
func TestHostileQuestionsAndHeaders(t *testing.T) {
	r := codingNode(t, Coding{})
	ask := r.coded.unitsMessage(MsgUnitsAsk, 1, forAsk)
	ask.from = 2
	for i := range uint64(maxRecovered + 1) {
		ask.msg.Entries = append(ask.msg.Entries, unitsEntry(entryID{term: 1, index: i + 1}, nil))
	}
	require.ErrorIs(t, r.Step(&ask.msg), ErrMalformedMessage)

	l := leaderOf(t, r)
	check := &l.enc.check
	*check = memberCheck{voters: l.members.Voters[0], headers: map[uint64]*record{}}
	carrier := ecraft.AppendHeader(nil, &ecraft.Header{Kind: ecraft.Carrier, Encoder: 2})
	for _, n := range []int{1, maxHeaders + 1} {
		answer := r.coded.unitsMessage(MsgUnits, 1, forHeader).withIndex(1).withCommit(noLimit)
		answer.from = 2
		for i := range n {
			answer.msg.Entries = append(answer.msg.Entries, unitsEntry(entryID{term: 1, index: uint64(i) + 1}, carrier))
		}
		require.ErrorIs(t, r.Step(&answer.msg), ErrMalformedMessage)
		require.Empty(t, check.headers)
	}
}

// TestStrangersHaveNoAccount: the members that an entry names are as many as its
// sender likes; a node keeps account of those that it knows.
func TestStrangersHaveNoAccount(t *testing.T) {
	r := codingNode(t, Coding{})
	payload := make([]byte, 100)
	h := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload), Layout: ecraft.NewLayout(3, 4),
		Encoder: 2, Members: []uint64{1, 3, 98, 99}, Units: []uint8{1, 1, 1, 1},
	}
	word := ecraft.NewCodeword(h, payload)
	e := copyEntry(&pb.Entry{}, entryID{term: 2, index: 2})
	e.Data = ecraft.Seal(nil, h, 1, 0, word, nil)
	require.NoError(t, r.Step(&pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)),
		LogTerm: new(uint64(1)), Index: new(uint64(1)), Commit: new(uint64(1)), Entries: []*pb.Entry{e}}))
	require.Equal(t, uint64(2), r.log.last().index)
	require.Subset(t, []uint64{1, 2, 3}, slices.Collect(maps.Keys(r.coded.accounts)))
	require.True(t, r.coded.accounts[3].capable)
}
