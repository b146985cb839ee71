// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"
	"fmt"

	"github.com/weftraft/weft/rawnode"
)

// history holds the steps of the first replica that applied each index; all other replicas must
// apply the same commands, with the same results.
type history struct {
	steps []applied
	ends  map[uint64]int // by log index at which a batch ended: the number of commands up to there
}

type applied struct {
	node    uint64
	command []byte
	result  any
}

// took compares and notes a batch that a node has applied to its state of index from.
func (h *history) took(node, from uint64, b rawnode.Batch, results []any) error {
	if h.ends == nil {
		h.ends = map[uint64]int{0: 0}
	}
	at, known := h.ends[from]
	if !known {
		return fmt.Errorf("node %d applies a batch behind index %d, where no batch of any node ended", node, from)
	}
	if len(results) != len(b.Commands) {
		return fmt.Errorf("node %d: %d results of %d commands up to index %d, want one for each", node, len(results), len(b.Commands), b.Index)
	}
	for i, c := range b.Commands {
		if at == len(h.steps) {
			h.steps = append(h.steps, applied{node, c, results[i]})
		}
		first := h.steps[at]
		if !bytes.Equal(first.command, c) {
			return fmt.Errorf("command %d is %q at node %d, and %q at node %d", at+1, c, node, first.command, first.node)
		}
		if !sameResult(first.result, results[i]) {
			return fmt.Errorf("command %d (%q) returns %v at node %d, and %v at node %d: a state machine must be a function of its commands", at+1, c, results[i], node, first.result, first.node)
		}
		at++
	}
	if before, ok := h.ends[b.Index]; ok && before != at {
		return fmt.Errorf("node %d has applied %d commands up to index %d, another node %d", node, at, b.Index, before)
	}
	h.ends[b.Index] = at
	return nil
}
