// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package partitions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func small(clients int) Plan {
	return Plan{Machines: 5, Rate: 125e6, Delay: 4 * time.Millisecond, Clients: clients, Warm: 300 * time.Millisecond, Time: 500 * time.Millisecond, Seed: 1}
}

func TestPrint(t *testing.T) {
	for _, clients := range []int{10, 200} {
		for _, s := range Sides() {
			begin := time.Now()
			o, err := s.Run(t.Context(), small(clients))
			require.NoError(t, err, s.Name)
			t.Logf("%d %s: %+v (%v)", clients, s.Name, o, time.Since(begin))
		}
	}
}
