// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

func startGroup(t *testing.T, s setup) *group {
	t.Helper()
	if s.keys == 0 {
		s.keys = 1
	}
	s.value = 16
	g, err := newGroup(s)
	require.NoError(t, err)
	return g
}

func (g *group) pass(t *testing.T, d time.Duration) {
	t.Helper()
	require.NoError(t, g.c.Run(g.c.Now()+d))
}

// readAt makes a client read a key at a node, and waits for the answer.
func (g *group) readAt(t *testing.T, node uint64) uint64 {
	t.Helper()
	o := g.begin(node, 0, false)
	ok, err := g.c.RunUntil(g.c.Now()+10*time.Second, func() bool { return o.done > 0 })
	require.NoError(t, err)
	require.True(t, ok, "node %d does not answer", node)
	return o.version
}

// Leaders and responders are killed, paused and started again, and messages are late, while clients
// use few keys. No answer is older than an answer before the op began.
func TestSafePoliciesAreLinearizableUnderFaults(t *testing.T) {
	for _, p := range policies() {
		if !p.Safe {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			for seed := uint64(1); seed <= 4; seed++ {
				g := startGroup(t, setup{net: flat(5, 10*time.Millisecond), policy: p, keys: 3, seed: seed, jitter: 3 * time.Millisecond})
				count := 0
				g.onDone(func(*op) { count++ })
				end := g.c.Now() + 40*time.Second
				g.load(2, func() bool { return g.c.Now() >= end }, func(uint64) (int, bool) { return g.rng.IntN(3), g.rng.IntN(4) == 0 })
				for g.c.Now() < end-10*time.Second {
					g.disturb(t)
				}
				g.pass(t, 10*time.Second)
				require.NoError(t, g.drain())
				require.Zero(t, g.check.wrong(), "seed %d: %s", seed, g.check.first)
				require.Greater(t, count, 5000, "seed %d", seed)
			}
		})
	}
}

// disturb kills or pauses a node, half of the time the leader, and restarts or resumes the node
// later.
func (g *group) disturb(t *testing.T) {
	id := uint64(g.rng.IntN(len(g.nodes))) + 1
	if lead := g.c.Leader(); lead != 0 && g.rng.IntN(2) == 0 {
		id = lead
	}
	g.pass(t, time.Duration(g.rng.Int64N(int64(time.Second))))
	if g.rng.IntN(2) == 0 {
		g.c.Pause(id)
		g.pass(t, time.Duration(g.rng.Int64N(int64(4*time.Second))))
		g.c.Resume(id)
	} else {
		g.c.Kill(id)
		g.pass(t, time.Duration(g.rng.Int64N(int64(4*time.Second))))
		require.NoError(t, g.c.Restart(id))
		g.node(id).restarted()
	}
	g.pass(t, time.Second)
}

// restarted resets the replica when the node starts again from its disk.
func (r *replica) restarted() {
	r.applied, r.commit = r.g.c.Applied(r.id), r.g.c.Applied(r.id)
	r.log = keyLog{first: r.disk.first, keys: slices.Clone(r.disk.keys), last: slices.Clone(r.disk.last)}
	clear(r.latest)
	for index, key := range r.g.check.log {
		if index <= r.applied {
			r.latest[key] = max(r.latest[key], index)
		}
	}
	r.waiting, r.held = nil, nil
	clear(r.grants)
	clear(r.notes)
}

// The checker finds a node that answers from its applied state without waiting.
func TestCheckerFindsReadsOfOldState(t *testing.T) {
	p := &Policy{Name: "what there is", read: func(r *replica, _ *raft.RawNode, o *op) { r.answer(o, r.latest[o.key]) }}
	g := startGroup(t, setup{net: flat(3, 10*time.Millisecond), policy: p, keys: 2, seed: 1})
	end := g.c.Now() + time.Second
	g.load(2, func() bool { return g.c.Now() >= end }, func(uint64) (int, bool) { return g.rng.IntN(2), g.rng.IntN(4) == 0 })
	g.pass(t, 2*time.Second)
	require.NoError(t, g.drain())
	require.Positive(t, g.check.wrong())
	require.Contains(t, g.check.first, "had been told before it began")
}

// The write reaches node 3, a responder, late, and for a while no acknowledgement of another node
// reaches the leader. Node 2 knows by notes that a majority has the write.
func lateResponder(t *testing.T, name string) *group {
	g := startGroup(t, setup{net: flat(5, 10*time.Millisecond), policy: policy(name), seed: 1})
	require.NoError(t, g.c.SetLink(1, 3, vnet.Link{Delay: 200 * time.Millisecond}))
	g.begin(1, 0, true)
	g.pass(t, 12*time.Millisecond)
	return g
}

