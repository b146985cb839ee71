// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/replica"
)

func bed() Bed {
	b := Default().Bed
	b.Time = 25 * time.Millisecond
	return b
}

// TestRunsAreTheSameTwice runs everything, in short, and compares the reports.
func TestRunsAreTheSameTwice(t *testing.T) {
	cfg := Config{Bed: bed(), Clients: []int{1, 200}, Ways: []hostnode.Kind{hostnode.Lean}, Readers: []int{0, 1}, Progress: io.Discard}
	var texts [2]string
	for i := range texts {
		r, err := cfg.Run(t.Context())
		require.NoError(t, err)
		texts[i] = Report(cfg, r).Text()
	}
	require.Equal(t, texts[0], texts[1])
	require.Contains(t, texts[0], "Beside the paper")
}

// TestBottleneckIsTheLeaderUntilClientsLeaveIt follows the first steps.
func TestBottleneckIsTheLeaderUntilClientsLeaveIt(t *testing.T) {
	at := func(step int, batches bool) Outcome {
		p := planOf(Steps(), step)
		p.Way, p.Clients, p.Batches = hostnode.RPC, 300, batches
		o, err := run(bed(), p)
		require.NoError(t, err)
		return o
	}
	for _, batches := range []bool{false, true} {
		first, second := at(0, batches), at(1, batches)
		require.Equal(t, "leader", first.Busiest().Kind)
		require.Greater(t, first.Busiest().Most, 0.95, "the leader is busy")
		require.Greater(t, second.Rate(), 1.5*first.Rate(), "members share the clients' calls")
		require.Less(t, second.LeaderPer, first.LeaderPer)
	}
	require.Greater(t, at(0, true).Rate(), at(0, false).Rate(), "batches save work")
}

// TestProcessorTimeIsWorkTimesCosts has one client, whose every call does the same.
func TestProcessorTimeIsWorkTimesCosts(t *testing.T) {
	p := planOf(Steps(), 0)
	p.Way, p.Clients, p.Batches = hostnode.RPC, 1, true
	b := bed()
	b.Costs = costs.Costs{RPC: 10 * time.Microsecond, Propose: 5 * time.Microsecond}
	o, err := run(b, p)
	require.NoError(t, err)
	require.InDelta(t, 15*time.Microsecond, o.LeaderPer, float64(time.Microsecond), "but for a call under way")
	b.Costs = costs.Costs{}
	free, err := run(b, p)
	require.NoError(t, err)
	require.Zero(t, free.LeaderPer)
	require.Equal(t, 15*time.Microsecond, (o.Median - free.Median).Round(time.Microsecond))
	// Two ways of the client, two of the append, and the follower's and the leader's disk at a time.
	require.Equal(t, 4*b.Delay+b.Sync, free.Median.Round(time.Microsecond))
}

// TestGatewaysTakeCallsOffMembers compares calls at gateways with calls at members, without work and
// under load.
func TestGatewaysTakeCallsOffMembers(t *testing.T) {
	at := func(b Bed, step, clients int) Outcome {
		p := planOf(Steps(), step)
		p.Way, p.Clients, p.Batches = hostnode.RPC, clients, true
		o, err := run(b, p)
		require.NoError(t, err)
		return o
	}
	free := bed()
	free.Costs = costs.Costs{}
	leader, gateways := at(free, 0, 1), at(free, 2, 1)
	// To the leader, from there to the home that has applied, and on to the gateway.
	require.Equal(t, 3*free.Delay, (gateways.Median - leader.Median).Round(time.Microsecond))
	members, gateways := at(bed(), 1, 1000), at(bed(), 2, 1000)
	require.Greater(t, gateways.Rate(), 2*members.Rate())
	require.Less(t, gateways.LeaderPer, members.LeaderPer/2)
	require.Equal(t, "gateway", gateways.Busiest().Kind)
}

// TestQueriesCostTheGatewayAndItsHome has one client, whose every read does the same.
func TestQueriesCostTheGatewayAndItsHome(t *testing.T) {
	b := bed()
	b.Costs = costs.Costs{Read: 10 * time.Microsecond}
	for _, policy := range policies {
		p := Plan{Members: 3, Groups: 1, Batches: true, Gateways: 1, Clients: 1, Reads: 1, Policy: policy}
		o, err := run(b, p)
		require.NoError(t, err)
		require.InDelta(t, 20*time.Microsecond, o.AllPer, float64(time.Microsecond), p.readsBy())
		require.Zero(t, o.LeaderCall, "the home is a follower")
	}
	o, err := run(b, Plan{Members: 3, Groups: 1, Batches: true, Gateways: 1, Clients: 1, Reads: 1, Leases: true})
	require.NoError(t, err)
	require.InDelta(t, 20*time.Microsecond, o.AllPer, float64(time.Microsecond), "roster leases")
	// To the gateway, to its home and back, and to the client; with time for the reads alone.
	require.Equal(t, 4*b.Delay+2*b.Costs.Read, o.Median.Round(time.Microsecond), "a responder asks nobody")
	b.Costs = costs.Costs{Message: time.Microsecond}
	asked := func(policy replica.ReadPolicy) time.Duration {
		o, err := run(b, Plan{Members: 3, Groups: 1, Batches: true, Gateways: 1, Clients: 1, Reads: 1, Policy: policy})
		require.NoError(t, err)
		return o.LeaderCall
	}
	require.Greater(t, asked(nil), 2*asked(replica.QuorumRead{}), "ReadIndex has the leader ask a majority; a quorum read asks the leader as one of them")
}

// TestFewClientsWakeProcessesMoreOften has little but waking cost something: many clients' work finds processes awake.
func TestFewClientsWakeProcessesMoreOften(t *testing.T) {
	b := bed()
	b.Costs = costs.Costs{Wake: 40 * time.Microsecond, Lean: time.Microsecond}
	at := func(clients int) Outcome {
		o, err := run(b, Plan{Members: 3, Groups: 1, Batches: true, Clients: clients})
		require.NoError(t, err)
		return o
	}
	one, many := at(1), at(300)
	require.Greater(t, one.LeaderPer, 2*b.Costs.Wake, "a call, and what followers and the disk answer, wake the leader")
	require.Less(t, many.LeaderPer, one.LeaderPer/10)
}

// TestProcessesOnOneMachineTakeTimeFromEachOther compares a machine for each process with one for all, where clients take their part.
func TestProcessesOnOneMachineTakeTimeFromEachOther(t *testing.T) {
	at := func(processors int) Outcome {
		b := bed()
		b.Processors = processors
		o, err := run(b, Plan{Members: 3, Groups: 1, Batches: true, Way: hostnode.RPC, Clients: 300})
		require.NoError(t, err)
		return o
	}
	apart, together, crowded := at(0), at(2), at(1)
	require.Less(t, together.Writes, apart.Writes)
	require.Less(t, crowded.Writes, 0.7*together.Writes)
	require.InDelta(t, 1, crowded.Writes*(crowded.AllPer+costs.Fitted.RPC).Seconds(), 0.05, "clients take the rest")
}
