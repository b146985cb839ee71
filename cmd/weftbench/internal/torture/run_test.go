// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"math/rand/v2"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/internal/lab"
)

// newTestRun returns a run on nodes that have no processes.
func newTestRun(nodes int) *run {
	c := &cluster.Cluster{}
	for i := range nodes {
		c.Nodes = append(c.Nodes, &cluster.Node{Node: &lab.Node{ID: i + 1}})
	}
	return &run{rng: rand.New(rand.NewPCG(1, 1)), cluster: c}
}
