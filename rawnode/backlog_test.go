// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// hinted is the default policy, and notes the members of its queue hints.
type hinted struct {
	*adaptive.Policy
	mu   sync.Mutex
	told map[uint64]int
}

func (h *hinted) QueueHint(to uint64, bytes int, rate float64, now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told[to]++
	h.Policy.QueueHint(to, bytes, rate, now)
}

// A leader's policy receives the backlog of the transport for each follower.
func TestPolicyHearsOfBacklogs(t *testing.T) {
	policies := map[uint64]*hinted{}
	members := group(t, rawnode.Weft, 3, func(cfg *rawnode.Config) {
		p := &hinted{Policy: adaptive.New(adaptive.Options{}), told: map[uint64]int{}}
		policies[cfg.Replica.ID] = p
		cfg.Replica.Coding = &raft.Coding{Policy: p}
	})
	told := func(of, to uint64) int {
		p := policies[of]
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.told[to]
	}
	heard := false
	for i := 0; i < 1000 && !heard; i++ {
		must(t, members[1].host, strings.Repeat("x", raft.DefaultCodingThreshold))
		lead := leader(t, members[1])
		heard = true
		for id := range members {
			heard = heard && (id == lead || told(lead, id) > 0)
		}
	}
	require.True(t, heard)
}