// Bodega's Figure 17, line 39: a responder releases a read when a majority has the
// write. Another responder, which the write has not reached, answers with the older value
// afterwards.
func TestReleaseByAMajorityIsStale(t *testing.T) {
	g := lateResponder(t, "Bodega, published")
	newer := g.readAt(t, 2)
	require.Positive(t, newer, "node 2 answers with the write")
	require.Less(t, g.readAt(t, 3), newer, "node 3 answers without it")
	require.Equal(t, 1, g.check.stale)

	for _, name := range []string{"roster", "roster, notes"} {
		g := lateResponder(t, name)
		newer := g.readAt(t, 2)
		require.Positive(t, newer)
		require.GreaterOrEqual(t, g.readAt(t, 3), newer)
		require.Zero(t, g.check.wrong())
	}
}

// The same at the leader, which answers with its last committed write (line 36): even when all
// responders have the write, the leader may not know. Acknowledgements are slow in this test.
func TestPublishedLeaderIsStaleAfterNotes(t *testing.T) {
	slowToLeader := func(name string) *group {
		g := startGroup(t, setup{net: flat(5, 10*time.Millisecond), policy: policy(name), seed: 1})
		for id := uint64(2); id <= 5; id++ {
			require.NoError(t, g.c.SetLink(id, 1, vnet.Link{Delay: 100 * time.Millisecond}))
		}
		g.begin(1, 0, true)
		g.pass(t, 12*time.Millisecond)
		return g
	}
	g := slowToLeader("Bodega, published")
	newer := g.readAt(t, 2)
	require.Positive(t, newer)
	require.Less(t, g.readAt(t, 1), newer)
	require.Positive(t, g.check.stale)

	g = slowToLeader("roster, notes")
	began := g.c.Now()
	newer = g.readAt(t, 2)
	require.Positive(t, newer)
	require.Less(t, g.c.Now()-began, 50*time.Millisecond, "notes release the read before the leader has committed")
	require.GreaterOrEqual(t, g.readAt(t, 1), newer)
	require.Zero(t, g.check.wrong())
}

func testConfig() Config {
	return Config{Time: 300 * time.Millisecond, Clients: 2, Value: 16, Keys: []int{10}, Writes: []float64{0, 0.1}, Seed: 1, Progress: io.Discard}
}

func TestLocalReadsTakeNoMessage(t *testing.T) {
	cfg := testConfig()
	rows, err := cfg.Paths(t.Context())
	require.NoError(t, err)
	for _, r := range rows {
		if policy(r.Policy).responders {
			require.Zero(t, r.Messages, r.Policy)
		} else {
			require.GreaterOrEqual(t, r.Messages, 2.0, r.Policy)
		}
	}
}

func TestNotesHalveWhatAWriteDelaysReads(t *testing.T) {
	cfg := testConfig()
	rows, err := cfg.Holds(t.Context())
	require.NoError(t, err)
	for _, r := range rows {
		require.Positive(t, r.Late, r.Policy)
		if policy(r.Policy).Ours {
			require.Zero(t, r.Wrong)
			if policy(r.Policy).notes {
				require.LessOrEqual(t, r.Delay.P50, r.Trip/2, r.Network)
			}
		}
		if r.Network == "flat" && r.Policy == "roster, notes" {
			require.LessOrEqual(t, r.Delay.P50, r.Trip/4+time.Millisecond)
		}
	}
}

func TestReadsScaleWithResponders(t *testing.T) {
	cfg := ScaleConfig{
		Nodes: []int{7}, Voters: 5, Clients: 16, Read: 20 * time.Microsecond, Message: 5 * time.Microsecond, Writes: 50,
		Time: 50 * time.Millisecond, Seed: 1, Progress: io.Discard,
	}
	rows, err := cfg.Scale(t.Context())
	require.NoError(t, err)
	for _, r := range rows {
		switch {
		case policy(r.Policy).Ours:
			require.GreaterOrEqual(t, r.Slope, 0.95, r.Policy)
			require.LessOrEqual(t, r.Added, 0.01, r.Policy)
		case r.Nodes > 1:
			require.Less(t, r.Slope, 0.5, r.Policy)
		}
		require.Zero(t, r.Wrong, r.Policy)
	}
}

func TestTunerFollowsTheLoad(t *testing.T) {
	cfg := testConfig()
	cfg.Time = 3 * time.Second
	rows, err := cfg.Tuning(t.Context())
	require.NoError(t, err)
	got := map[int]string{}
	for _, r := range rows {
		require.Zero(t, r.Wrong)
		if r.Way == "tuner" {
			got[r.Number] = r.Responders
		}
	}
	require.Equal(t, map[int]string{1: "a: UT APT, b: SC MA", 2: "a: SC MA, b: UT APT", 3: "-", 4: "a: UT APT, b: SC MA"}, got)
}

// The same flags measure the same.
func TestRunsAreRepeatable(t *testing.T) {
	run := func() Cell {
		cfg := testConfig()
		c, err := cfg.run(setup{net: Networks()[1], policy: policy("roster, notes"), keys: 10}, 0.1)
		require.NoError(t, err)
		return c
	}
	require.Equal(t, run(), run())
}
