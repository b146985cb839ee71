// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNewLeaderHasWhatGossipBroughtBeforeTheVotes(t *testing.T) {
	took := func(side Side, entries int) time.Duration {
		d, err := Unapplied{Voters: 5, Entries: entries, Size: 256 << 10, Seed: 1}.Run(side)
		require.NoError(t, err)
		require.Positive(t, d)
		return d
	}
	require.InEpsilon(t, took(Ours(), 1), took(Ours(), 50), 0.01)
	require.Less(t, took(Ours(), 50), took(FullCopies(), 50), "a follower lacks the last entry whole")
}
