// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package rounds makes rounds for tests of policies.
package rounds

import "github.com/weftraft/weft/ecraft"

// Of is a round of n servers, where the followers in dead are not healthy.
func Of(n int, size int, dead uint) *ecraft.Round {
	r := &ecraft.Round{Size: size, Voters: n, Layout: ecraft.NewLayout(n, n-1)}
	for i := range n - 1 {
		r.Followers = append(r.Followers, ecraft.Member{ID: uint64(i) + 2, Healthy: dead>>i&1 == 0})
	}
	return r
}
