// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weftraft/weft"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// vote counts a vote for the candidate that the command names. A name that is no key is a result and
// not an error, which would stop every replica at this command.
func vote(tx *pebblestate.Tx, name []byte) (any, error) {
	if len(name) > pebblestate.MaxKeyBytes {
		return "the name is too long", nil
	}
	n, err := votesOf(tx, name)
	if err != nil {
		return nil, err
	}
	return n + 1, tx.Set(name, strconv.AppendInt(nil, n+1, 10))
}

func votesOf(r pebblestate.Reader, name []byte) (int64, error) {
	b, found, err := r.Get(name)
	if err != nil || !found {
		return 0, err
	}
	return strconv.ParseInt(string(b), 10, 64)
}

// A service on package weft, one node of it. Restore and Recover of package weft take the same state, while no
// node is open.
func Example_service() {
	dir, err := os.MkdirTemp("", "weft-")
	check(err)
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()

	db := must(pebblestate.Open(pebblestate.Options{Dir: filepath.Join(dir, "votes")}))
	votes := must(db.Group(1, vote, pebblestate.GroupOptions{}))
	node := must(weft.Open(weft.Options{Cluster: 7, ID: 1, Dir: dir, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond}))
	group := must(node.Group(1, votes))
	fmt.Println(must(group.Propose(ctx, []byte("ada"))).Value)

	must(group.Read(ctx)) // from here on the state has all that was acknowledged before
	check(votes.View(func(r pebblestate.Reader) error {
		n, err := votesOf(r, []byte("ada"))
		fmt.Println("ada:", n)
		return err
	}))
	check(node.Close(ctx)) // first the node, then its states
	check(db.Close())
	// Output:
	// 1
	// ada: 1
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
