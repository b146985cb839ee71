// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"log"

	"github.com/cockroachdb/pebble/v2/vfs"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/storage"
)

// A log of one group: append, record a snapshot, compact, and find everything
// again. Leave FS out of the options to write to disk.
func Example() {
	opts := storage.Options{Identity: storage.Identity{Cluster: 1, Node: 1}, FS: vfs.NewMem()}
	engine, err := storage.Open("raft-log", opts)
	if err != nil {
		log.Fatal(err)
	}
	group, err := engine.Group(7)
	if err != nil {
		log.Fatal(err)
	}

	var entries []*pb.Entry
	for i := uint64(1); i <= 5; i++ {
		entries = append(entries, &pb.Entry{Term: new(uint64(1)), Index: new(i), Data: fmt.Appendf(nil, "command %d", i)})
	}
	durable := make(chan error, 1)
	err = group.Append(storage.Write{
		Entries:   entries,
		HardState: &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(uint64(5))},
	}, func(err error) { durable <- err })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("durable:", <-durable)

	// The host keeps its own state up to entry 3, durably: the log may forget it.
	err = group.SetSnapshot(&pb.SnapshotMetadata{Index: new(uint64(3)), ConfState: &pb.ConfState{Voters: []uint64{1}}}, nil)
	if err == nil {
		err = group.Compact(3)
	}
	if err == nil {
		err = engine.Close()
	}
	if err != nil {
		log.Fatal(err)
	}

	engine, err = storage.Open("raft-log", opts)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	group, err = engine.Group(7)
	if err != nil {
		log.Fatal(err)
	}
	hs, cs, err := group.InitialState()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("commit:", hs.GetCommit(), "voters:", cs.Voters)
	first, _ := group.FirstIndex()
	last, _ := group.LastIndex()
	entries, err = group.Entries(first, last+1, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.GetIndex(), string(e.Data))
	}
	// Output:
	// durable: <nil>
	// commit: 5 voters: [1]
	// 4 command 4
	// 5 command 5
}

// Many groups share one log. What waits is written together, by one sync for all
// groups: group commit. Manual is for simulations; without it the engine has a
// writer of its own, and Step is not called.
func ExampleOpen() {
	engine, err := storage.Open("raft-log", storage.Options{
		Identity: storage.Identity{Cluster: 1, Node: 1},
		FS:       vfs.NewMem(),
		Manual:   true,
	})
	if err != nil {
		log.Fatal(err)
	}
	before := engine.Stats()
	for id := uint64(1); id <= 3; id++ {
		group, err := engine.Group(id)
		if err != nil {
			log.Fatal(err)
		}
		entry := &pb.Entry{Term: new(uint64(1)), Index: new(uint64(1)), Data: []byte("first")}
		err = group.Append(storage.Write{
			Entries:   []*pb.Entry{entry},
			HardState: &pb.HardState{Term: new(uint64(1)), Vote: new(id)},
		}, func(err error) { fmt.Printf("group %d is durable: %v\n", id, err == nil) })
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("queued")
	if _, err := engine.Step(); err != nil {
		log.Fatal(err)
	}
	after := engine.Stats()
	fmt.Printf("%d writes, %d sync\n", after.Writes-before.Writes, after.Syncs-before.Syncs)
	if err := engine.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// queued
	// group 1 is durable: true
	// group 2 is durable: true
	// group 3 is durable: true
	// 3 writes, 1 sync
}

// The writer syncs once for all that waits, so a caller that has several writes
// queues them and waits for the last.
func ExampleEngine_Sync() {
	engine, err := storage.Open("raft-log", storage.Options{Identity: storage.Identity{Cluster: 1, Node: 1}, FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	for id := uint64(1); id <= 1000; id++ {
		group, err := engine.Group(id)
		if err != nil {
			log.Fatal(err)
		}
		if err := group.Append(storage.Write{HardState: &pb.HardState{Term: new(uint64(1))}}, nil); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(engine.Sync(context.Background()), engine.Stats().Writes)
	// Output: <nil> 1000
}
