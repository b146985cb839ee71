// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// manyHosts starts n groups with a single member each, on a shared engine and a shared transport.
func manyHosts(t testing.TB, n uint64, interval time.Duration) []*rawnode.Host {
	engine, err := storage.Open("log", storage.Options{FS: vfs.NewMem(), Identity: storage.Identity{Cluster: 9, Node: 1}})
	require.NoError(t, err)
	tr, err := transport.New(transport.Config{Cluster: 9, Node: 1, Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	var hosts []*rawnode.Host
	for group := uint64(1); group <= n; group++ {
		log, err := engine.Group(group)
		require.NoError(t, err)
		h, err := rawnode.New(rawnode.Config{
			Replica:      rawnode.ReplicaConfig{ID: 1, Group: group, Log: log, Peers: []uint64{1}},
			StateMachine: &last{}, Transport: tr, TickInterval: interval,
		})
		require.NoError(t, err)
		hosts = append(hosts, h)
	}
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, h := range hosts {
			wg.Go(func() { _ = h.Stop(within(time.Minute)) })
		}
		wg.Wait()
		_ = tr.Close()
		_ = engine.Close()
	})
	return hosts
}

func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// An idle host costs a goroutine and some tens of kilobytes, so that a node may have thousands of
// groups.
func TestIdleHosts(t *testing.T) {
	n := uint64(1000)
	if testing.Short() {
		n = 100
	}
	goroutines, bytes := runtime.NumGoroutine(), memory()
	hosts := manyHosts(t, n, 50*time.Millisecond)
	for i, h := range hosts {
		must(t, h, fmt.Sprint(i))
	}
	// After some idle ticks the stages have no goroutines.
	const shared = 30 // of the engine, the transport, the ticker
	require.Eventually(t, func() bool { return runtime.NumGoroutine()-goroutines <= int(n)+shared }, time.Minute, 50*time.Millisecond, "goroutines per host")
	used := (memory() - bytes) / n
	t.Logf("%d idle hosts: %d goroutines, %d bytes each", n, runtime.NumGoroutine()-goroutines, used)
	require.Less(t, used, uint64(64<<10))
}

// BenchmarkIdleHosts measures the cost of 1,000 idle groups with a single member each, for each
// tick of all groups. The benchmark runs in real time: only cpu-us/tick is meaningful.
func BenchmarkIdleHosts(b *testing.B) {
	const interval = 20 * time.Millisecond
	hosts := manyHosts(b, 1000, interval)
	for i, h := range hosts {
		_, err := h.Propose(within(time.Minute), fmt.Append(nil, i))
		require.NoError(b, err)
	}
	time.Sleep(20 * interval) // until the hosts are idle
	b.ReportAllocs()
	before := process.OwnCPU()
	for b.Loop() {
		time.Sleep(interval)
	}
	b.ReportMetric(float64((process.OwnCPU()-before).Microseconds())/float64(b.N), "cpu-us/tick")
}
