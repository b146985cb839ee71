// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// codedFor returns the header of a payload that node 2 coded for 1 and 3.
func codedFor(payload []byte) *ecraft.Header {
	return &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload),
		Layout: ecraft.NewLayout(3, 2), Encoder: 2, Members: []uint64{1, 3}, Units: []uint8{1, 1},
	}
}

// TestRiderOfOtherShape: a carrier comes with a rider for an entry that is applied, so
// that nothing is known of it any more, and says how much of it one slot holds, where
// it has two. The node starts again, from an older state: the rider counts for nothing.
func TestRiderOfOtherShape(t *testing.T) {
	payload := bytes.Repeat([]byte("payload "), 100)
	h := codedFor(payload)
	word := ecraft.NewCodeword(h, payload)
	carrier := &ecraft.Header{Kind: ecraft.Carrier, Encoder: 2, Riders: []ecraft.Rider{{ID: ecraft.ID{Term: 1, Index: 2}, Totals: []uint8{2}}}}
	var ents []*pb.Entry
	for i, data := range [][]byte{
		ecraft.Seal(nil, h, 1, 0, word, nil),
		ecraft.Seal(nil, carrier, 1, 0, nil, []*ecraft.Codeword{nil}),
	} {
		ents = append(ents, &pb.Entry{Term: new(uint64(1)), Index: new(uint64(i) + 2), Data: data})
	}
	a := newAlone(t, Config{Coding: &Coding{}}, 1, 2, 3)
	send := func(m *pb.Message) error {
		m.Type, m.From, m.To, m.Term = pb.MsgApp.Enum(), new(uint64(2)), new(uint64(1)), new(uint64(1))
		return a.Step(m)
	}
	require.NoError(t, send(&pb.Message{LogTerm: new(uint64(1)), Index: new(uint64(1)), Entries: ents[:1], Commit: new(uint64(2))}))
	require.ErrorIs(t, send(&pb.Message{LogTerm: new(uint64(1)), Index: new(uint64(2)), Entries: ents[1:]}), ErrMalformedMessage)
	a.log.applying = 2
	a.appliedTo(2, 0)
	require.NoError(t, send(&pb.Message{LogTerm: new(uint64(1)), Index: new(uint64(2)), Entries: ents[1:]}))

	ms := a.cfg.Storage.(*MemoryStorage)
	require.NoError(t, ms.Append(ents))
	again, err := newRaft(&a.cfg)
	require.NoError(t, err)
	s := (&RawNode{raft: again}).CodingStatus()
	require.Equal(t, map[uint64]int{1: 1, 3: 1}, s.Entries[0].Units)
}

// TestHeaderOfAnotherPayload: a leader that checks a change has compacted an entry,
// has its payload all the same, and is told a header by a member that lies. No units
// are made by that.
func TestHeaderOfAnotherPayload(t *testing.T) {
	payload := bytes.Repeat([]byte("payload "), 100)
	id := entryID{term: 1, index: 1}
	a := newAlone(t, Config{Coding: &Coding{}}, 1, 2, 3)
	l := a.lead(2, 3)
	l.coded.store.Put(coID(id), codedFor(payload), payload)
	for _, lie := range []func(h *ecraft.Header){
		func(h *ecraft.Header) { h.PayloadLen = ecraft.MaxPayload },
		func(h *ecraft.Header) { h.PayloadCRC++ },
		nil,
	} {
		h := codedFor(payload)
		if lie != nil {
			lie(h)
		}
		l.enc.check.headers = map[uint64]*record{id.index: {id: id, hdr: h}}
		word, err := l.riderWord(id)
		if lie != nil {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, payload, word.Payload())
	}
}
