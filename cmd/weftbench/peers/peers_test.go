// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain has the test's program be a node, when a cluster runs it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Each library, as processes: calls by gRPC and in the leader's process, and all that was acknowledged is applied at
// all nodes.
func TestSidesApplyWhatTheyAcknowledge(t *testing.T) {
	var all []string
	for _, s := range sides {
		all = append(all, s.name)
	}
	b := bench{
		Sides: all, Nodes: []int{3}, Outside: []string{"65536x4"}, Inside: []string{"1024x16"},
		Rounds: 2, Time: 200 * time.Millisecond, dir: t.TempDir(), progress: t.Output(),
	}
	r, err := b.run(t.Context())
	require.NoError(t, err)
	require.Len(t, r.Cells, 2*len(sides))
	for _, c := range r.Cells {
		require.Len(t, c.PerSecond, 2)
		require.Positive(t, c.PerSecond.Median())
		require.Positive(t, c.CPU.Median())
	}
	text := r.section().Text()
	for _, name := range all {
		require.Contains(t, text, name)
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	good := bench{Sides: []string{"weft"}, Nodes: []int{3}, Inside: []string{"16x1"}, Rounds: 1, Time: time.Second, dir: t.TempDir()}
	for flag, spoil := range map[string]func(*bench){
		"--sides":   func(b *bench) { b.Sides = []string{"paxos"} },
		"--nodes":   func(b *bench) { b.Nodes = []int{10} },
		"--rounds":  func(b *bench) { b.Rounds = 0 },
		"--inside":  func(b *bench) { b.Inside = []string{"16x0"} },
		"--outside": func(b *bench) { b.Outside = []string{"5000000x1"} },
	} {
		b := good
		spoil(&b)
		_, err := b.run(t.Context())
		require.ErrorContains(t, err, flag)
	}
}
