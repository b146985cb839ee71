// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// eachEarly runs f with each kind of group whose leader applies early. A coded entry of three members is
// committed with the leader's own copy, or when the leader has sent more units, so it waits for the disk.
func eachEarly(t *testing.T, bytes int, f func(t *testing.T, hosts map[uint64]*rawnode.Host, gates map[uint64]*gate, lead uint64)) {
	for name, adjust := range gated {
		if name == "upstream" || name == "coded" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			withGates(t, func(cfg *rawnode.Config) {
				adjust(cfg)
				cfg.Replica.MaxEarlyApplyBytes = bytes
			}, func(t *testing.T, hosts map[uint64]*rawnode.Host, gates map[uint64]*gate, old, _ uint64) {
				f(t, hosts, gates, old)
			})
		})
	}
}

// The disk of the leader hangs. Calls at the leader are answered all the same, until the leader is late
// and goes; reads see the writes.
func TestLeaderWhoseDiskHangsAnswersUntilItGoes(t *testing.T) {
	eachEarly(t, 0, func(t *testing.T, hosts map[uint64]*rawnode.Host, gates map[uint64]*gate, lead uint64) {
		h := hosts[lead]
		time.Sleep(2 * bubbleTick) // nothing waits for the disk
		gates[lead].set(true)
		began, answered := time.Now(), 0
		for time.Since(began) < electionTimeout-2*bubbleTick {
			at := time.Now()
			res, err := h.Propose(within(electionTimeout), fmt.Append(nil, "at the leader ", answered))
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(at), bubbleTick)
			index, err := h.Read(within(electionTimeout))
			require.NoError(t, err)
			require.GreaterOrEqual(t, index, res.Index)
			answered++
			time.Sleep(bubbleTick / 4)
		}
		require.Greater(t, answered, 20)
		require.Equal(t, lead, h.Status().Lead)
		require.NotZero(t, h.Status().Counters.EarlyEntries)
		time.Sleep(4 * bubbleTick)
		require.NotEqual(t, lead, h.Status().Lead, "late, so another leads")
		gates[lead].set(false)
		isBack(t, h)
	})
}

// At the bound, calls wait for the disk, and what is proposed elsewhere is applied there.
func TestEarlyAppliesEndAtTheirBound(t *testing.T) {
	const size, bound = 1000, 10_000
	for _, bytes := range []int{bound, -1} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			eachEarly(t, bytes, func(t *testing.T, hosts map[uint64]*rawnode.Host, gates map[uint64]*gate, lead uint64) {
				h := hosts[lead]
				time.Sleep(2 * bubbleTick)
				gates[lead].set(true)
				answered := 0
				for range 2 * bound / size {
					if _, err := h.Propose(within(bubbleTick/4), make([]byte, size)); err != nil {
						require.ErrorIs(t, err, rawnode.ErrUnknown)
						break
					}
					answered++
				}
				if bytes < 0 {
					require.Zero(t, answered)
				} else {
					require.InDelta(t, bound/size, answered, 1.5)
				}
				gates[lead].set(false)
				time.Sleep(bubbleTick)
				must(t, h, "after")
				require.Equal(t, lead, h.Status().Lead)
			})
		})
	}
}

// The leader's disk takes ten times as long for a sync as the others' disks. A call at the leader takes as
// long as the others need; without early applies, as long as the leader's disk.
func TestSlowDiskOfTheLeaderDoesNotSlowItsCalls(t *testing.T) {
	const fast, slow = time.Millisecond, 10 * time.Millisecond
	for _, bytes := range []int{0, -1} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			eachEarly(t, bytes, func(t *testing.T, hosts map[uint64]*rawnode.Host, gates map[uint64]*gate, lead uint64) {
				for id, g := range gates {
					g.slow(fast)
					if id == lead {
						g.slow(slow)
					}
				}
				time.Sleep(10 * bubbleTick)
				var all time.Duration
				const calls = 200
				for i := range calls {
					at := time.Now()
					must(t, hosts[lead], fmt.Sprint(i))
					all += time.Since(at)
					time.Sleep(fast)
				}
				t.Logf("a call takes %v", all/calls)
				if bytes < 0 {
					require.GreaterOrEqual(t, all/calls, slow)
				} else {
					require.LessOrEqual(t, all/calls, 3*fast/2)
				}
				require.Equal(t, lead, hosts[lead].Status().Lead)
			})
		})
	}
}

// Power fails at a leader whose disk hangs, and whose state machine is durable with each Apply: the state
// has commands that the log has lost. The node starts, loses nothing, applies nothing twice, and has
// the state of the others in the end.
func TestStateAheadOfItsLogAfterAPowerFailure(t *testing.T) {
	for name, adjust := range gated {
		if name == "upstream" || name == "coded" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			disks, machines, configs := map[uint64]*vfs.MemFS{}, map[uint64]*counts{}, map[uint64]rawnode.Config{}
			gates, engines := map[uint64]*gate{}, map[uint64]*storage.Engine{}
			inBubble(t, 3, func(cfg *rawnode.Config) {
				id := cfg.Replica.ID
				disks[id], gates[id] = vfs.NewCrashableMem(), newGate()
				engines[id] = gatedLog(t, cfg, disks[id], gates[id])
				var err error
				cfg.Replica.Log, err = engines[id].Group(1)
				require.NoError(t, err)
				machines[id] = newCounts(1)
				cfg.StateMachine = machines[id]
				adjust(cfg)
				configs[id] = *cfg
			}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
				for id, h := range hosts {
					defer func() {
						gates[id].set(false)
						_ = h.Stop(within(0))
						require.NoError(t, engines[id].Close())
					}()
				}
				must(t, hosts[1], "before")
				lead := hosts[1].Status().Lead
				time.Sleep(4 * bubbleTick)
				gates[lead].set(true)
				const lost = 10
				for i := range lost {
					must(t, hosts[lead], fmt.Sprint("early ", i))
				}
				net.setCut(lead, true) // the machine is off
				survivor, sm := disks[lead].CrashClone(vfs.CrashCloneCfg{}), machines[lead].crashed()
				gates[lead].set(false)
				require.NoError(t, hosts[lead].Stop(within(time.Second)))
				net.setCut(lead, false)

				cfg := configs[lead]
				engine := gatedLog(t, &cfg, survivor, newGate())
				log, err := engine.Group(1)
				require.NoError(t, err)
				last, err := log.LastIndex()
				require.NoError(t, err)
				applied, _, _ := sm.Load()
				require.Equal(t, last+lost, applied, "the state is ahead of its log")
				cfg.Replica.Log, cfg.Replica.Boot, cfg.StateMachine, cfg.Transport = log, 2, sm, &plug{hub: net, id: lead}
				h, err := rawnode.New(cfg)
				require.NoError(t, err)
				defer func() {
					_ = h.Stop(within(0))
					require.NoError(t, engine.Close())
				}()
				must(t, h, "after")
				for id, m := range machines {
					if id == lead {
						m = sm
					}
					_, err := map[bool]*rawnode.Host{true: h, false: hosts[id]}[id == lead].Read(within(time.Second))
					require.NoError(t, err)
					for i := range lost {
						require.Equal(t, 1, m.times(fmt.Sprint("early ", i)), "node %d", id)
					}
					require.Equal(t, 1, m.times("after"), "node %d", id)
				}
			})
		})
	}
}
