// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func failConfig(t *testing.T, voters ...int) FailConfig {
	return FailConfig{
		Voters: voters, Trip: 20 * time.Millisecond, Lease: time.Second, Fail: 500 * time.Millisecond,
		Seeds: 1, First: 1, Progress: t.Output(),
	}
}

// Whichever way a responder fails, writes are held up once and within the bound, and reads at the
// other nodes go on.
func TestFailedResponderHoldsWritesUpOnce(t *testing.T) {
	cfg := failConfig(t, 3, 5, 7)
	rows, err := cfg.Failing(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 3*2*7)
	for _, r := range rows {
		what := r.Policy + ", " + r.Failure
		t.Logf("N=%d, %s: writes are held up %d times, %v at most", r.Voters, what, r.Holds, r.Held)
		require.LessOrEqual(t, r.Held, r.Bound, "N=%d, %s", r.Voters, what)
		require.Equal(t, 1, r.Holds, "N=%d, %s: how often writes are held up", r.Voters, what)
		require.Zero(t, r.Late, "N=%d, %s: late reads of keys that nobody writes", r.Voters, what)
		require.Positive(t, r.WrittenLate, "N=%d, %s: nothing was held up that can be seen", r.Voters, what)
		require.Zero(t, r.Wrong, "N=%d, %s", r.Voters, what)
	}
}

// The measurement finds a leader that waits too long for a responder.
func TestResponderThatIsNotRemovedShows(t *testing.T) {
	cfg := failConfig(t, 3)
	cfg.lax = 4 * time.Second
	for _, f := range failures(cfg.Fail) {
		if f.name != "dead" && f.name != "stuck disk" {
			continue
		}
		row := Failing{Voters: 3, Bound: cfg.Fail + cfg.Lease + 2*cfg.Trip}
		require.NoError(t, cfg.run(&row, policy("roster"), f, 1))
		require.Greater(t, row.Held, row.Bound, f.name)
	}
}
