// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	processes "github.com/weftraft/weft/cmd/internal/cluster"
)

// verify compares the keys and values of each replica with the present files on
// disk. Each node is asked for its own applied state, not through Raft, and makes
// the digests from its stored bytes.
func (d *run) verify(ctx context.Context) error {
	d.p.status("verifying: reading the files again")
	want, err := d.set.digests(ctx)
	if err != nil {
		return err
	}
	var checked atomic.Int64
	total := len(want) * len(d.cluster.nodes)
	g, gctx := errgroup.WithContext(ctx)
	for _, n := range d.cluster.nodes {
		g.Go(func() error {
			held, err := n.Digests(gctx, func(keys int) {
				d.p.status("verifying: %d of %d files", checked.Add(int64(keys)), total)
			})
			if err != nil {
				return fmt.Errorf("verify: %w", err)
			}
			if err := processes.Compare(want, held); err != nil {
				return fmt.Errorf("node %d does not hold what was loaded (files that changed meanwhile look the same): %w", n.id, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	d.verified = len(want)
	return nil
}
