// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/weftbench/internal/load"
)

// disk is the number of bytes that a replica writes to disk for each byte of payload;
// occupied bytes are not counted.
type disk struct {
	Side    string  `json:"side"`
	Payload int64   `json:"payload_bytes"`
	Log     float64 `json:"log_per_payload_byte"`   // as the log's writer counts
	Total   float64 `json:"total_per_payload_byte"` // as the kernel counts
}

// disks writes a fixed load to a new cluster of each side, stops the cluster in good
// order, so that writes put off are done, and asks for the bytes written.
func (b *bench) disks(ctx context.Context) error {
	if b.cfg.DiskBytes == 0 {
		return nil
	}
	for i := range b.cfg.Sides {
		d, err := b.disk(ctx, i)
		if err != nil {
			return fmt.Errorf("%s: disk bytes: %w", b.cfg.Sides[i].Name, err)
		}
		b.say("disk bytes per payload byte and replica  %-9s log %.2f, log and state %.2f", d.Side, d.Log, d.Total)
		b.report.Disks = append(b.report.Disks, d)
	}
	return nil
}

func (b *bench) disk(ctx context.Context, side int) (_ *disk, err error) {
	c, err := b.start(ctx, side, "-disk")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	plan := b.plan(c.Clients(), row{Clients: 16, Size: b.cfg.DiskSize}, 0, 0)
	plan.Calls = b.cfg.DiskBytes / b.cfg.DiskSize
	r, err := load.Run(ctx, plan)
	if err != nil {
		return nil, err
	}
	if err := c.Settle(ctx, 10*time.Second); err != nil {
		return nil, err
	}
	log, err := logBytes(ctx, c)
	if err != nil {
		return nil, err
	}
	total, err := c.StopAndCount()
	if err != nil {
		return nil, err
	}
	payload := r.Calls * int64(b.cfg.DiskSize)
	perReplica := float64(payload) * float64(len(c.Nodes))
	return &disk{Side: c.Name, Payload: payload, Log: float64(log) / perReplica, Total: float64(total) / perReplica}, nil
}

// logBytes returns the number of bytes that all nodes have written to their logs.
func logBytes(ctx context.Context, c *cluster.Cluster) (sum uint64, err error) {
	for i, s := range c.Status(ctx) {
		if s == nil {
			return 0, fmt.Errorf("node %d does not answer", c.Nodes[i].ID)
		}
		sum += s.GetLogWrittenBytes()
	}
	return sum, nil
}
