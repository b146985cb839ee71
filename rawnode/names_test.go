// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// A leader gives names if its host is to, to nodes that have announced that they know names; their
// hosts need no setting.
func TestLeaderGivesNamesIfItIsToAndFollowersKnowThem(t *testing.T) {
	const takesNone = wire.AllKinds &^ (1 << wire.KindNamed)
	for _, c := range []struct {
		what  string
		on    bool
		takes wire.Kinds
		named bool
	}{
		{"on", true, wire.AllKinds, true},
		{"off", false, wire.AllKinds, false},
		{"on, beside nodes of an earlier version", true, takesNone, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			inBubble(t, 3, func(cfg *rawnode.Config) { cfg.Names = c.on }, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
				named := 0
				net.mu.Lock()
				net.takes = c.takes
				net.lose = func(m wire.Message) bool {
					if m.Kind() == wire.KindNamed {
						named++
					}
					return false
				}
				net.mu.Unlock()
				for i := range 30 {
					command := append(fmt.Append(nil, i), bytes.Repeat([]byte("x"), 1000)...)
					_, err := hosts[uint64(1+i%3)].Propose(within(time.Minute), command)
					require.NoError(t, err)
				}
				net.mu.Lock()
				defer net.mu.Unlock()
				require.Equal(t, c.named, named >= 10, "%d messages with names", named)
				require.Equal(t, c.named, named > 0, "%d messages with names", named)
			})
		})
	}
}

// Relays are on where nodes have zones, and among nodes that know them.
func TestRelaysServeNodesWithZonesThatKnowThem(t *testing.T) {
	const knowsNone = wire.AllKinds &^ (1 << wire.KindWant)
	for _, c := range []struct {
		what  string
		zones map[uint64]string
		takes wire.Kinds
		wants bool
	}{
		{"two zones", map[uint64]string{1: "a", 2: "b", 3: "b"}, wire.AllKinds, true},
		{"no zones", nil, wire.AllKinds, false},
		{"nodes of an earlier version", map[uint64]string{1: "a", 2: "b", 3: "b"}, knowsNone, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			wants := 0
			inBubble(t, 3, func(cfg *rawnode.Config) {
				net := cfg.Transport.(*plug).hub
				net.zones, net.takes = c.zones, c.takes
				net.lose = func(m wire.Message) bool {
					wants += bit(m.Kind() == wire.KindWant)
					return false
				}
			}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
				propose := func(i int) {
					_, err := hosts[2].Propose(within(time.Minute), append(fmt.Append(nil, i), bytes.Repeat([]byte("x"), 1000)...))
					require.NoError(t, err)
				}
				propose(0)
				require.NoError(t, hosts[2].TransferLeader(within(time.Minute), 1)) // alone in its zone
				for i := range 10 {
					time.Sleep(bubbleTick) // a member that was not there yet has heard of the leader by the end
					propose(1 + i)
				}
				net.mu.Lock()
				defer net.mu.Unlock()
				require.Equal(t, c.wants, wants > 0, "%d messages want data of a relay", wants)
			})
		})
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
