// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/loop"
)

// settings are those of a node, the same on all sides.
type settings struct {
	ID, Cluster uint64
	Peers       map[uint64]string
	Data        string
	Tick        time.Duration // a heartbeat each, and an election after electionTicks
}

const (
	electionTicks = 10
	shard         = 1 // the only group
)

func (s settings) timeout() time.Duration { return electionTicks * s.Tick }

// side is a library. Run runs a node of it until ctx ends, and has its service served until then: Put,
// and Status with ID, Leader, Term and, as Applied, the number of commands applied since the start.
type side struct {
	name, about string
	run         func(ctx context.Context, s settings, serve func(kvpb.KVServer) (stop func())) error
}

// sides begin with the one that others are compared with.
var sides = []side{
	{"weft", "Host of Weft, full copies", runWeft(false)},
	{"coded", "Host of Weft, coding on from 4 KiB on", runWeft(true)},
	{"loop", "a minimal loop on go.etcd.io/raft v3.7.0 (`cmd/weftbench/internal/loop`)", runLoop},
	{"dragonboat", "dragonboat v4 (2024-06-18), an on-disk state machine, Tan as the log", runDragonboat},
	{"hashicorp", "hashicorp/raft v1.7.3, raft-wal v0.4.2 as the log, commands applied in batches", runHashicorp},
}

func runLoop(ctx context.Context, s settings, serve func(kvpb.KVServer) (stop func())) error {
	return loop.Serve(ctx, loop.Config{
		ID: s.ID, Peers: s.Peers, Data: s.Data, Tick: s.Tick, HeartbeatTicks: 1, ElectionTicks: electionTicks,
	}, serve)
}
