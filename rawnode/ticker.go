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
	ticks    []chan struct{} // one channel for each host; guarded by tickersMu
}

var (
	tickersMu sync.Mutex
	tickers   = map[time.Duration]*sharedTicker{}
)

// newTicks returns a channel that gets a token at each tick unless the channel is full, and a
// function that removes the channel from the ticker.
func newTicks(interval time.Duration) (ticks chan struct{}, stop func()) {
	ticks = make(chan struct{}, 1)
	tickersMu.Lock()
	defer tickersMu.Unlock()
	t := tickers[interval]
	if t == nil {
		t = &sharedTicker{interval: interval}
		tickers[interval] = t
		go t.run()
	}
	t.ticks = append(t.ticks, ticks)
	return ticks, func() {
		tickersMu.Lock()
		defer tickersMu.Unlock()
		t.ticks = slices.DeleteFunc(t.ticks, func(c chan struct{}) bool { return c == ticks })
	}
}

// run ticks until no host is left.
func (t *sharedTicker) run() {
	ticker := time.NewTicker(t.interval)
	defer ticker.Stop()
	for range ticker.C {
		if !t.tick() {
			return
		}
	}
}

func (t *sharedTicker) tick() bool {
	tickersMu.Lock()
	defer tickersMu.Unlock()
	for _, c := range t.ticks {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	if len(t.ticks) == 0 {
		delete(tickers, t.interval)
	}
	return len(t.ticks) > 0
}
