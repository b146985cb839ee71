// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
	"github.com/weftraft/weft/rawnode/state"
)

func openWords(d rawnodetest.Dir) (rawnode.StateMachine, error) {
	return state.OpenMemory(newWords, state.Options{FS: d.FS, Dir: d.Path, Inline: true})
}

func readWords(sm rawnode.StateMachine) (text string, err error) {
	sm.(*state.Memory[words]).View(func(s words) { text = fmt.Sprintf("%#v", s) })
	return text, nil
}

func TestStateKeepsTheContract(t *testing.T) {
	rawnodetest.TestStateMachine(t, rawnodetest.StateMachineFactory{
		Open:    openWords,
		Command: func(r *rand.Rand) []byte { return fmt.Appendf(nil, "word %d", r.IntN(12)) },
		Read:    readWords,
	})
}

func TestWordsOutliveTheLeader(t *testing.T) {
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{
		Seed: 1, StateMachine: func(m rawnodetest.Member) (rawnode.StateMachine, error) { return openWords(m.Dir) },
	})
	leader := c.WaitLeader()
	c.MustPropose(leader, []byte("hello"))
	c.Crash(leader, false)
	c.MustPropose(leader%3+1, []byte("hello"))
	c.Start(leader)
	c.Agree(time.Minute, readWords)
}
