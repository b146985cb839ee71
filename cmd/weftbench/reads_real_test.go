// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/realreads"
)

// Over links with delays a responder answers reads by itself, and a write takes a round trip.
// A read at a responder takes less of processors than one by ReadIndex.
func TestRealReads(t *testing.T) {
	out, progress, err := weftbench(t, "reads", "--real", "--kvdemo", buildKvdemo(t), "--data", t.TempDir(), "--real-time", "500ms", "--real-rounds", "1",
		"--real-networks", "wan", "--real-policies", "roster", "--real-clients", "2", "--real-sizes", "3", "--json")
	require.NoError(t, err, progress)
	var r realreads.Results
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Rows, 1)
	row := r.Rows[0]
	require.Positive(t, row.Rate)
	require.Positive(t, row.Local)
	for site, l := range row.Writes {
		if l.Mean > 0 {
			require.Greater(t, l.P50, 25*time.Millisecond, "site %d: less than a round trip", site+1)
		}
	}
	require.Len(t, r.CPU, 4)
	for i, c := range r.CPU {
		require.Positive(t, c.Reads, "row %d", i)
	}
	require.Less(t, r.CPU[2].PerRead, r.CPU[0].PerRead, "one reader, at a responder and by ReadIndex")

	for _, bad := range []struct{ flag, value, want string }{
		{"--real-networks", "moon", `--real-networks: "moon", want one of wan, geo`},
		{"--real-policies", "guess", `--real-policies: "guess", want one of etcd, stale etcd, ZooKeeper, ZooKeeper, sync, ReadIndex`},
		{"--real-sizes", "2", "--real-sizes: 2, want 3 to 9"},
		{"--real-policies", "etcd", `--real-policies: "etcd" needs a server, want --etcd FILE as well`},
		{"--real-policies", `"ZooKeeper, sync"`, `--real-policies: "ZooKeeper, sync" needs a server, want --zookeeper FILE as well`},
	} {
		_, _, err = weftbench(t, "reads", "--real", bad.flag, bad.value)
		require.ErrorContains(t, err, bad.want)
	}
}

// Released etcd is measured over the same links: a linearizable read takes a round trip to the
// leader, and from there to a majority.
func TestRealReadsOfEtcd(t *testing.T) {
	etcd := os.Getenv("WEFTBENCH_TEST_ETCD")
	if etcd == "" {
		t.Skip("make test-bench-etcd builds a server of etcd for this")
	}
	out, progress, err := weftbench(t, "reads", "--real", "--kvdemo", buildKvdemo(t), "--etcd", etcd, "--data", t.TempDir(), "--real-time", "2s", "--real-rounds", "1",
		"--real-networks", "wan", "--real-policies", "etcd", "--real-clients", "2", "--real-sizes", "3", "--json")
	require.NoError(t, err, progress)
	var r realreads.Results
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Rows, 1)
	row := r.Rows[0]
	require.Zero(t, row.Failed)
	require.Zero(t, row.Local)
	require.Greater(t, row.Reads[0].P50, 25*time.Millisecond, "the leader asks a majority")
	require.Greater(t, row.Reads[1].P50, 60*time.Millisecond, "and a follower asks the leader first")
	require.Greater(t, row.Writes[1].P50, 60*time.Millisecond)
}

// ZooKeeper is measured over the same links: a server answers at once, after a sync it has asked the leader, and a write
// takes a round trip to a majority.
func TestRealReadsOfZooKeeper(t *testing.T) {
	jar := os.Getenv("WEFTBENCH_TEST_ZOOKEEPER")
	if jar == "" {
		t.Skip("make test-bench-zookeeper runs this")
	}
	out, progress, err := weftbench(t, "reads", "--real", "--kvdemo", buildKvdemo(t), "--zookeeper", jar, "--data", t.TempDir(), "--real-time", "1s", "--real-rounds", "1",
		"--real-networks", "wan", "--real-policies", `ZooKeeper,"ZooKeeper, sync"`, "--real-clients", "2", "--real-sizes", "3", "--json")
	require.NoError(t, err, progress)
	var r realreads.Results
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Rows, 2)
	at, synced := r.Rows[0], r.Rows[1]
	require.Zero(t, at.Failed+synced.Failed)
	require.Less(t, at.Reads[1].P50, 20*time.Millisecond, "a server has what it needs")
	require.Greater(t, synced.Reads[1].P50, 35*time.Millisecond, "a server asks the leader")
	require.Greater(t, at.Writes[0].P50, 25*time.Millisecond, "the leader asks a majority")
}
