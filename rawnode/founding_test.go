// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
)

// Hosts that start with different first members do not form a group, and both sides report both
// lists.
func TestHostsWithDifferingFirstMembers(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core replica.NewCore) {
		members := group(t, core, 0, nil)
		addresses, listeners := map[uint64]string{}, map[uint64]net.Listener{}
		for id := uint64(1); id <= 5; id++ {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			listeners[id], addresses[id] = l, l.Addr().String()
		}
		for id, l := range listeners {
			peers := []uint64{1, 2, 3, 4, 5}
			if id > 3 {
				peers = []uint64{1, 4, 5}
			}
			m := &member{t: t, id: id, core: core, addresses: addresses, peers: peers, fs: vfs.NewCrashableMem(), sm: newCounts(10)}
			m.start(l)
			members[id] = m
		}
		// A side that stopped early may not have told its peers, and then needs no report from
		// them.
		stopped := func(ids ...uint64) bool {
			return !slices.ContainsFunc(ids, func(id uint64) bool { return members[id].host.Err() == nil })
		}
		knows := func(ids ...uint64) bool {
			return slices.ContainsFunc(ids, func(id uint64) bool { return members[id].host.Status().Counters.Strangers > 0 })
		}
		require.Eventually(t, func() bool {
			return stopped(1, 2, 3) || stopped(4, 5) || knows(1, 2, 3) && knows(4, 5)
		}, time.Minute, hostTick)
		for _, m := range members {
			if err := m.host.Err(); err != nil { // nil for a host that was late, and whose log had begun
				require.ErrorIs(t, err, rawnode.ErrFirstMembers)
				require.ErrorContains(t, err, "[1 2 3 4 5]")
				require.ErrorContains(t, err, "[1 4 5]")
			}
		}
	})
}
