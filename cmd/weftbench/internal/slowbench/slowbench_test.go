// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package slowbench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostbench"
)

func TestFaultsOfFollowersStrikeOneCluster(t *testing.T) {
	cfg := Config{Nodes: []int{3, 5}, Faults: []string{"hang", "cpu", "link"}, Who: Whom}
	var sizes []int
	for _, session := range cfg.sessions(Side{}) {
		sizes = append(sizes, len(session))
		for _, x := range session {
			require.Equal(t, session[0].Who, x.Who)
			require.Equal(t, session[0].Nodes, x.Nodes)
		}
	}
	require.Equal(t, []int{1, 1, 1, 3, 1, 1, 1, 3, 3}, sizes, "leaders one by one, followers together, a minority of five only")
	for _, session := range cfg.sessions(Side{Side: hostbench.Side{Responders: true}}) {
		require.Len(t, session, 1, "with leases")
	}
	rows := 0
	for _, session := range cfg.sessions(Side{Etcd: "etcd"}) {
		for _, x := range session {
			rows++
			require.NotEqual(t, "hang", x.Fault)
		}
	}
	require.Equal(t, 10, rows)
}
