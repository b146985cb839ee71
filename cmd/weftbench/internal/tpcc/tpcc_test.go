// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/raft"
)

func small() Config {
	return Config{
		Machines: 6, Ranges: 6, Warehouses: 2, Terminals: 40, Text: 1, Egress: 125e6, Delay: 2 * time.Millisecond, Sync: 100 * time.Microsecond,
		Warm: 100 * time.Millisecond, Time: 300 * time.Millisecond, Seed: 1, Configure: func(c *raft.Config) { c.Coding = &raft.Coding{} },
	}
}

// All conditions hold on every replica, coded or not, with machines down, and with long texts on narrow links.
func TestConsistencyConditionsHold(t *testing.T) {
	for what, change := range map[string]func(*Config){
		"coded":       func(*Config) {},
		"full copies": func(c *Config) { c.Configure = func(*raft.Config) {} },
		"two down":    func(c *Config) { c.Failed = 2 },
		"narrow":      func(c *Config) { c.Text, c.Egress = 8, 12.5e6 },
		"thinks":      func(c *Config) { c.Thinks, c.Warm, c.Time = true, 5*time.Second, 30*time.Second },
	} {
		t.Run(what, func(t *testing.T) {
			cfg := small()
			change(&cfg)
			out, err := Run(cfg)
			require.NoError(t, err)
			for k := range Kinds {
				require.NotEmpty(t, out.Kinds[k], k.String())
			}
			require.NotEmpty(t, out.Sizes)
			require.Greater(t, out.Sent, 1.0)
		})
	}
}

// Bugs in locks, intents and replicas are found by the conditions.
func TestPlantedBugsBreakAConditionOrTheReplicas(t *testing.T) {
	for bug, want := range map[bug]string{lostIntents: "condition", noLocks: "condition", deafReplica: "node 3"} {
		cfg := small()
		cfg.bug = bug
		_, err := Run(cfg)
		require.ErrorContains(t, err, want)
	}
}

func TestRunsAreTheSameTwice(t *testing.T) {
	a, err := Run(small())
	require.NoError(t, err)
	b, err := Run(small())
	require.NoError(t, err)
	require.Equal(t, a, b)
}

// The mix is that of the specification.
func TestMixIsAsSpecified(t *testing.T) {
	cfg := small()
	cfg.Time = time.Second
	out, err := Run(cfg)
	require.NoError(t, err)
	for k := range Kinds {
		share := 100 * float64(len(out.Kinds[k])) / (out.Rate * cfg.Time.Seconds())
		require.InDelta(t, specified[k].share, share, 4, k.String())
	}
}
