// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"fmt"

	"github.com/weftraft/weft/raft"
)

// One field of the configuration turns coded replication on.
func ExampleCoding() {
	c := &raft.Config{
		ID:              1,
		ElectionTick:    10,
		HeartbeatTick:   1,
		Storage:         raft.NewMemoryStorage(),
		MaxSizePerMsg:   1 << 20,
		MaxInflightMsgs: 256,
		Coding:          &raft.Coding{Threshold: 1024}, // bytes; smaller payloads travel whole
	}
	_, err := raft.NewRawNode(c)
	fmt.Println("error:", err)

	c.Coding = &raft.Coding{Threshold: -1, ClearPrefix: 1 << 20}
	_, err = raft.NewRawNode(c)
	fmt.Println(err)
	// Output:
	// error: <nil>
	// raft: Config.Coding.Threshold is -1 bytes; it must be 0 (meaning 4096) or more
	// raft: Config.Coding.ClearPrefix is 1048576 bytes; it must lie in [0, 4096]
}
