// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command after is the replicated table of counters of ../before, on package weft: three
// nodes in one process, with logs and state on disk, over TCP. It stops one of them
// and starts it again.
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

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/internal/ports"
)

// node is one replica.
type node struct {
	*weft.Node
	counters *weft.Replicated[counters]
}

// start starts a node on its directory, in which everything is that it must not
// forget. peers are the addresses of all first members.
func start(id uint64, dir string, peers map[uint64]string) (*node, error) {
	n, err := weft.Open(weft.Options{Cluster: 7, ID: id, Dir: dir, Peers: peers, TickInterval: 10 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	c, err := weft.Replicate(n, 1, newCounters)
	if err != nil {
		return nil, errors.Join(err, n.Close(context.Background()))
	}
	return &node{n, c}, nil
}

// add replicates a command and returns the counter's new value.
func (n *node) add(ctx context.Context, name string, by int) (int, error) {
	command, err := json.Marshal(add{name, by})
	if err != nil {
		return 0, err
	}
	r, err := n.counters.Propose(ctx, command)
	if errors.Is(err, weft.ErrUnknown) {
		return 0, fmt.Errorf("read before you add again: %w", err)
	}
	if err != nil {
		return 0, fmt.Errorf("not added: %w", err)
	}
	return r.Value.(int), nil
}

// get returns a counter as of now: no older than what anybody was told before.
func (n *node) get(ctx context.Context, name string) (value int, err error) {
	err = n.counters.View(ctx, func(c counters) { value = c[name] })
	return value, err
}

func run(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	free, err := ports.Free(3) // yours stand in a configuration
	if err != nil {
		return err
	}
	peers := map[uint64]string{1: free[0], 2: free[1], 3: free[2]}
	nodes := map[uint64]*node{}
	for id := range peers {
		if nodes[id], err = start(id, filepath.Join(dir, fmt.Sprint(id)), peers); err != nil {
			return err
		}
	}
	for i, by := range []int{3, 2, -1} {
		n := nodes[uint64(i+1)]
		v, err := n.add(ctx, "apples", by)
		if err != nil {
			return err
		}
		fmt.Printf("node %d: apples = %d\n", n.ID(), v)
	}
	if err := nodes[2].Close(ctx); err != nil {
		return err
	}
	if nodes[2], err = start(2, filepath.Join(dir, "2"), peers); err != nil {
		return err
	}
	v, err := nodes[2].get(ctx, "apples")
	if err != nil {
		return err
	}
	fmt.Printf("node 2, started again: apples = %d\n", v)
	for _, n := range nodes {
		err = errors.Join(err, n.Close(ctx))
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
