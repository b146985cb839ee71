// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// fresh is for how long a State is good enough for further viewers.
	fresh = 400 * time.Millisecond
	// askTimeout bounds one report.
	askTimeout = 600 * time.Millisecond
	// noteInterval is how often events are looked for while nobody views the page.
	noteInterval = 2 * time.Second
	// rateWindow and latencyWindow are the times that rates and latencies cover.
	rateWindow    = 3 * time.Second
	latencyWindow = 10 * time.Second
	// maxWatches bounds the groups that are remembered.
	maxWatches = 16
	// maxEvents bounds the events that are remembered, of each group.
	maxEvents = 100
)

// Collector asks nodes for reports. Its methods may be called from several goroutines.
type Collector struct {
	self    uint64
	sources []Source
	now     func() time.Time

	mu      sync.Mutex
	watches map[uint64]*watch
	paused  map[uint64]bool // by a command
}

// watch is what is remembered of a group.
type watch struct {
	group  uint64
	viewed time.Time // guarded by Collector.mu

	mu     sync.Mutex // held while reports are asked for
	at     time.Time  // of state
	state  *State
	upTo   uint64
	ledger *ledger
	events *events
}

// NewCollector returns a collector. The node self, or 0 in a demonstration, shows the
// page.
func NewCollector(self uint64, sources []Source) *Collector {
	return &Collector{self: self, sources: sources, now: time.Now, watches: map[uint64]*watch{}, paused: map[uint64]bool{}}
}

// Run looks for events of group 1 until ctx ends, so that a viewer sees what happened
// before.
func (c *Collector) Run(ctx context.Context) {
	t := time.NewTicker(noteInterval)
	defer t.Stop()
	for {
		c.State(ctx, 1)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// State returns the state of a group, 1 or more, not older than half a second. A node
// that does not answer in time is shown as such: there is no error.
func (c *Collector) State(ctx context.Context, group uint64) *State {
	w := c.watch(group)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := c.now()
	if w.state != nil && now.Sub(w.at) < fresh {
		return w.state
	}
	// A viewer that leaves must not have nodes appear to be down.
	ctx = context.WithoutCancel(ctx)
	got := c.ask(ctx, Ask{Group: group, UpTo: w.upTo})
	now = c.now()
	c.mu.Lock()
	paused := maps.Clone(c.paused)
	c.mu.Unlock()
	w.take(now, got, paused, c.self)
	return w.state
}

// Note adds an event to all groups that are watched, and to group 1.
func (c *Collector) Note(kind, text string) {
	c.watch(1)
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.watches))
	now := c.now()
	c.mu.Unlock()
	for _, w := range all {
		w.events.add(now, kind, text)
	}
}

// SetPaused says that a node's process stands still, or goes on: such a node is shown as
// paused, not as down.
func (c *Collector) SetPaused(id uint64, yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.paused, id); yes {
		c.paused[id] = true
	}
}

// Paused reports what SetPaused was told last.
func (c *Collector) Paused(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused[id]
}

// Expire has the next State ask anew.
func (c *Collector) Expire() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.watches))
	c.mu.Unlock()
	for _, w := range all {
		w.mu.Lock()
		w.at = time.Time{}
		w.mu.Unlock()
	}
}

// watch returns what is remembered of a group. The group viewed longest ago is forgotten
// if there are too many, but never group 1.
func (c *Collector) watch(group uint64) *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[group]
	if w == nil {
		w = &watch{group: group, ledger: newLedger(), events: &events{}}
		c.watches[group] = w
	}
	w.viewed = c.now()
	for len(c.watches) > maxWatches {
		var oldest *watch
		for _, o := range c.watches {
			if o.group != 1 && o != w && (oldest == nil || o.viewed.Before(oldest.viewed)) {
				oldest = o
			}
		}
		delete(c.watches, oldest.group)
	}
	return w
}

// answer is what a source said.
type answer struct {
	node *Node
	err  error
}

// ask asks all sources at once.
func (c *Collector) ask(ctx context.Context, ask Ask) map[uint64]answer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answers := make([]answer, len(c.sources))
	var all sync.WaitGroup
	for i, s := range c.sources {
		all.Go(func() {
			n, err := s.Read(ctx, ask)
			if err == nil {
				err = n.check(s.ID, ask)
			}
			if err != nil {
				n = nil
			}
			answers[i] = answer{n, err}
		})
	}
	all.Wait()
	byID := make(map[uint64]answer, len(answers))
	for i, s := range c.sources {
		byID[s.ID] = answers[i]
	}
	return byID
}

// take makes the state of answers.
func (w *watch) take(now time.Time, got map[uint64]answer, paused map[uint64]bool, self uint64) {
	up := map[uint64]*Node{}
	for id, a := range got {
		if a.node != nil {
			up[id] = a.node
		}
	}
	w.events.compare(now, view{w.state == nil, up, w.ledger.last, got, paused})
	w.ledger.note(now, up)
	w.at = now
	w.state = w.merge(now, up, got, paused)
	w.state.Self = self
	w.upTo = w.state.Commit
}
