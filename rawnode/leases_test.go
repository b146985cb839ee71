// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/leases/clock"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// readCounter is a transport that counts the messages of reads.
type readCounter struct {
	rawnode.Transport
	reads *atomic.Int64
}

func (c readCounter) Send(messages []wire.Message) {
	for _, m := range messages {
		switch b := m.Body.(type) {
		case wire.LogEnd:
			c.reads.Add(1)
		case wire.Raft:
			if t := b.GetType(); t == pb.MsgReadIndex || t == pb.MsgReadIndexResp || t == pb.MsgHeartbeat && len(b.Context) > 0 {
				c.reads.Add(1)
			}
		}
	}
	c.Transport.Send(messages)
}

// leaseGroup starts three hosts with leases and asks for all three as responders.
func leaseGroup(t *testing.T, reads *atomic.Int64) map[uint64]*member {
	return group(t, rawnode.Weft, 3, func(cfg *rawnode.Config) {
		cfg.Replica.Leases = &raft.Leases{Lease: time.Second, Wanted: []leases.Want{{Nodes: []leases.NodeID{1, 2, 3}}}}
		cfg.Replica.ElectionTick = 100
		cfg.Transport = readCounter{cfg.Transport, reads}
	})
}

// stable waits until a member answers reads of every key.
func stable(t *testing.T, m *member) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := m.host.LeaseStatus(within(time.Second))
		return err == nil && s.Stable
	}, 30*time.Second, 5*time.Millisecond)
}

// Reads at responders on real sockets cost no message, and see each write that was acknowledged
// before the read at any node.
func TestHostsReadAtRespondersWithoutMessages(t *testing.T) {
	var sent atomic.Int64
	members := leaseGroup(t, &sent)
	lead := leader(t, members[1])
	for _, m := range members {
		stable(t, m)
	}
	before := sent.Load()
	served := map[rawnode.ServedBy]int{}
	for i := range 300 {
		cmd := fmt.Sprint("w", i%50)
		if i < 50 {
			must(t, members[uint64(i%3+1)].host, cmd)
		}
		for _, m := range members {
			res, err := m.host.ReadWith(within(20*time.Second), rawnode.ReadOptions{Policy: rawnode.AtResponder{}})
			require.NoError(t, err)
			require.Equal(t, 1, m.sm.times(cmd))
			served[res.By]++
		}
	}
	// A process of a busy machine may stand still for longer than a lease.
	fallbacks := served[rawnode.ServedByLeader] + served[rawnode.ServedByQuorum]
	require.Less(t, fallbacks, 100, "%v", served)
	require.Greater(t, served[rawnode.ServedByRoster], 500, "%v", served)
	if fallbacks == 0 {
		require.Zero(t, sent.Load()-before, "%v", served)
	}
	for id, m := range members {
		c := m.host.Status().Counters
		if id == lead {
			require.NotZero(t, c.ReadsByLease)
		} else {
			require.NotZero(t, c.ReadsByRoster)
		}
	}
	st := members[1].host.Status()
	require.NotNil(t, st.Clock)
	require.Equal(t, 1000, st.Clock.DriftPPM)
	require.True(t, st.Leases.On)

	at := members[lead%3+1].host // no leader
	for _, policy := range []rawnode.ReadPolicy{rawnode.QuorumRead{}, rawnode.LeaderLease{}, rawnode.BoundedStaleness{Max: time.Minute}} {
		before := sent.Load()
		_, err := at.ReadWith(within(20*time.Second), rawnode.ReadOptions{Policy: policy})
		require.NoError(t, err)
		if _, stale := policy.(rawnode.BoundedStaleness); !stale {
			require.NotEqual(t, before, sent.Load(), "%T asks others", policy)
		}
	}
}

// A responder that dies delays a write once, for a bounded time, and the operator sees the removed
// node.
func TestHostsGoOnWithoutADeadResponder(t *testing.T) {
	var sent atomic.Int64
	members := leaseGroup(t, &sent)
	lead := leader(t, members[1])
	for _, m := range members {
		stable(t, m)
	}
	dead := members[lead%3+1]
	dead.kill(1)
	must(t, members[lead].host, "a")
	must(t, members[lead].host, "b")
	s, err := members[lead].host.LeaseStatus(within(time.Second))
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Counts.Removed)
	for _, a := range s.Roster.Spans {
		for _, r := range a.Responders {
			require.NotEqual(t, leases.NodeID(dead.id), r.Node)
		}
	}
}

func TestHostTakesRosterCallsAtTheLeader(t *testing.T) {
	var sent atomic.Int64
	members := leaseGroup(t, &sent)
	lead := leader(t, members[1])
	follower := members[lead%3+1]
	require.Equal(t, lead, leader(t, follower)) // it may hear of the leader later
	want := []leases.Want{{Nodes: []leases.NodeID{leases.NodeID(follower.id)}}}
	err := follower.host.SetResponders(within(time.Second), want)
	require.ErrorIs(t, err, leases.ErrNotLeader)
	require.ErrorIs(t, err, rawnode.ErrRefused)
	var call *rawnode.CallError
	require.ErrorAs(t, err, &call)
	require.Equal(t, lead, call.Leader)

	require.NoError(t, members[lead].host.SetResponders(within(5*time.Second), want))
	stable(t, follower)
	require.NoError(t, members[lead].host.RetireLeases(within(5*time.Second), true))
	require.Eventually(t, func() bool {
		s, err := members[lead].host.LeaseStatus(within(time.Second))
		return err == nil && s.Retired
	}, 30*time.Second, 5*time.Millisecond)
}

