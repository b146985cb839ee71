// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command after is the replicated table of counters of ../before, on Host: three
// nodes in one process, with logs and state on disk, over TCP. It stops one of
// them and starts it again.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// cluster is a number of your own: nodes of other clusters are refused.
const cluster = 7

// add is a command: it adds N to a counter.
type add struct {
	Name string
	N    int
}

// node is one replica.
type node struct {
	id        uint64
	engine    *storage.Engine
	transport *transport.TCP
	state     *counters
	host      *rawnode.Host
}

// start starts a node on its directory, in which everything is that it must not
// forget. addresses are those of all members.
func start(id uint64, dir string, addresses map[uint64]string) (*node, error) {
	n := &node{id: id}
	var err error
	if n.engine, err = storage.Open(filepath.Join(dir, "log"), storage.Options{
		Identity: storage.Identity{Cluster: cluster, Node: id},
	}); err != nil {
		return nil, err
	}
	group, err := n.engine.Group(1)
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	if n.state, err = openCounters(filepath.Join(dir, "counters.json")); err != nil {
		return nil, errors.Join(err, n.close())
	}
	if n.transport, err = transport.New(transport.Config{
		Cluster: cluster, Node: id, Listen: addresses[id], Peers: addresses,
	}); err != nil {
		return nil, errors.Join(err, n.close())
	}
	n.host, err = rawnode.New(rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: id, Group: 1, Peers: []uint64{1, 2, 3}, Log: group},
		StateMachine: n.state,
		Transport:    n.transport,
		TickInterval: 10 * time.Millisecond,
	})
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// stop ends what is under way, and then closes the parts.
func (n *node) stop(ctx context.Context) error { return errors.Join(n.host.Stop(ctx), n.close()) }

func (n *node) close() error {
	var errs []error
	if n.transport != nil {
		errs = append(errs, n.transport.Close())
	}
	return errors.Join(append(errs, n.engine.Close())...)
}

// add replicates a command and returns the counter's new value.
func (n *node) add(ctx context.Context, name string, by int) (int, error) {
	command, err := json.Marshal(add{name, by})
	if err != nil {
		return 0, err
	}
	r, err := n.host.Propose(ctx, command)
	if errors.Is(err, rawnode.ErrUnknown) {
		return 0, fmt.Errorf("read before you add again: %w", err)
	}
	if err != nil {
		return 0, fmt.Errorf("not added: %w", err)
	}
	return r.Value.(int), nil
}

// get returns a counter as of now: no older than what anybody was told before.
func (n *node) get(ctx context.Context, name string) (int, error) {
	if _, err := n.host.Read(ctx); err != nil {
		return 0, err
	}
	return n.state.get(name), nil
}

func run(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	addresses, err := freeAddresses(3)
	if err != nil {
		return err
	}
	var nodes []*node
	for id := uint64(1); id <= 3; id++ {
		n, err := start(id, filepath.Join(dir, fmt.Sprint(id)), addresses)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	for i, by := range []int{3, 2, -1} {
		v, err := nodes[i].add(ctx, "apples", by)
		if err != nil {
			return err
		}
		fmt.Printf("node %d: apples = %d\n", nodes[i].id, v)
	}
	if err := nodes[1].stop(ctx); err != nil {
		return err
	}
	if nodes[1], err = start(2, filepath.Join(dir, "2"), addresses); err != nil {
		return err
	}
	v, err := nodes[1].get(ctx, "apples")
	if err != nil {
		return err
	}
	fmt.Printf("node 2, started again: apples = %d\n", v)
	for _, n := range nodes {
		err = errors.Join(err, n.stop(ctx))
	}
	return err
}

func main() {
	data := flag.String("data", "", "directory for logs and state (default: a temporary one)")
	flag.Parse()
	dir := *data
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "counters-"); err != nil {
			log.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // it is temporary
	}
	if err := run(dir); err != nil {
		log.Print(err)
	}
}
