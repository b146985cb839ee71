// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package state has adapters that make a user's state a [rawnode.StateMachine], with
// all that its contract asks for.
//
// [Memory] takes a state in memory, with three methods: a command is applied, the
// state is written, and read back. The adapter keeps checkpoints of the state in
// files; the Raft log brings a state from its last checkpoint to where it was. Package
// pebblestate (state/pebble, a module of its own) has a state in a Pebble database.
//
//	m, err := state.OpenMemory(newCounter, state.Options{Dir: "data/state"})
//	host, err := rawnode.New(rawnode.Config{StateMachine: m, ...})
//	result, err := host.Propose(ctx, command)
//	_, err = host.Read(ctx)
//	m.View(func(c *counter) { fmt.Println(c.n) })
//
// Package rawnodetest has what tests of a service need, and a conformance suite for
// state machines without an adapter.
package state
