// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// sample is the work of three nodes under a load, and the time taken; times in
// seconds, sizes in KiB.
type sample struct {
	commands                 float64
	cpu                      float64 // of the process
	step, stepItems, stepKiB float64
	apply, applyItems        float64
	applyKiB, applied        float64
	messages, wireKiB        float64
	writes, entries, logKiB  float64
}

// blackhole is a state machine that looks at its commands and forgets all.
type blackhole struct {
	applied atomic.Uint64
	sum     uint32
}

func (b *blackhole) Load() (uint64, []byte, error) { return 0, nil, nil }
func (b *blackhole) Durable() (uint64, error)      { return 0, nil }

func (b *blackhole) Apply(batch rawnode.Batch) ([]any, error) {
	for _, c := range batch.Commands {
		b.sum = crc32.Update(b.sum, crc32.IEEETable, c)
	}
	b.applied.Store(batch.Index)
	return make([]any, len(batch.Commands)), nil
}

var errNoSnapshots = errors.New("no snapshots")

func (b *blackhole) Snapshot() (rawnode.Snapshot, error)           { return nil, errNoSnapshots }
func (b *blackhole) Restore(rawnode.SnapshotMeta, io.Reader) error { return errNoSnapshots }

// cluster is three nodes in this process.
type cluster struct {
	transports []*transport.TCP
	engines    []*storage.Engine
	hosts      []*rawnode.Host
}

func start(dir string) (*cluster, error) {
	c := &cluster{}
	ids := []uint64{1, 2, 3}
	for _, id := range ids {
		t, err := transport.New(transport.Config{Cluster: 1, Node: id, Listen: "127.0.0.1:0"})
		if err != nil {
			return c, err
		}
		c.transports = append(c.transports, t)
	}
	for i, id := range ids {
		for j, t := range c.transports {
			c.transports[i].SetPeer(ids[j], t.Addr().String())
		}
		e, err := storage.Open(filepath.Join(dir, fmt.Sprint(id)), storage.Options{Identity: storage.Identity{Cluster: 1, Node: id}})
		if err != nil {
			return c, err
		}
		c.engines = append(c.engines, e)
		g, err := e.Group(1)
		if err != nil {
			return c, err
		}
		h, err := rawnode.New(rawnode.Config{
			Replica:      rawnode.ReplicaConfig{ID: id, Group: 1, Peers: ids, Log: g},
			StateMachine: &blackhole{}, Transport: c.transports[i], TickInterval: 50 * time.Millisecond,
		})
		if err != nil {
			return c, err
		}
		c.hosts = append(c.hosts, h)
	}
	return c, nil
}

func (c *cluster) stop() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, h := range c.hosts {
		err = errors.Join(err, h.Stop(ctx))
	}
	for _, t := range c.transports {
		err = errors.Join(err, t.Close())
	}
	for _, e := range c.engines {
		err = errors.Join(err, e.Close())
	}
	return err
}

// measure applies a load and returns what was done in its time.
func measure(tmp string, size, clients int, d time.Duration) (_ sample, err error) {
	dir, err := os.MkdirTemp(tmp, "")
	if err != nil {
		return sample{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := start(dir)
	defer func() { err = errors.Join(err, c.stop()) }()
	if err != nil {
		return sample{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done atomic.Uint64
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			command := make([]byte, size)
			for ctx.Err() == nil {
				if _, err := c.hosts[i%3].Propose(ctx, command); err == nil {
					done.Add(1)
				}
			}
		})
	}
	for begun := time.Now(); done.Load() < uint64(clients); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			cancel()
			return sample{}, errors.New("no leader, or no progress, within a minute")
		}
	}
	before := c.look(&done)
	time.Sleep(d)
	after := c.look(&done)
	cancel()
	wg.Wait()
	return after.minus(before), nil
}

// look adds up the counters of all nodes.
func (c *cluster) look(done *atomic.Uint64) (s sample) {
	s.commands = float64(done.Load())
	s.cpu = process.OwnCPU().Seconds()
	for i, h := range c.hosts {
		st := h.Status()
		s.step += st.Step.Busy.Seconds()
		s.stepItems += float64(st.Step.Items)
		s.stepKiB += float64(st.Step.Bytes) / 1024
		s.apply += st.Apply.Busy.Seconds()
		s.applyItems += float64(st.Apply.Items)
		s.applyKiB += float64(st.Apply.Bytes) / 1024
		s.applied += float64(st.Counters.AppliedCommands)
		for _, classes := range c.transports[i].Stats().Peers {
			for class := range wire.NumClasses {
				s.messages += float64(classes[class].SentMessages)
				s.wireKiB += float64(classes[class].SentBytes) / 1024
			}
		}
		e := c.engines[i].Stats()
		s.writes += float64(e.Batches)
		s.entries += float64(e.Entries)
		s.logKiB += float64(e.WrittenBytes) / 1024
	}
	return s
}

func (s sample) minus(o sample) sample {
	return sample{
		s.commands - o.commands, s.cpu - o.cpu, s.step - o.step, s.stepItems - o.stepItems, s.stepKiB - o.stepKiB,
		s.apply - o.apply, s.applyItems - o.applyItems, s.applyKiB - o.applyKiB, s.applied - o.applied,
		s.messages - o.messages, s.wireKiB - o.wireKiB, s.writes - o.writes, s.entries - o.entries, s.logKiB - o.logKiB,
	}
}

// logAlone has a log engine by itself make writes of some entries each.
func logAlone(tmp string, size, entries, writes int) (s sample, err error) {
	dir, err := os.MkdirTemp(tmp, "")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	e, err := storage.Open(dir, storage.Options{Identity: storage.Identity{Cluster: 1, Node: 1}})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	g, err := e.Group(1)
	if err != nil {
		return s, err
	}
	begun, data := process.OwnCPU().Seconds(), make([]byte, size)
	for i := range writes {
		var w storage.Write
		for k := range entries {
			w.Entries = append(w.Entries, &pb.Entry{Term: new(uint64(1)), Index: new(uint64(i*entries + k + 1)), Data: data})
		}
		if err := g.AppendWait(context.Background(), w); err != nil {
			return s, err
		}
	}
	return sample{cpu: process.OwnCPU().Seconds() - begun, writes: float64(writes), entries: float64(writes * entries),
		logKiB: float64(e.Stats().WrittenBytes) / 1024}, nil
}

// disk measures the time of a sync, and of a KiB on top.
func disk(tmp string) (sync, kib time.Duration, err error) {
	took := func(bytes, n int) (time.Duration, error) {
		f, err := os.CreateTemp(tmp, "")
		if err != nil {
			return 0, err
		}
		defer f.Close() //nolint:errcheck // it goes away with its directory
		best, b := time.Hour, make([]byte, bytes)
		for range n {
			begun := time.Now()
			if _, err := f.Write(b); err != nil {
				return 0, err
			}
			if err := f.Sync(); err != nil {
				return 0, err
			}
			best = min(best, time.Since(begun))
		}
		return best, nil
	}
	small, err := took(512, 50)
	if err != nil {
		return 0, 0, err
	}
	large, err := took(4<<20, 20)
	return small, max(0, large-small) / (4 << 10), err
}
