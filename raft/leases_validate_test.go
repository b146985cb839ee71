// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"crypto/rand"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/raft"
)

// countedReader counts how often random numbers are drawn.
type countedReader struct {
	io.Reader
	reads int
}

func (r *countedReader) Read(b []byte) (int, error) {
	r.reads++
	return r.Reader.Read(b)
}

// A simulator that runs groups side by side gives each group its own random numbers. If Validate
// took a number, then a group would draw what belongs to another one.
func TestValidateDrawsNoRandomNumber(t *testing.T) {
	counted := &countedReader{Reader: rand.Reader}
	defer func(before io.Reader) { rand.Reader = before }(rand.Reader)
	rand.Reader = counted
	c := &raft.Config{
		ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: raft.NewMemoryStorage(), MaxInflightMsgs: 1, PreVote: true, CheckQuorum: true,
		Clock: new(aClock), Leases: &raft.Leases{Tick: 10 * time.Millisecond, DriftPPM: 1000, Resolution: time.Millisecond},
		Rand: fixedDraws{},
	}
	require.NoError(t, c.Validate())
	require.Zero(t, counted.reads)
	_, err := raft.NewRawNode(c)
	require.NoError(t, err)
	require.NotZero(t, counted.reads, "a node draws its Boot as it starts")
}

// fixedDraws are no random numbers.
type fixedDraws struct{}

func (fixedDraws) IntN(int) int { return 0 }
