// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"slices"
	"sync"
	"time"
)

// sharedTicker is the ticker of all hosts of one process with the same tick. A shared ticker costs
// less than a ticker for each host, and heartbeats leave at the same moment, so that heartbeats to
// one node share frames.
type sharedTicker struct {
	interval time.Duration
	hosts    []*ticked // guarded by tickersMu
}

// ticked is a host of a ticker.
type ticked struct {
	ticks chan time.Time
	look  func() // is called with each tick, also while the host's loop hangs, and must not wait
}

var (
	tickersMu sync.Mutex
	tickers   = map[time.Duration]*sharedTicker{}
)

// newTicks returns a channel that gets the time for which each tick was due unless the channel is full,
// and a function that removes the channel from the ticker. look is called with each tick.
func newTicks(interval time.Duration, look func()) (ticks chan time.Time, stop func()) {
	host := &ticked{ticks: make(chan time.Time, 1), look: look}
	tickersMu.Lock()
	defer tickersMu.Unlock()
	t := tickers[interval]
	if t == nil {
		t = &sharedTicker{interval: interval}
		tickers[interval] = t
		go t.run()
	}
	t.hosts = append(t.hosts, host)
	return host.ticks, func() {
		tickersMu.Lock()
		defer tickersMu.Unlock()
		t.hosts = slices.DeleteFunc(t.hosts, func(other *ticked) bool { return other == host })
	}
}

// run ticks until no host is left.
func (t *sharedTicker) run() {
	ticker := time.NewTicker(t.interval)
	defer ticker.Stop()
	for due := range ticker.C {
		if !t.tick(due) {
			return
		}
	}
}

func (t *sharedTicker) tick(due time.Time) bool {
	tickersMu.Lock()
	defer tickersMu.Unlock()
	for _, h := range t.hosts {
		select {
		case h.ticks <- due:
		default:
		}
		h.look()
	}
	if len(t.hosts) == 0 {
		delete(tickers, t.interval)
	}
	return len(t.hosts) > 0
}
