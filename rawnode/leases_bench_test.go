// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// BenchmarkHostReadPolicies is BenchmarkHostRead at a follower, for each read policy.
func BenchmarkHostReadPolicies(b *testing.B) {
	for _, nodes := range []uint64{3, 5} {
		for _, policy := range []string{"read-index", "responder"} {
			for _, clients := range []int{1, 16} {
				b.Run(fmt.Sprintf("nodes=%d/by=%s/clients=%d", nodes, policy, clients), func(b *testing.B) {
					hosts := benchHosts(b, rawnode.Weft, nodes, false, func(c *rawnode.Config) {
						if policy == "responder" {
							c.Replica.Leases = &raft.Leases{Wanted: []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}}
						}
					})
					h := benchLeader(b, hosts)
					h = hosts[h.Status().ID%nodes]
					if policy == "responder" {
						require.Eventually(b, func() bool {
							s, err := h.LeaseStatus(context.Background())
							return err == nil && s.Stable
						}, time.Minute, time.Millisecond)
					}
					benchClients(b, clients, func() error {
						_, err := h.Read(context.Background())
						return err
					})
				})
			}
		}
	}
}
