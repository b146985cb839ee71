// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// server is a node with several groups: one engine, one transport, one budget of commands and one of snapshots, and a
// host for each group.
type server struct {
	transport *transport.TCP
	engine    *storage.Engine
	budget    *rawnode.Budget
	catchUp   *rawnode.CatchUp
	hosts     []*rawnode.Host
	states    []*lines
}

func newServer(id uint64) *server {
	t, err := transport.New(transport.Config{Cluster: 42, Node: id, Listen: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := storage.Open("log", storage.Options{
		FS:       vfs.NewMem(), // without this line, the log is on disk
		Identity: storage.Identity{Cluster: 42, Node: id},
	})
	if err != nil {
		log.Fatal(err)
	}
	catchUp, err := rawnode.NewCatchUp(64 << 20)
	if err != nil {
		log.Fatal(err)
	}
	return &server{transport: t, engine: engine, budget: rawnode.NewBudget(64 << 20), catchUp: catchUp}
}

func (s *server) startGroup(id, group uint64, peers []uint64) {
	logOfGroup, err := s.engine.Group(group)
	if err != nil {
		log.Fatal(err)
	}
	state := &lines{}
	host, err := rawnode.New(rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: id, Group: group, Peers: peers, Log: logOfGroup, Budget: s.budget},
		StateMachine: state,
		Transport:    s.transport,
		CatchUp:      s.catchUp,
		TickInterval: 10 * time.Millisecond,
	})
	if err != nil {
		log.Fatal(err)
	}
	s.hosts, s.states = append(s.hosts, host), append(s.states, state)
}

func (s *server) stop(ctx context.Context) {
	for _, host := range s.hosts {
		if err := host.Stop(ctx); err != nil {
			log.Fatal(err)
		}
	}
	if err := s.transport.Close(); err != nil {
		log.Fatal(err)
	}
	if err := s.engine.Close(); err != nil {
		log.Fatal(err)
	}
}

// ExampleHost_severalGroups runs three groups at three nodes. The groups of a node share an engine,
// so that a single sync serves all groups, a transport, and budgets. A balancer at each node
// spreads their leaders.
func ExampleHost_severalGroups() {
	peers, groups := []uint64{1, 2, 3}, []uint64{1, 2, 3}
	servers := map[uint64]*server{}
	for _, id := range peers {
		servers[id] = newServer(id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, id := range peers {
		s := servers[id]
		for _, other := range peers {
			s.transport.SetPeer(other, servers[other].transport.Addr().String())
		}
		for _, group := range groups {
			s.startGroup(id, group, peers)
		}
		balancer, err := rawnode.NewBalancer(rawnode.BalancerConfig{
			Hosts:      func() []*rawnode.Host { return s.hosts },
			Hysteresis: 10,
			Interval:   50 * time.Millisecond,
		})
		if err != nil {
			log.Fatal(err)
		}
		go balancer.Run(ctx)
	}

	// Each group has its own log and state. The program decides to which group a key belongs.
	for i, group := range groups {
		if _, err := servers[1].hosts[i].Propose(ctx, fmt.Appendf(nil, "of group %d", group)); err != nil {
			log.Fatal(err)
		}
	}
	for i := range groups {
		// Any node serves reads; the state of this read may be 1 s old.
		if _, err := servers[3].hosts[i].ReadAt(ctx, rawnode.BoundedStaleness{Max: time.Second}); err != nil {
			log.Fatal(err)
		}
		servers[3].states[i].mu.Lock()
		fmt.Println(servers[3].states[i].list)
		servers[3].states[i].mu.Unlock()
	}
	for !spread(servers[2].hosts) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("each node leads one group")

	// The group refuses to remove a node that is no member.
	remove := &pb.ConfChange{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(9))}
	_, err := servers[1].hosts[0].ProposeConfChange(ctx, remove)
	fmt.Println(err != nil)

	for _, id := range peers {
		servers[id].stop(ctx)
	}
	// Output:
	// [of group 1]
	// [of group 2]
	// [of group 3]
	// each node leads one group
	// true
}

// spread reports whether the groups of a node have leaders of their own each.
func spread(hosts []*rawnode.Host) bool {
	leaders := map[uint64]bool{}
	for _, host := range hosts {
		leaders[host.Status().Lead] = true
	}
	return len(leaders) == len(hosts) && !leaders[0]
}
