// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"math/rand/v2"
	"os"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

const (
	// lightTimeout bounds a call of the light load. It may fail: viewers kill nodes.
	lightTimeout = 5 * time.Second
	// lightTick is how often calls are due.
	lightTick = 20 * time.Millisecond
	// lightWorkers is how many calls are under way at most, at each node.
	lightWorkers = 4
)

// lightLoad writes the files again and again, with the content that they have, and reads
// some, until ctx ends. A call that is due while all clients are busy is left out, and never made up for.
func (d *run) lightLoad(ctx context.Context) error {
	clients, err := d.clients()
	if err != nil {
		return err
	}
	defer closeAll(clients)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		for lab.Sleep(ctx, lightTick) == nil {
			d.watched.lookAfter()
		}
	}()
	defer func() { <-watching }() // ctx has ended, or nothing has begun
	l := lab.Load{
		Clients: lightWorkers * len(clients), Next: d.lightly(), Timeout: lightTimeout,
		Do: func(ctx context.Context, c *lab.Call) error {
			d.touch(ctx, clients[c.Client%len(clients)], d.set.files[c.All%len(d.set.files)])
			return nil
		},
	}
	_, err = l.Run(ctx)
	if ctx.Err() != nil {
		return nil // without a call, if nobody wanted one
	}
	return err
}

// lightly returns what lets as many calls a second begin as are wanted.
func (d *run) lightly() func(context.Context, int) (time.Time, bool) {
	owed, last := 0.0, time.Now()
	return func(ctx context.Context, _ int) (time.Time, bool) {
		for owed < 1 {
			if lab.Sleep(ctx, lightTick) != nil {
				return time.Time{}, false
			}
			now := time.Now()
			wanted := float64(d.watched.writes.Load())
			// What is owed for longer than a few ticks was left out.
			owed = min(owed+wanted*now.Sub(last).Seconds(), max(wanted*4*lightTick.Seconds(), 1))
			last = now
		}
		owed--
		return time.Now(), true
	}
}

// touch writes a file, and reads another. A failure shows on the page.
func (d *run) touch(ctx context.Context, c *client.Client, f file) {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return // the file is gone since
	}
	_, _ = c.Put(ctx, f.key, data)
	if other := d.set.files[rand.IntN(len(d.set.files))]; other.size <= kv.MaxInlineBytes {
		_, _ = c.Get(ctx, &kvpb.GetRequest{Key: other.key})
	}
}
