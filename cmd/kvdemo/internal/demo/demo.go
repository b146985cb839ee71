// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package demo runs a whole kvdemo cluster as child processes on this machine,
// loads files into the cluster, kills nodes meanwhile, and compares the keys and
// values of every replica with the files.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/room"
)

// Bounds of [Config].
const (
	MinNodes   = 3
	MaxNodes   = 9
	MaxLoaders = 256
)

// Config says what to run.
type Config struct {
	Files   string   // the directory whose files are loaded
	Limit   int      // load at most so many; 0: all
	Nodes   int      // processes, MinNodes to MaxNodes
	Loaders int      // concurrent writers, 1 to MaxLoaders
	Data    string   // directory for the nodes' data; empty: a temporary one
	Keep    bool     // leave the data there
	Serve   []string // command line of one node, to which its flags are added
	Args    []string // flags of "serve" that all nodes get, such as --core
	JSON    bool     // the result as JSON
	Leases  bool     // Args turn roster leases on: read at all nodes in the end
	// Page, unless empty, is where to serve a page to watch, host:port. The nodes go on
	// then, under a light load, until ctx ends, which is no error.
	Page string
	// Unprotected lets Page be an address that other machines reach.
	Unprotected bool
	// Codes says that the nodes code, so that a page can choose the policy.
	Codes bool
	// Progress is the output for events, redrawn in place on a terminal; Result is
	// the output for the outcome.
	Progress, Result io.Writer

	free func(dir string) (uint64, error) // room.Free, but in tests
}

// Validate returns an error that names every mistake, or nil.
func (c Config) Validate() error {
	var errs []error
	bad := func(flag string, value, lo, hi int) {
		if value < lo || value > hi {
			errs = append(errs, fmt.Errorf("--%s: %d, want %d to %d", flag, value, lo, hi))
		}
	}
	bad("nodes", c.Nodes, MinNodes, MaxNodes)
	bad("loaders", c.Loaders, 1, MaxLoaders)
	bad("limit", c.Limit, 0, 1<<30)
	return errors.Join(append(errs, c.checkPage())...)
}

const (
	// patience is how long the cluster may take for a step that makes no
	// progress by itself: to start, to elect a leader, to catch up, to stop.
	patience = 30 * time.Second
	// putTimeout bounds one write, over the attempts at all nodes.
	putTimeout = 20 * time.Second
)

// Run runs the demonstration. After Run, whatever the outcome, no process is left,
// and no data either, unless Config asks to keep the data.
func Run(ctx context.Context, cfg Config) (err error) {
	if err := cfg.Validate(); err != nil {
		return err
	}
	set, err := findFiles(cfg.Files, cfg.Limit)
	if err != nil {
		return err
	}
	dir, remove, err := dataDir(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := checkRoom(cfg, dir, set); err != nil {
		return err
	}
	p := newProgress(cfg.Progress)
	defer p.close()
	p.event("%d files, %s, from %s", len(set.files), megabytes(uint64(set.bytes)), cfg.Files)
	for _, s := range set.skipped {
		p.event("left out %s", s)
	}
	c, err := startCluster(ctx, cfg, dir, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	d := &run{cfg: cfg, set: set, cluster: c, p: p}
	closePage, err := d.servePage(ctx)
	if err != nil {
		return err
	}
	defer closePage()
	if err := d.story(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return nil
}

// dataDir returns an empty directory for the nodes, and a function that removes the directory.
func dataDir(cfg Config) (dir string, remove func() error, err error) {
	if dir = cfg.Data; dir == "" {
		if dir, err = os.MkdirTemp("", "kvdemo-"); err != nil {
			return "", nil, fmt.Errorf("make a data directory: %w; name one with --data", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("--data: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, fmt.Errorf("--data: %w", err)
	}
	if len(entries) > 0 {
		return "", nil, fmt.Errorf("--data: %s is not empty (it has %d files or directories); remove it or name another directory", dir, len(entries))
	}
	return dir, func() error {
		if cfg.Keep {
			return nil
		}
		return os.RemoveAll(dir)
	}, nil
}

// checkRoom compares the room on the disk with what the nodes may take: each
// file twice at each node, in the log and in the state.
func checkRoom(cfg Config, dir string, set fileSet) error {
	free := cfg.free
	if free == nil {
		free = room.Free
	}
	need := max(2*uint64(cfg.Nodes)*uint64(set.bytes), room.ForNode)
	if err := room.Check(free, dir, need); err != nil {
		return fmt.Errorf("--data: %w for the data of %d nodes; %s", err, cfg.Nodes, makeRoom)
	}
	return nil
}

// makeRoom is the advice in errors about a full disk.
const makeRoom = "name another directory with --data, or load fewer files with --limit"

// run is one demonstration under way.
type run struct {
	cfg     Config
	set     fileSet
	cluster *cluster
	p       *progress
	load    *load
	outages []outage
	// verified is how many files every replica was found to hold.
	verified int
	reads    []nodeReads
	watched  *watched // nil without a page
}

// story is the demonstration: load, and kill and restart on the way; then
// compare, and stop.
func (d *run) story(ctx context.Context) error {
	if err := d.loadAll(ctx); err != nil {
		return err
	}
	if err := d.cluster.waitApplied(ctx, d.load.index(), d.p); err != nil {
		return err
	}
	if err := d.verify(ctx); err != nil {
		return err
	}
	if err := d.readEverywhere(ctx); err != nil {
		return err
	}
	d.cluster.poll(ctx)
	if d.watched != nil {
		return d.goOn(ctx)
	}
	d.p.event("stopping the nodes")
	if err := d.cluster.Stop(); err != nil {
		return err
	}
	return d.report()
}
