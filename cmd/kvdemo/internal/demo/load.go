// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/internal/lab"
)

// load is the state of the loaders.
type load struct {
	lab.Acks     // of all writes
	started      time.Time
	result       *lab.Result  // when the load has ended
	files, bytes atomic.Int64 // acknowledged

	mu        sync.Mutex
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
	d.load = &load{started: time.Now()}
	clients, err := d.clients()
	if err != nil {
		return err
	}
	defer closeAll(clients)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	loaders := lab.Load{
		Clients: d.cfg.Loaders, Next: d.feed(giveUp), Note: d.load.Note,
		Do: func(ctx context.Context, c *lab.Call) error {
			err := d.put(ctx, clients[c.Client%len(clients)], d.set.files[c.All], c)
			if err != nil {
				giveUp(err)
			}
			return err
		},
	}
	stop := d.watch(ctx, giveUp)
	d.load.result, err = loaders.Run(ctx)
	stop()
	if cause := context.Cause(ctx); cause != nil {
		return cause // of what the loaders say
	}
	return err
}

func closeAll(clients []*client.Client) {
	for _, c := range clients {
		_ = c.Close() // nothing is under way
	}
}

// clients returns a client for each node, which asks that node first. A write that
// may have been applied is repeated, because only one loader writes a key, and with
// one value.
func (d *run) clients() ([]*client.Client, error) {
	endpoints := d.cluster.Clients()
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

// feed returns what hands out the files and takes the steps.
func (d *run) feed(giveUp func(error)) func(context.Context, int) (time.Time, bool) {
	steps := d.steps()
	return func(ctx context.Context, i int) (time.Time, bool) {
		for len(steps) > 0 && (i >= steps[0].at || i == len(d.set.files)) {
			if err := steps[0].do(ctx); err != nil {
				giveUp(err)
				return time.Time{}, false
			}
			steps = steps[1:]
		}
		return time.Now(), i < len(d.set.files)
	}
}

// put writes a file. The call is due when the file is read.
func (d *run) put(ctx context.Context, c *client.Client, f file, call *lab.Call) error {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("read a file to load: %w", err)
	}
	call.Due = time.Now()
	at, err := c.Put(ctx, f.key, data)
	if err != nil {
		return fmt.Errorf("put %s: %w", f.key, err)
	}
	d.load.acknowledge(at.Index, len(data))
	return nil
}

func (l *load) acknowledge(index uint64, size int) {
	l.files.Add(1)
	l.bytes.Add(int64(size))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastIndex = max(l.lastIndex, index)
}

// index returns the highest log index of an acknowledged write.
func (l *load) index() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastIndex
}

// watch shows how the load goes until it is stopped, and gives up when it cannot
// go on.
func (d *run) watch(ctx context.Context, giveUp func(error)) (stop func()) {
	return lab.Background(ctx, func(ctx context.Context) {
		for lab.Sleep(ctx, 200*time.Millisecond) == nil {
			d.cluster.poll(ctx)
			if err := d.cluster.trouble(); err != nil {
				giveUp(err)
			}
			d.showLoad()
		}
	})
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
		float64(files)/seconds, leader, d.cluster.up(), len(d.cluster.nodes))
}
