// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// BenchmarkHost runs three hosts in one process, with logs on disk and TCP on the loopback
// interface. cpu-us/op is the processor time of all three hosts. The hosts of "coded" code entries
// of 512 bytes and more; the hosts of "dense" have coding configured, and append no coded entry.
func BenchmarkHost(b *testing.B) {
	for _, lib := range []struct {
		name   string
		core   replica.NewCore
		coding bool
	}{{"weft", rawnode.Weft, false}, {"upstream", rawnode.Upstream, false}, {"coded", rawnode.Weft, true}, {"dense", rawnode.Weft, true}} {
		for _, size := range []int{16, 1 << 10, 64 << 10} {
			for _, clients := range []int{1, 64} {
				b.Run(fmt.Sprintf("core=%s/size=%d/clients=%d", lib.name, size, clients), func(b *testing.B) {
					hosts := benchHosts(b, lib.core, 3, lib.coding)
					for _, h := range hosts {
						h.Densify(lib.name == "dense")
					}
					benchmarkHost(b, hosts, size, clients)
				})
			}
		}
	}
}

func benchmarkHost(b *testing.B, hosts []*rawnode.Host, size, clients int) {
	command := make([]byte, size)
	lead := benchLeader(b, hosts)
	b.SetBytes(int64(size))
	benchClients(b, clients, func() error {
		_, err := lead.Propose(context.Background(), command)
		return err
	})
	s := lead.Status()
	b.ReportMetric(float64(s.Counters.Proposals)/float64(max(s.Counters.Batches, 1)), "commands/entry")
}

// BenchmarkHostRead is BenchmarkHost for linearizable reads.
func BenchmarkHostRead(b *testing.B) {
	for _, at := range []string{"leader", "follower"} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("at=%s/clients=%d", at, clients), func(b *testing.B) {
				hosts := benchHosts(b, rawnode.Weft, 3, false)
				h := benchLeader(b, hosts)
				if at == "follower" {
					h = hosts[h.Status().ID%3]
				}
				benchClients(b, clients, func() error {
					_, err := h.Read(context.Background())
					return err
				})
				s := h.Status()
				b.ReportMetric(float64(s.Counters.Reads)/float64(max(s.Counters.ReadRounds, 1)), "reads/round")
			})
		}
	}
}

// benchClients has clients do something b.N times, all together.
func benchClients(b *testing.B, clients int, do func() error) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	before := process.OwnCPU()
	b.ResetTimer()
	done := make(chan error, clients)
	for range clients {
		go func() {
			for left.Add(-1) >= 0 {
				if err := do(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range clients {
		require.NoError(b, <-done)
	}
	b.StopTimer()
	b.ReportMetric(float64((process.OwnCPU()-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// benchHosts starts a group of n hosts. Changes are made to their settings.
func benchHosts(b testing.TB, core replica.NewCore, n uint64, coded bool, changes ...func(*rawnode.Config)) []*rawnode.Host {
	var hosts []*rawnode.Host
	addresses, listeners := map[uint64]string{}, map[uint64]net.Listener{}
	var peers []uint64
	for id := uint64(1); id <= n; id++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		listeners[id], addresses[id] = l, l.Addr().String()
		peers = append(peers, id)
	}
	dir := b.TempDir()
	for _, id := range peers {
		t, err := transport.New(transport.Config{Cluster: 1, Node: id, Listener: listeners[id], Peers: addresses})
		require.NoError(b, err)
		engine, err := storage.Open(filepath.Join(dir, fmt.Sprint(id)), storage.Options{Identity: storage.Identity{Cluster: 1, Node: id}})
		require.NoError(b, err)
		log, err := engine.Group(1)
		require.NoError(b, err)
		cfg := rawnode.Config{
			Replica:      rawnode.ReplicaConfig{ID: id, Group: 1, Core: core, Log: log, Peers: peers},
			StateMachine: &last{}, Transport: t,
		}
		if coded {
			cfg.Replica.Coding = &raft.Coding{}
		}
		for _, change := range changes {
			change(&cfg)
		}
		h, err := rawnode.New(cfg)
		require.NoError(b, err)
		hosts = append(hosts, h)
		b.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = h.Stop(ctx) // at once
			_ = t.Close()
			_ = engine.Close()
		})
	}
	return hosts
}

// benchLeader waits for a leader.
func benchLeader(b testing.TB, hosts []*rawnode.Host) *rawnode.Host {
	_, err := hosts[0].Read(context.Background())
	require.NoError(b, err)
	return hosts[hosts[0].Status().Lead-1]
}

// last is a StateMachine without work. Durable returns the applied index, so that logs are
// compacted.
type last struct {
	lines
	index atomic.Uint64
}

func (l *last) Durable() (uint64, error) { return l.index.Load(), nil }

func (l *last) Apply(b rawnode.Batch) ([]any, error) {
	l.index.Store(b.Index)
	return make([]any, len(b.Commands)), nil
}
