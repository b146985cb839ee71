// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
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
// some, until ctx ends. Calls that find no worker are left out, not made up for.
func (d *run) lightLoad(ctx context.Context) error {
	clients, err := d.clients()
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range clients {
			_ = c.Close() // nothing is under way
		}
	}()
	jobs := make(chan file)
	var all errgroup.Group
	for i := range lightWorkers * len(clients) {
		all.Go(func() error {
			for f := range jobs {
				d.touch(ctx, clients[i%len(clients)], f)
			}
			return nil
		})
	}
	d.feedLightly(ctx, jobs)
	close(jobs)
	return all.Wait()
}

// feedLightly hands out as many files a second as are wanted.
func (d *run) feedLightly(ctx context.Context, jobs chan<- file) {
	t := time.NewTicker(lightTick)
	defer t.Stop()
	owed, next := 0.0, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		d.watched.lookAfter()
		for owed += float64(d.watched.writes.Load()) * lightTick.Seconds(); owed >= 1; owed-- {
			select {
			case jobs <- d.set.files[next%len(d.set.files)]:
				next++
			default: // all workers wait for nodes
			}
		}
	}
}

// touch writes a file, and reads another. A failure shows on the page.
func (d *run) touch(ctx context.Context, c *client.Client, f file) {
	ctx, cancel := context.WithTimeout(ctx, lightTimeout)
	defer cancel()
	data, err := os.ReadFile(f.path)
	if err != nil {
		return // the file is gone since
	}
	_, _ = c.Put(ctx, f.key, data)
	if other := d.set.files[rand.IntN(len(d.set.files))]; other.size <= kv.MaxInlineBytes {
		_, _ = c.Get(ctx, other.key, nil)
	}
}
