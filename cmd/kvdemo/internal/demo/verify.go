// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// maxDifferences is how many differences of one replica are named.
const maxDifferences = 5

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
			return verifyReplica(gctx, n, want, func(keys int) {
				d.p.status("verifying: %d of %d files", checked.Add(int64(keys)), total)
			})
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	d.verified = len(want)
	return nil
}

// verifyReplica lists the keys and digests of one node, and compares.
func verifyReplica(ctx context.Context, n *node, want map[string][sha256.Size]byte, progress func(keys int)) error {
	c, err := client.New(client.Config{Endpoints: []string{n.Client}, Timeout: patience})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	var diff differences
	seen := 0
	for req := (&kvpb.ListRequest{Local: true, Digests: true}); ; {
		page, err := c.List(ctx, req)
		if err != nil {
			return fmt.Errorf("verify node %d: %w", n.id, err)
		}
		for _, item := range page.GetItems() {
			sum, ok := want[item.GetKey()]
			switch {
			case !ok:
				diff.add("%s is not among the files", item.GetKey())
			case !bytes.Equal(sum[:], item.GetSha256()):
				diff.add("%s differs: its SHA-256 is %x, that of the file %x", item.GetKey(), item.GetSha256(), sum)
			default:
				seen++
			}
		}
		progress(len(page.GetItems()))
		if req.After = page.GetNext(); req.After == "" {
			break
		}
	}
	if seen != len(want) {
		diff.add("%d of %d files are right", seen, len(want))
	}
	return diff.err(n.id)
}

// differences collects what is wrong with a replica.
type differences struct {
	found []string
	more  int
}

func (d *differences) add(format string, args ...any) {
	if len(d.found) < maxDifferences {
		d.found = append(d.found, fmt.Sprintf(format, args...))
	} else {
		d.more++
	}
}

func (d *differences) err(node uint64) error {
	if len(d.found) == 0 {
		return nil
	}
	return fmt.Errorf("node %d does not hold what was loaded (files that changed meanwhile look the same): %q and %d more", node, d.found, d.more)
}
