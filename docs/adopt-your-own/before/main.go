// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command before is a replicated table of counters with the loop that
// go.etcd.io/raft leaves to its user, as small as it can be: three nodes in one
// process, and everything in memory.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// add is a command: it adds N to a counter.
type add struct {
	Name string
	N    int
	ID   string // by which its proposer finds the result
}

// node is one replica.
type node struct {
	id      uint64
	raft    raft.Node
	storage *raft.MemoryStorage
	peers   map[uint64]*node

	mu       sync.Mutex
	counters map[string]int
	waiting  map[string]chan int
}

func (n *node) run(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			n.raft.Stop()
			return
		case <-tick.C:
			n.raft.Tick()
		case rd := <-n.raft.Ready():
			if !raft.IsEmptyHardState(rd.HardState) {
				check(n.storage.SetHardState(rd.HardState))
			}
			check(n.storage.Append(rd.Entries))
			for _, m := range rd.Messages {
				// Never wait for a peer here.
				go func() { _ = n.peers[m.GetTo()].raft.Step(ctx, m) }() // one that stops takes nothing
			}
			for _, e := range rd.CommittedEntries {
				n.apply(e)
			}
			n.raft.Advance()
		}
	}
}

func (n *node) apply(e *pb.Entry) {
	if e.GetType() == pb.EntryConfChange {
		cc := &pb.ConfChange{}
		check(proto.Unmarshal(e.GetData(), cc))
		n.raft.ApplyConfChange(cc)
		return
	}
	if len(e.GetData()) == 0 {
		return // a new leader begins its term with an empty entry
	}
	var c add
	check(json.Unmarshal(e.GetData(), &c))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counters[c.Name] += c.N
	if w := n.waiting[c.ID]; w != nil {
		w <- n.counters[c.Name]
		delete(n.waiting, c.ID)
	}
}

// add replicates a command and returns the counter's new value.
func (n *node) add(ctx context.Context, name string, by int) (int, error) {
	id := fmt.Sprint(n.id, time.Now().UnixNano())
	data, err := json.Marshal(add{name, by, id})
	if err != nil {
		return 0, err
	}
	w := make(chan int, 1)
	n.mu.Lock()
	n.waiting[id] = w
	n.mu.Unlock()
	if err := n.raft.Propose(ctx, data); err != nil {
		return 0, err
	}
	select {
	case v := <-w:
		return v, nil
	case <-ctx.Done():
		return 0, ctx.Err() // nobody knows what became of it
	}
}

func main() {
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	raft.SetLogger(&raft.DefaultLogger{Logger: log.New(discard{}, "", 0)})
	nodes := map[uint64]*node{}
	for id := uint64(1); id <= 3; id++ {
		n := &node{id: id, storage: raft.NewMemoryStorage(), peers: nodes, counters: map[string]int{}, waiting: map[string]chan int{}}
		n.raft = raft.StartNode(&raft.Config{
			ID: id, ElectionTick: 10, HeartbeatTick: 1, Storage: n.storage,
			MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256,
		}, []raft.Peer{{ID: 1}, {ID: 2}, {ID: 3}})
		nodes[id] = n
	}
	for _, n := range nodes {
		go n.run(ctx)
	}
	for id, by := range []int{3, 2, -1} {
		n := nodes[uint64(id+1)]
		for n.raft.Status().Lead == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		v, err := n.add(ctx, "apples", by)
		check(err)
		fmt.Printf("node %d: apples = %d\n", n.id, v)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
