// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// stock is a replicated map from articles to numbers.
type stock map[string]int

// Apply adds one of an article, and returns how many there are.
func (s stock) Apply(command []byte) any {
	if !utf8.Valid(command) { // Write would change such a name
		return errors.New("the name is not UTF-8")
	}
	s[string(command)]++
	return s[string(command)]
}

// Write and Read are the state's form in checkpoints and snapshots.
func (s stock) Write(w io.Writer) error { return json.NewEncoder(w).Encode(s) }

// Read fills an empty stock.
func (s stock) Read(r io.Reader) error { return json.NewDecoder(r).Decode(&s) }

// A group of one node keeps its state over a restart. More nodes would have the same
// code, with more Peers.
func ExampleMemory() {
	disk := vfs.NewMem() // leave FS out below for files on disk
	run := func(words ...string) {
		engine, err := storage.Open("log", storage.Options{FS: disk, Identity: storage.Identity{Cluster: 1, Node: 1}})
		if err != nil {
			log.Fatal(err)
		}
		group, err := engine.Group(1)
		if err != nil {
			log.Fatal(err)
		}
		net, err := transport.New(transport.Config{Cluster: 1, Node: 1, Listen: "127.0.0.1:0"})
		if err != nil {
			log.Fatal(err)
		}
		memory, err := state.OpenMemory(func() stock { return stock{} }, state.Options{FS: disk, Dir: "state", Identity: "cluster 1, node 1, group 1"})
		if err != nil {
			log.Fatal(err)
		}
		host, err := rawnode.New(rawnode.Config{
			Replica:      rawnode.ReplicaConfig{ID: 1, Group: 1, Peers: []uint64{1}, Log: group},
			StateMachine: memory, Transport: net, TickInterval: 10 * time.Millisecond,
		})
		if err != nil {
			log.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, word := range words {
			result, err := host.Propose(ctx, []byte(word))
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(word, result.Value)
		}
		if _, err := host.Read(ctx); err != nil {
			log.Fatal(err)
		}
		memory.View(func(s stock) { fmt.Println(s) })
		for _, end := range []func() error{func() error { return host.Stop(ctx) }, memory.Close, net.Close, engine.Close} {
			if err := end(); err != nil {
				log.Fatal(err)
			}
		}
	}
	run("nuts", "bolts", "nuts")
	run("bolts")
	// Output:
	// nuts 1
	// bolts 1
	// nuts 2
	// map[bolts:1 nuts:2]
	// bolts 2
	// map[bolts:2 nuts:2]
}
