// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProcessesWaitForTheMachinesProcessors has three processes on two processors, each with a task.
func TestProcessesWaitForTheMachinesProcessors(t *testing.T) {
	var a Agenda
	share := &Processors{Free: 2}
	var ends []time.Duration
	for range 3 {
		c := &CPU{After: a.After, Share: share}
		for range 2 {
			c.Add(func() (time.Duration, func()) { return time.Second, func() { ends = append(ends, a.Now()) } })
		}
	}
	for a.Step(time.Minute) {
	}
	require.Equal(t, []time.Duration{time.Second, time.Second, 2 * time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}, ends)
	require.Equal(t, 2, share.Free)
}

// TestProcessorWakesOnceForWorkThatWaits has work come to a processor that had work, and to one that had none.
func TestProcessorWakesOnceForWorkThatWaits(t *testing.T) {
	var a Agenda
	c := &CPU{After: a.After, Wake: time.Second}
	add := func() { c.Add(func() (time.Duration, func()) { return time.Second, func() {} }) }
	add() // the first work of all: the process begins awake
	add()
	a.After(10*time.Second, func() { add(); add() })
	a.After(20*time.Second, add)
	for a.Step(time.Minute) {
	}
	require.Equal(t, 7*time.Second, c.Spent, "five tasks, and two times of waking")
}
