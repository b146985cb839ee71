// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// add is a command: it adds N to a counter.
type add struct {
	Name string
	N    int
}

// counters is the state machine.
type counters map[string]int

func newCounters() counters { return counters{} }

// Apply changes the state by one command, and returns its result. All replicas must come to
// the same.
func (c counters) Apply(command []byte) any {
	var a add
	if err := json.Unmarshal(command, &a); err != nil {
		return fmt.Errorf("not a command: %w", err)
	}
	c[a.Name] += a.N
	return c[a.Name]
}

// Write writes the state, for checkpoints and for other nodes.
func (c counters) Write(w io.Writer) error { return json.NewEncoder(w).Encode(c) }

// Read fills an empty state with what Write has written.
func (c counters) Read(r io.Reader) error { return json.NewDecoder(r).Decode(&c) }
