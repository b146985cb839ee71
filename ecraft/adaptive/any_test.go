// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/internal/rounds"
)

// TestPolicyBearsAnyOrderOfCalls makes calls in any order, with unknown members, times that stand
// still, and answers to messages that were never sent. After any calls, assignments are enough,
// queues stay within the bytes in flight, and no value is NaN.
func TestPolicyBearsAnyOrderOfCalls(t *testing.T) {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
		require.NoError(t, f.Value.Set("1")) // the same each time, unless another is asked for
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		a := New(Options{})
		now := time.Duration(0)
		id := rapid.Uint64Range(2, uint64(n)+1)
		index := rapid.Uint64Range(0, 600)
		bytes := rapid.IntRange(0, 8<<20)
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				now += time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "ns"))
			},
			"join":     func(t *rapid.T) { a.Joined(id.Draw(t, "id"), rapid.Bool().Draw(t, "voter"), now) },
			"leave":    func(t *rapid.T) { a.Left(id.Draw(t, "id")) },
			"reset":    func(*rapid.T) { a.Reset(now) },
			"proposed": func(t *rapid.T) { a.Proposed(index.Draw(t, "index"), bytes.Draw(t, "bytes"), now) },
			"sent": func(t *rapid.T) {
				a.Sent(id.Draw(t, "id"), index.Draw(t, "index"), bytes.Draw(t, "bytes"), now)
			},
			"acked": func(t *rapid.T) {
				held := time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "held"))
				a.Acked(id.Draw(t, "id"), index.Draw(t, "index"), held, now)
			},
			"committed": func(t *rapid.T) { a.Committed(index.Draw(t, "index")) },
			"beat":      func(t *rapid.T) { a.HeartbeatSent(id.Draw(t, "id"), now) },
			"beaten":    func(t *rapid.T) { a.HeartbeatAnswered(id.Draw(t, "id"), now) },
			"hint": func(t *rapid.T) {
				a.QueueHint(id.Draw(t, "id"), rapid.IntRange(-1, 1<<30).Draw(t, "queued"), rapid.Float64Range(0, 1e12).Draw(t, "rate"), now)
			},
			"": func(t *rapid.T) {
				r := rounds.Of(n, bytes.Draw(t, "bytes"), uint(rapid.IntRange(0, 1<<n).Draw(t, "dead")))
				r.Now = now
				units := make([]int, n-1)
				plan := a.Assign(r, units)
				require.True(t, ecraft.Enough(r, units), "%+v: %v", r, units)
				require.GreaterOrEqual(t, plan.Predicted, time.Duration(0))
				for _, l := range a.links {
					require.False(t, l.queue < 0 || l.queue > l.flying, "queue %v of %v", l.queue, l.flying)
					require.False(t, l.cost != l.cost || l.cost <= 0 || l.base != l.base, "cost %v base %v", l.cost, l.base)
				}
			},
		})
	})
}

// joined returns a policy that knows the followers of a round.
func joined(r *ecraft.Round) *Policy {
	a := New(Options{})
	for _, f := range r.Followers {
		a.Joined(f.ID, true, 0)
	}
	return a
}
