// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCoreOutage checks that real cores leave out a follower that has been silent for longer than
// ever before, and raise the entries that wait for this follower.
func TestCoreOutage(t *testing.T) {
	o := Options{Seed: 1, Cores: true}
	out, err := o.outageOnce(named(5, "reg1g"), 64<<10, 0, ours())
	require.NoError(t, err)
	require.Less(t, out.Stall, 30*ms, "%+v", out)
	require.Less(t, out.Extra, 0.01, "%+v", out)
	require.Positive(t, out.Riders, "%+v", out)
}

// TestCoreRaisesALargePutWhenAFollowerFails checks that the put that is under way when a follower
// fails takes little longer than its usual time and that of the riders, and the next put no longer.
func TestCoreRaisesALargePutWhenAFollowerFails(t *testing.T) {
	s := Setting{Network: Uniform(7, gbit, 100*us, 20*us), Sizes: []int{2 << 20}, Clients: 1, Warm: 300 * ms, Time: 900 * ms}
	for s.Seed = 1; s.Seed <= 2; s.Seed++ {
		for dead := range 2 {
			s.At = []Change{{At: time.Second, Do: func(_ *Setting, c Cluster) { c.Kill(5 * dead) }}}
			out, err := s.Run(Weft(), true)
			require.NoError(t, err)
			require.Less(t, out.Worst, 40*ms, "seed %d, follower %d: the usual time is 25 ms, the riders take 7 ms", s.Seed, 5*dead)
			require.Less(t, out.Extra, int64(2<<20/2), "seed %d, follower %d: one put was raised, by a twelfth for each of five", s.Seed, 5*dead)
		}
	}
}

// TestCoreIsLikeModel checks that the small model of the protocol predicts the bytes and times of
// real cores.
func TestCoreIsLikeModel(t *testing.T) {
	scale := scale{Time: time.Second, Min: 300, Max: 500}
	mix, n := one("64KB", 64<<10), 5
	for _, net := range networks(n) {
		if net.Name != "lan1g" && net.Name != "wan200" && net.Name != "fsync" {
			continue
		}
		for _, load := range []load{{Name: "5 clients", Clients: 5}, {Name: "70%", Share: 0.7}} {
			for _, side := range []Side{ours(), fixedLevel(1), fixedLevel(3)} {
				name := net.Name + ", " + load.Name + ", " + side.Name
				want := drive(newModel(net, side, 1), &net, mix, load, scale, 1)
				k, err := newCore(net, side, 1)
				require.NoError(t, err, name)
				got := drive(k, &net, mix, load, scale, 1)
				require.NoError(t, k.c.Err(), name)
				within := 0.05
				if side.Name == "ours" {
					within = 0.25 // ours learns from other messages
				}
				require.InEpsilon(t, want.mean, got.mean, within, name)
				require.InEpsilon(t, want.perSecond, got.perSecond, within, name)
				require.InEpsilon(t, want.usage.Egress, got.usage.Egress, within, name)
			}
		}
	}
}
