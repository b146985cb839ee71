// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
)

// votes is a state: how many each candidate has.
type votes map[string]int

func newVotes() votes { return votes{} }

func (v votes) Apply(command []byte) any {
	if !utf8.Valid(command) { // Write would change such a name
		return errors.New("the name is not UTF-8")
	}
	v[string(command)]++
	return v[string(command)]
}

func (v votes) Write(w io.Writer) error { return json.NewEncoder(w).Encode(v) }
func (v votes) Read(r io.Reader) error  { return json.NewDecoder(r).Decode(&v) }

// temporary returns a directory for the nodes of an example.
func temporary() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "weft-")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// One node, one group. More nodes have the same code, with Peers.
func Example() {
	dir, remove := temporary()
	defer remove()
	ctx := context.Background()
	options := weft.Options{Cluster: 7, ID: 1, Dir: dir, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond}

	node := must(weft.Open(options))
	group := must(weft.Replicate(node, 1, newVotes))
	fmt.Println(must(group.Propose(ctx, []byte("ada"))).Value)
	check(node.Close(ctx))

	node = must(weft.Open(options))
	group = must(weft.Replicate(node, 1, newVotes))
	fmt.Println(must(group.Propose(ctx, []byte("ada"))).Value)
	check(group.View(ctx, func(v votes) { fmt.Println(v) }))
	check(node.Close(ctx))
	// Output:
	// 1
	// 2
	// map[ada:2]
}

// A group codes large commands, and all its voters answer linearizable reads. All members have the
// same settings.
func ExampleConfigure() {
	dir, remove := temporary()
	defer remove()
	ctx := context.Background()
	node := must(weft.Open(weft.Options{Cluster: 7, ID: 1, Dir: dir, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond}))
	group := must(weft.Replicate(node, 1, newVotes, weft.Configure(func(c *rawnode.Config) {
		c.Replica.Coding = &raft.Coding{}
		c.Replica.Leases = &raft.Leases{Wanted: []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}}
	})))
	fmt.Println(must(group.Propose(ctx, []byte("ada"))).Value)
	fmt.Println("served by:", must(group.Read(ctx)).By)
	check(node.Close(ctx))
	// Output:
	// 1
	// served by: lease
}

// A second node joins: the new node knows one member, and the group is told id and
// address.
func ExampleGroup_AddVoter() {
	dir, remove := temporary()
	defer remove()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	first := must(weft.Open(weft.Options{
		Cluster: 7, ID: 1, Dir: filepath.Join(dir, "1"), Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
	}))
	group := must(weft.Replicate(first, 1, newVotes))
	must(group.Propose(ctx, []byte("ada")))

	second := must(weft.Open(weft.Options{
		Cluster: 7, ID: 2, Dir: filepath.Join(dir, "2"), Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
		Join: true, Peers: map[uint64]string{1: first.Address()},
	}))
	joined := must(weft.Replicate(second, 1, newVotes))
	check(group.AddVoter(ctx, 2, second.Address()))
	for _, m := range group.Members() {
		fmt.Println("member", m.ID, "votes:", m.Voter)
	}
	check(joined.View(ctx, func(v votes) { fmt.Println(v) }))

	check(group.Remove(ctx, 2))
	fmt.Println(group.AddVoter(ctx, 2, second.Address()) != nil, "as an id is used once")
	check(second.Close(ctx))
	check(first.Close(ctx))
	// Output:
	// member 1 votes: true
	// member 2 votes: true
	// map[ada:1]
	// true as an id is used once
}

// compared is a state whose replicas are compared.
type compared struct{ votes }

// Digest writes the same bytes for equal states: encoding/json writes maps in the order of keys.
func (c *compared) Digest(w io.Writer) error { return c.Write(w) }

// Replicas are compared by the results of commands, and by their states if these have a method
// Digest.
func ExampleCompareEvery() {
	dir, remove := temporary()
	defer remove()
	ctx := context.Background()
	node := must(weft.Open(weft.Options{Cluster: 7, ID: 1, Dir: dir, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond}))
	group := must(weft.Replicate(node, 1, func() *compared { return &compared{votes{}} }, weft.CompareEvery(10*time.Second)))
	fmt.Println(must(group.Propose(ctx, []byte("ada"))).Value)
	fmt.Println("differs:", group.State().Differs)
	check(node.Close(ctx))
	// Output:
	// 1
	// differs: <nil>
}

