// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"
	"io"
	"log"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// A group of one member commits what is proposed to it: the host writes what
// Ready asks for, applies what is committed, and says so with Advance.
func ExampleRawNode() {
	storage := raft.NewMemoryStorage()
	// The member set is written into the storage before the first start.
	err := storage.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)),
		ConfState: &pb.ConfState{Voters: []uint64{1}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	raft.SetLogger(&raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)})
	defer raft.ResetDefaultLogger()
	rn, err := raft.NewRawNode(&raft.Config{
		ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: storage,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256, PreVote: true, CheckQuorum: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	work := func() {
		for rn.HasReady() {
			rd := rn.Ready()
			if !raft.IsEmptyHardState(rd.HardState) {
				_ = storage.SetHardState(rd.HardState)
			}
			_ = storage.Append(rd.Entries)
			for _, e := range rd.CommittedEntries {
				if len(e.GetData()) > 0 {
					fmt.Printf("apply %d: %s\n", e.GetIndex(), e.GetData())
				}
			}
			rn.Advance(rd)
		}
	}
	if err := rn.Campaign(); err != nil {
		log.Fatal(err)
	}
	work()
	for _, command := range []string{"set x=1", "set y=2"} {
		if err := rn.Propose([]byte(command)); err != nil {
			log.Fatal(err)
		}
	}
	work()
	fmt.Println(rn.BasicStatus().RaftState)
	// Output:
	// apply 3: set x=1
	// apply 4: set y=2
	// StateLeader
}

// A configuration with several mistakes is refused with all of them.
func ExampleConfig_Validate() {
	c := raft.Config{ID: 1, ElectionTick: 1, HeartbeatTick: 1, Storage: raft.NewMemoryStorage()}
	fmt.Println(c.Validate())
	// Output:
	// raft: Config.ElectionTick is 1; it must exceed HeartbeatTick, which is 1
	// raft: Config.MaxInflightMsgs is 0; at least 1 is needed
}
