// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package partitions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/papers"
)

const delay = 4 * time.Millisecond

func small(clients int) Plan {
	return Plan{Machines: 5, Rate: 125e6, Delay: delay, Clients: clients, Warm: 100 * time.Millisecond, Time: 300 * time.Millisecond, Seed: 1}
}

func run(t *testing.T, name string, p Plan) Outcome {
	for _, s := range Sides() {
		if s.Name == name {
			o, err := s.Run(t.Context(), p)
			require.NoError(t, err, name)
			return o
		}
	}
	require.FailNow(t, "no side", name)
	return Outcome{}
}

// TestEachSideSendsWhatItsProtocolNeeds: all followers are sent a payload once in all, or a third of it
// where nobody completes payloads; and an answer takes a round, or a way through all machines.
func TestEachSideSendsWhatItsProtocolNeeds(t *testing.T) {
	for name, want := range map[string]struct {
		sent   float64
		delays int
	}{"Weft": {4, 2}, "full copies": {4, 2}, "RSPaxos": {4. / 3, 2}, "CRaft": {4. / 3, 2}, "Crossword": {4, 2}, "Chain Replication": {4, 4}} {
		o := run(t, name, small(5))
		require.InEpsilon(t, want.sent, o.Sent, 0.05, name)
		require.LessOrEqual(t, o.SentAtOnce, o.Sent+0.01, name)
		require.Greater(t, o.P50, time.Duration(want.delays)*delay, name)
		require.Less(t, o.P50, time.Duration(want.delays+1)*delay+4*time.Millisecond, name)
		require.Positive(t, o.Received, name)
	}
}

func TestManyClientsFillALinkAndNoMore(t *testing.T) {
	for _, name := range []string{"Weft", "full copies", "Crossword"} {
		o := run(t, name, small(150))
		require.InDelta(t, 1, o.Busiest, 0.1, name)
		require.LessOrEqual(t, o.Busiest, 1.01, name)
		if name != "Weft" { // whose followers ask for units that are on their way
			require.InEpsilon(t, 4, o.Sent, 0.05, name)
		}
	}
}

func TestSecondRunPrintsTheSame(t *testing.T) {
	for _, name := range []string{"Weft", "Crossword", "Chain Replication"} {
		require.Equal(t, run(t, name, small(20)), run(t, name, small(20)), name)
	}
}

// stingy sends one follower a unit, and the others nothing.
type stingy struct{ papers.RSPaxos }

func (s stingy) AssignSets(r *ecraft.Round, sets []ecraft.Set) papers.SetPlan {
	p := s.RSPaxos.AssignSets(r, sets)
	clear(sets[1:])
	return p
}

func TestRunFailsIfReplicasNeverReceiveAll(t *testing.T) {
	_, err := published("stingy", func() papers.SetPolicy { return stingy{} }, true).Run(t.Context(), small(5))
	require.ErrorContains(t, err, "replicas lag")
}
