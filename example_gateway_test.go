// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/rawnode/state"
)

// asked is a state that answers queries.
type asked struct{ votes }

func newAsked() asked { return asked{newVotes()} }

// Query returns how many votes a candidate has.
func (a asked) Query(candidate []byte) ([]byte, error) {
	return strconv.AppendInt(nil, int64(a.votes[string(candidate)]), 10), nil
}

// A gateway proposes and asks, and has no state.
func ExampleGroup_Query() {
	dir, remove := temporary()
	defer remove()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	node := must(weft.Open(weft.Options{
		Cluster: 7, ID: 1, Dir: filepath.Join(dir, "1"), Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
	}))
	must(weft.Replicate(node, 1, newAsked))

	gateway := must(weft.Open(weft.Options{
		Gateway: true, Cluster: 7, ID: 101, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
		Peers: map[uint64]string{1: node.Address()},
	}))
	group := must(gateway.Group(1, nil))
	result := must(group.Propose(ctx, []byte("ada")))
	fmt.Println(must(state.DecodeResult(result.Value.([]byte))))
	fmt.Println(string(must(group.Query(ctx, []byte("ada")))))

	check(gateway.Close(ctx))
	check(node.Close(ctx))
	// Output:
	// 1
	// 1
}
