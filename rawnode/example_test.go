// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// lines is a replicated list of lines, in memory: after a restart the log rebuilds the list from
// the start.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) Load() (uint64, []byte, error) { return 0, nil, nil }
func (l *lines) Durable() (uint64, error)      { return 0, nil }

func (l *lines) Apply(b rawnode.Batch) ([]any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	results := make([]any, len(b.Commands))
	for i, command := range b.Commands {
		l.list = append(l.list, string(command))
		results[i] = len(l.list)
	}
	return results, nil
}

// The list is never durable, so the log keeps all entries and no snapshot is needed.
func (l *lines) Snapshot() (rawnode.Snapshot, error) {
	return nil, fmt.Errorf("no snapshots")
}

func (l *lines) Restore(rawnode.SnapshotMeta, io.Reader) error {
	return fmt.Errorf("no snapshots")
}

// ExampleHost runs a group of three nodes in one process, each with its own log, over TCP on the
// loopback interface.
func ExampleHost() {
	peers := []uint64{1, 2, 3}
	var transports []*transport.TCP
	for _, id := range peers {
		t, err := transport.New(transport.Config{Cluster: 42, Node: id, Listen: "127.0.0.1:0"})
		if err != nil {
			log.Fatal(err)
		}
		transports = append(transports, t)
	}
	var hosts []*rawnode.Host
	var states []*lines
	for i, id := range peers {
		for j, t := range transports {
			transports[i].SetPeer(peers[j], t.Addr().String())
		}
		engine, err := storage.Open("log", storage.Options{
			FS:       vfs.NewMem(), // without this line, the log is on disk
			Identity: storage.Identity{Cluster: 42, Node: id},
		})
		if err != nil {
			log.Fatal(err)
		}
		group, err := engine.Group(1)
		if err != nil {
			log.Fatal(err)
		}
		state := &lines{}
		host, err := rawnode.New(rawnode.Config{
			Replica:      rawnode.ReplicaConfig{ID: id, Group: 1, Peers: peers, Log: group},
			StateMachine: state,
			Transport:    transports[i],
			TickInterval: 10 * time.Millisecond,
		})
		if err != nil {
			log.Fatal(err)
		}
		hosts, states = append(hosts, host), append(states, state)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// Any node takes commands, and returns the result of its state machine.
	for i, host := range hosts {
		result, err := host.Propose(ctx, fmt.Appendf(nil, "from node %d", i+1))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("line", result.Value)
	}
	// A read at any node sees every command acknowledged before.
	if _, err := hosts[0].Read(ctx); err != nil {
		log.Fatal(err)
	}
	states[0].mu.Lock()
	fmt.Println(states[0].list)
	states[0].mu.Unlock()

	for i, host := range hosts {
		if err := host.Stop(ctx); err != nil {
			log.Fatal(err)
		}
		if err := transports[i].Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// line 1
	// line 2
	// line 3
	// [from node 1 from node 2 from node 3]
}
