// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Peer is a first member of a group: its id, and a context for the host, kept in the
// configuration change of the member.
type Peer struct {
	ID      uint64
	Context []byte
}

// Bootstrap begins a group: the log starts with one configuration change for each peer,
// committed, as if a leader of term 1 had proposed them. All first members must be
// given the same peers in the same order. Bootstrap returns an error without peers, or
// if the storage is not empty.
func (rn *RawNode) Bootstrap(peers []Peer) error {
	if len(peers) == 0 {
		return errors.New("must provide at least one peer to Bootstrap")
	}
	r := rn.raft
	last, err := r.log.storage.LastIndex()
	if err != nil {
		return err
	}
	if last != 0 {
		return errors.New("can't bootstrap a nonempty Storage")
	}
	changes := make([]*pb.ConfChange, len(peers))
	ents := make([]*pb.Entry, len(peers))
	for i, p := range peers {
		changes[i] = &pb.ConfChange{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(p.ID), Context: p.Context}
		data, err := proto.Marshal(changes[i])
		if err != nil {
			return err
		}
		ents[i] = copyEntry(&pb.Entry{Type: pb.EntryConfChange.Enum(), Data: data}, ecraft.ID{Term: 1, Index: uint64(i) + 1})
	}
	rn.toldHard = hardState{} // so that the first Ready has a hard state to write
	r.becomeFollower(1, None)
	r.log.appendAfter(ecraft.ID{}, ents)
	r.log.commitTo(uint64(len(ents)))
	// The host will apply the changes later; with the changes applied here too, this
	// node can campaign before.
	for _, cc := range changes {
		r.applyConfChange(cc.AsV2())
	}
	return nil
}