// A client whose call ended in doubt proposes the same bytes again, at any node: the command takes
// effect once.
func ExampleSessions() {
	dir, remove := temporary()
	defer remove()
	ctx := context.Background()
	options := weft.Options{Cluster: 7, ID: 1, Dir: dir, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond}
	node := must(weft.Open(options))
	group := must(weft.Replicate(node, 1, newVotes, weft.Sessions(session.DefaultLimits)))
	id := must(group.Propose(ctx, state.OpenSession())).Value.(session.ID)
	first := state.InSession(id, 1, 0, []byte("ada")) // number 1; the client has no results yet
	fmt.Println(must(group.Propose(ctx, first)).Value)
	check(node.Close(ctx))

	node = must(weft.Open(options))
	group = must(weft.Replicate(node, 1, newVotes, weft.Sessions(session.DefaultLimits)))
	fmt.Println(must(group.Propose(ctx, first)).Value)
	fmt.Println(must(group.Propose(ctx, state.InSession(id, 2, 1, []byte("ada")))).Value)
	check(node.Close(ctx))
	// Output:
	// 1
	// 1
	// 2
}

// A caller waits until the state is as wanted, whoever brings that about, and at whatever node.
func ExampleReplicated_Wait() {
	dir, remove := temporary()
	defer remove()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	node := must(weft.Open(weft.Options{Cluster: 7, ID: 1, Dir: dir, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond}))
	group := must(weft.Replicate(node, 1, newVotes))
	go func() {
		for range 3 {
			must(group.Propose(ctx, []byte("ada")))
		}
	}()
	check(group.Wait(ctx, func(v votes) bool { return v["ada"] >= 3 }))
	check(group.View(ctx, func(v votes) { fmt.Println(v) }))
	check(node.Close(ctx))
	// Output: map[ada:3]
}

// A backup of one cluster begins another one.
func ExampleRestore() {
	dir, remove := temporary()
	defer remove()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	node := must(weft.Open(weft.Options{
		Cluster: 7, ID: 1, Dir: filepath.Join(dir, "old"), Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
	}))
	group := must(weft.Replicate(node, 1, newVotes))
	must(group.Propose(ctx, []byte("ada")))
	var backup bytes.Buffer // a file, say
	must(group.Snapshot(ctx, &backup))
	check(node.Close(ctx))

	options := weft.Options{
		Cluster: 8, ID: 1, Dir: filepath.Join(dir, "new"), Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
	}
	empty := must(weft.OpenMemory(options, 1, newVotes))
	info := must(weft.Restore(options, 1, empty, &backup))
	check(empty.Close())
	fmt.Println("from cluster", info.Cluster)

	node = must(weft.Open(options))
	group = must(weft.Replicate(node, 1, newVotes))
	fmt.Println(must(group.Propose(ctx, []byte("ada"))).Value)
	check(node.Close(ctx))
	// Output:
	// from cluster 7
	// 2
}

// Of two members one is lost for good. The other goes on alone.
func ExampleRecover() {
	dir, remove := temporary()
	defer remove()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	options := weft.Options{Cluster: 7, ID: 1, Dir: filepath.Join(dir, "1"), Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond}
	first := must(weft.Open(options))
	group := must(weft.Replicate(first, 1, newVotes))
	second := must(weft.Open(weft.Options{
		Cluster: 7, ID: 2, Dir: filepath.Join(dir, "2"), Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
		Join: true, Peers: map[uint64]string{1: first.Address()},
	}))
	must(weft.Replicate(second, 1, newVotes))
	check(group.AddVoter(ctx, 2, second.Address()))
	must(group.Propose(ctx, []byte("ada")))
	check(first.Close(ctx))

	survivor := must(weft.OpenMemory(options, 1, newVotes))
	_, err := weft.Recover(ctx, options, 1, survivor, []uint64{2})
	fmt.Println("refused while node 2 answers:", err != nil)
	check(second.Close(ctx)) // and its disk is gone, say
	must(weft.Recover(ctx, options, 1, survivor, []uint64{2}))
	check(survivor.Close())

	first = must(weft.Open(options))
	group = must(weft.Replicate(first, 1, newVotes))
	check(group.View(ctx, func(v votes) { fmt.Println(v, "members:", len(group.Members())) }))
	check(first.Close(ctx))
	// Output:
	// refused while node 2 answers: true
	// map[ada:1] members: 1
}

// Watch tells of leaders, members and roles.
func ExampleGroup_Watch() {
	dir, remove := temporary()
	defer remove()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	node := must(weft.Open(weft.Options{Cluster: 7, ID: 1, Dir: dir, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond}))
	group := must(weft.Replicate(node, 1, newVotes))
	for s := range must(group.Watch(ctx)) {
		if s.Role == weft.Leader && s.CaughtUp {
			fmt.Println("node", s.Leader, "leads, and may take commands")
			break
		}
	}
	check(node.Close(ctx))
	// Output: node 1 leads, and may take commands
}
