// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
	"github.com/weftraft/weft/rawnode/state"
)

func TestStateKeepsTheContract(t *testing.T) {
	rawnodetest.TestStateMachine(t, rawnodetest.StateMachineFactory{
		Open: func(d rawnodetest.Dir) (rawnode.StateMachine, error) {
			return state.OpenMemory(newSpoken, state.Options{FS: d.FS, Dir: d.Path})
		},
		Command: func(r *rand.Rand) []byte { return fmt.Appendf(nil, "word %d", r.IntN(12)) },
		Read: func(sm rawnode.StateMachine) (text string, err error) {
			sm.(*state.Memory[spoken]).View(func(s spoken) { text = fmt.Sprintf("%#v", s) })
			return text, nil
		},
	})
}