func TestHostWithLeasesNeedsItsOwnTick(t *testing.T) {
	cfg := rawnode.Config{Replica: rawnode.ReplicaConfig{ID: 1, Leases: &raft.Leases{Tick: time.Second}}}
	require.ErrorContains(t, cfg.Validate(), "Replica.Leases.Tick is 1s, want 0, or TickInterval (100ms)")
	cfg.Replica.Leases.Tick = 0
	require.NotContains(t, cfg.Validate().Error(), "Leases")
	require.NotContains(t, cfg.Validate().Error(), "Clock")
	require.Zero(t, cfg.Replica.Leases.Tick, "the caller's configuration is not changed")
}

// unfitClock is the system's, and may be said to be unfit.
type unfitClock struct {
	clock.Boottime
	unfit *atomic.Bool
}

func (c unfitClock) Fit() error {
	if c.unfit.Load() {
		return errors.New("it is said to be unfit")
	}
	return nil
}

// A clock found unfit while a host runs ends reads by leases there, and the leader answers them.
func TestHostStandsAsideWhileItsClockIsUnfit(t *testing.T) {
	var unfit atomic.Bool
	members := group(t, rawnode.Weft, 3, func(cfg *rawnode.Config) {
		cfg.Replica.Leases = &raft.Leases{Lease: time.Second, Wanted: []leases.Want{{Nodes: []leases.NodeID{1, 2, 3}}}}
		cfg.Replica.ElectionTick = 100
		if cfg.Replica.ID == 3 {
			cfg.Replica.Clock = unfitClock{unfit: &unfit}
		}
	})
	aside := func(yes bool) {
		unfit.Store(yes)
		require.Eventually(t, func() bool {
			s, err := members[3].host.LeaseStatus(within(time.Second))
			return err == nil && s.Aside == yes && s.Stable != yes
		}, 30*time.Second, 5*time.Millisecond)
	}
	stable(t, members[3])
	aside(true)
	must(t, members[1].host, "a")
	for by := rawnode.ServedStale; by != rawnode.ServedByLeader; { // a majority, if the machine stood still for longer than the leader's lease
		res, err := members[3].host.ReadWith(within(20*time.Second), rawnode.ReadOptions{Policy: rawnode.AtResponder{}})
		require.NoError(t, err)
		require.NotEqual(t, rawnode.ServedByRoster, res.By)
		require.Equal(t, 1, members[3].sm.times("a"))
		by = res.By
	}
	aside(false)
}

// An operator switches the tuner by the call that names responders.
func TestHostSwitchesTheTunerAtTheLeader(t *testing.T) {
	var sent atomic.Int64
	members := leaseGroup(t, &sent)
	lead := leader(t, members[1])
	modes := func() (all []leases.TunerMode) {
		for id := uint64(1); id <= 3; id++ {
			s, err := members[id].host.LeaseStatus(within(20 * time.Second))
			require.NoError(t, err)
			all = append(all, s.Tuner.Mode)
		}
		return all
	}
	require.Equal(t, []leases.TunerMode{leases.TunerOff, leases.TunerOff, leases.TunerOff}, modes())
	require.ErrorIs(t, members[lead%3+1].host.SetResponders(within(5*time.Second), nil, leases.TunerOn), leases.ErrNotLeader)
	require.ErrorIs(t, members[lead].host.SetResponders(within(5*time.Second), nil, leases.TunerOn, leases.TunerOff), leases.ErrMalformed)
	for _, mode := range []leases.TunerMode{leases.TunerWatch, leases.TunerOn, leases.TunerOff} {
		require.NoError(t, members[lead].host.SetResponders(within(5*time.Second), nil, mode))
		require.Eventually(t, func() bool {
			return slices.Equal([]leases.TunerMode{mode, mode, mode}, modes())
		}, 30*time.Second, 5*time.Millisecond)
	}
}

// sleepyCaller is the context of a caller who looks at the end of a call late.
type sleepyCaller struct {
	context.Context
	sleep func()
}

func (c sleepyCaller) Done() <-chan struct{} {
	c.sleep()
	return c.Context.Done()
}

// A wish that the leader has taken is not called refused because the host has ended by the time that the caller hears of it.
func TestWishThatWasTakenIsNotRefused(t *testing.T) {
	for range 8 { // of two ends that are there, Go takes any
		var taken error
		inBubble(t, 1, func(cfg *rawnode.Config) {
			cfg.Replica.Clock = bubbleClock{time.Now().Add(-time.Hour)}
			cfg.Replica.Leases = &raft.Leases{Lease: 300 * time.Millisecond, Fail: 100 * time.Millisecond}
		}, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host) {
			h := hosts[1]
			_, err := h.Read(within(time.Minute))
			require.NoError(t, err)
			caller := sleepyCaller{within(time.Minute), func() {
				s, err := h.LeaseStatus(within(time.Minute))
				require.NoError(t, err)
				require.Len(t, s.Roster.Wanted, 1)
				require.NoError(t, h.Stop(within(time.Minute)))
			}}
			taken = h.SetResponders(caller, []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}})
		})
		require.NoError(t, taken)
	}
}
