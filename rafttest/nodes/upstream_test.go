// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	crand "crypto/rand"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

var upstreamSeeds = flag.Uint64("upstreamseeds", 40, "how many seeds TestUpstream runs")

// TestUpstream runs nodes that drive upstream's library: what is around a core
// must hold for either. One seed at a time: that library draws its election
// timeouts from crypto/rand.Reader, which belongs to the process.
func TestUpstream(t *testing.T) {
	for seed := uint64(1); seed <= seeds.InShort(*upstreamSeeds, 20); seed++ {
		r := runUpstream(t, seed)
		if r.Err != nil {
			t.Fatalf("with upstream's core, seed %d: %v\n%s", seed, r.Err, r.Story)
		}
		if seed <= 5 {
			require.Equal(t, r, runUpstream(t, seed), "the same story")
		}
	}
}

func runUpstream(t *testing.T, seed uint64) result {
	t.Helper()
	old := crand.Reader
	defer func() { crand.Reader = old }()
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	crand.Reader = rand.NewChaCha8(key)
	return run(seed, options{Core: replica.Upstream})
}
