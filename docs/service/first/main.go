// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command first is the first program of docs/service.md: one node, one group, one command.
package main

import (
	"context"
	"fmt"

	"github.com/weftraft/weft"
)

func main() {
	node := must(weft.Open(weft.Options{Cluster: 7, ID: 1, Dir: "data", Listen: "127.0.0.1:7001"}))
	words := must(weft.Replicate(node, 1, newWords))
	result := must(words.Propose(context.Background(), []byte("hello")))
	fmt.Println("hello:", result.Value)
	check(node.Close(context.Background()))
}
