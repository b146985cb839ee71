// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/papers"
)

// Papers returns the published policies that are worked out beside the runs.
func Papers() []papers.SetPolicy {
	return []papers.SetPolicy{papers.RSPaxos{}, papers.CRaft{}, papers.HRaft{}, papers.Crossword{C: 1}, papers.FlexRaft{}}
}

// gossips reports whether followers complete payloads among themselves.
func gossips(p papers.SetPolicy) bool {
	_, yes := p.(papers.Crossword)
	return yes
}

// model works out what a policy sends in the row of a measured cell with full
// copies: the same control messages, and appends of the same form with what the
// policy assigns. Followers that failed get nothing.
func model(p papers.SetPolicy, measured cell) cell {
	n, size := measured.Voters, measured.Size
	r := &ecraft.Round{Size: size, Voters: n, Layout: ecraft.NewLayout(n, n-1)}
	h := &ecraft.Header{Kind: ecraft.Coded, PayloadLen: size, PayloadCRC: 1 << 30, Encoder: 1}
	answered := make([]bool, n-1)
	for i := range n - 1 {
		answered[i] = i < n-1-measured.Failed
		r.Followers = append(r.Followers, ecraft.Member{ID: uint64(i) + 2, Healthy: answered[i]})
		h.Members = append(h.Members, uint64(i)+2)
	}
	sets := make([]ecraft.Set, n-1)
	plan := p.AssignSets(r, sets)
	out := cell{Voters: n, Failed: measured.Failed, Size: size, Side: p.Name(), Model: true, Least: measured.Least}
	if !plan.Commits(sets, answered) {
		out.Stuck = true
		return out
	}
	h.Layout = ecraft.Layout{D: plan.D, Slots: n - 1}
	for _, s := range sets {
		h.Units = append(h.Units, uint8(s.Len()))
	}
	appends, gossip := 0, 0
	for i, m := range r.Followers {
		if !m.Healthy {
			continue
		}
		data := size // plain
		if plan.D > 1 {
			data = ecraft.SealedLen(h, m.ID, 0, nil)
		}
		appends += messageSize(pb.MsgApp, data)
		if missing := plan.D - sets[i].Len(); gossips(p) && missing > 0 {
			// One message from each of those whose turn it is; the least is one.
			unit := (size + plan.D - 1) / plan.D
			gossip += missing*(unit+4) + messageSize(pb.MsgApp, 0)
		}
	}
	payload := float64(size)
	control := measured.Kinds["control"]
	out.Leader = measured.control + float64(appends)/payload
	out.Network = control + float64(appends+gossip)/payload
	out.Kinds = map[string]float64{"control": control, "append": float64(appends) / payload, "gossip": float64(gossip) / payload}
	return out
}

// messageSize returns the size of a message with one entry, given the size of the
// entry's Data, with indexes and terms as large as some way into a run.
func messageSize(typ pb.MessageType, data int) int {
	some, term := uint64(1<<13), uint64(2)
	id := uint64(3)
	return proto.Size(&pb.Message{
		Type: &typ, From: &id, To: &id, Term: &term, LogTerm: &term, Index: &some, Commit: &some,
		Entries: []*pb.Entry{{Type: pb.EntryNormal.Enum(), Term: &term, Index: &some, Data: make([]byte, data)}},
	})
}
