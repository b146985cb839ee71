// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
)

// load is the state of the loaders.
type load struct {
	started, ended time.Time
	files, bytes   atomic.Int64 // acknowledged

	mu        sync.Mutex
	acks      []time.Time // of all writes
	latency   *hdrhistogram.Histogram
	lastIndex uint64 // highest log index of a write
}

// step is something that happens on the way.
type step struct {
	at int // when so many files have been handed to the loaders
	do func(context.Context) error
}

// loadAll loads all files with concurrent writers, while the steps of the story
// happen. A step is taken between two files, so that it always comes in the
// middle of the load, however fast that is.
func (d *run) loadAll(ctx context.Context) error {
	d.load = &load{started: time.Now(), latency: hdrhistogram.New(1, int64(putTimeout/time.Microsecond), 3)}
	clients, err := d.clients()
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range clients {
			_ = c.Close() // nothing is under way
		}
	}()
	queue := make(chan file)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	g, gctx := errgroup.WithContext(ctx)
	for i := range d.cfg.Loaders {
		g.Go(func() error { return d.loader(gctx, clients[i%len(clients)], queue) })
	}
	g.Go(func() error {
		defer close(queue)
		return d.feed(gctx, queue)
	})
	stop := d.watch(ctx, giveUp)
	err = g.Wait()
	d.load.ended = time.Now()
	stop()
	if cause := context.Cause(ctx); cause != nil {
		return cause // of what the loaders say
	}
	return err
}

// clients returns one client for each node to begin with. A write that may have
// been applied is repeated: each key is written by one loader, with one value.
func (d *run) clients() ([]*client.Client, error) {
	var endpoints []string
	for _, n := range d.cluster.nodes {
		endpoints = append(endpoints, n.client)
	}
	var clients []*client.Client
	for i := range endpoints {
		c, err := client.New(client.Config{Endpoints: endpoints, First: i, Timeout: putTimeout})
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

// feed hands out the files and takes the steps.
func (d *run) feed(ctx context.Context, queue chan<- file) error {
	steps := d.steps()
	for i, f := range d.set.files {
		for len(steps) > 0 && i >= steps[0].at {
			if err := steps[0].do(ctx); err != nil {
				return err
			}
			steps = steps[1:]
		}
		select {
		case queue <- f:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// loader writes files until there are no more.
func (d *run) loader(ctx context.Context, c *client.Client, queue <-chan file) error {
	for f := range queue {
		data, err := os.ReadFile(f.path)
		if err != nil {
			return fmt.Errorf("read a file to load: %w", err)
		}
		begin := time.Now()
		at, err := c.Put(ctx, f.key, data)
		if err != nil {
			return fmt.Errorf("put %s: %w", f.key, err)
		}
		d.load.acknowledge(at.Index, len(data), begin)
	}
	return nil
}

func (l *load) acknowledge(index uint64, size int, begin time.Time) {
	now := time.Now()
	l.files.Add(1)
	l.bytes.Add(int64(size))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks = append(l.acks, now)
	l.lastIndex = max(l.lastIndex, index)
	_ = l.latency.RecordValue(min(now.Sub(begin), putTimeout).Microseconds()) // in range
}

// index returns the highest log index of an acknowledged write.
func (l *load) index() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastIndex
}

// gapAfter returns the longest time without an acknowledgement that began
// between from, when it begins anew, and until.
func (l *load) gapAfter(from, until time.Time) (longest time.Duration) {
	l.mu.Lock()
	acks := slices.Clone(l.acks)
	l.mu.Unlock()
	slices.SortFunc(acks, time.Time.Compare)
	last := from
	for _, t := range acks {
		if last.After(until) {
			break
		}
		if t.After(from) {
			longest, last = max(longest, t.Sub(last)), t
		}
	}
	return longest
}

// watch shows how the load goes until it is stopped, and gives up when it cannot
// go on.
func (d *run) watch(ctx context.Context, giveUp func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			d.cluster.poll(ctx)
			if err := d.cluster.trouble(); err != nil {
				giveUp(err)
			}
			d.showLoad()
		}
	}()
	return func() { cancel(); <-done }
}

func (d *run) showLoad() {
	files, bytes := d.load.files.Load(), d.load.bytes.Load()
	seconds := time.Since(d.load.started).Seconds()
	leader := "no leader"
	if n := d.cluster.leader(); n != nil {
		leader = fmt.Sprintf("leader %d", n.id)
	}
	d.p.status("loading: %d/%d files, %.1f/%.1f MB, %.0f/s, %s, %d/%d nodes",
		files, len(d.set.files), float64(bytes)/1e6, float64(d.set.bytes)/1e6,
		float64(files)/seconds, leader, len(d.cluster.upNodes()), len(d.cluster.nodes))
}
