// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package survivor brings a state machine to the end of the log of a node that does not run:
// the first step of each way back after a majority of the members is lost.
package survivor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// never is an election timeout, in ticks, that does not come.
const never = 1 << 28

// Start runs a host of node id on the tail of a group's log. The host talks to nobody, and does not
// lead. The caller stops the host.
func Start(id, group uint64, tail *replica.LogTail, sm rawnode.StateMachine, logger *slog.Logger) (*rawnode.Host, error) {
	return rawnode.New(rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: id, Group: group, Log: tail, ElectionTick: never},
		StateMachine: sm,
		Transport:    nobody{},
		TickInterval: time.Second,
		Logger:       logger,
	})
}

// AwaitApplied waits until a host has applied its log.
func AwaitApplied(ctx context.Context, host *rawnode.Host, tail *replica.LogTail) error {
	last, _ := tail.Last()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for host.Status().Applied < last {
		select {
		case <-ticker.C:
		case <-host.Done():
			return errors.Join(rawnode.ErrStopped, host.Err())
		case <-ctx.Done():
			return fmt.Errorf("wait for the state machine to apply the log to index %d: %w", last, context.Cause(ctx))
		}
	}
	return nil
}

// nobody is a transport without peers.
type nobody struct{}

func (nobody) Join(uint64, rawnode.Receiver) error { return nil }
func (nobody) Leave(uint64)                        {}
func (nobody) Send([]wire.Message)                 {}

func (nobody) SendWait(context.Context, wire.Message) error {
	return errors.New("a node that is being recovered talks to nobody")
}
