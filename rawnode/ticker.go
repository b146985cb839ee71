// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"slices"
	"sync"
	"time"
)

// Hosts of one process with the same tick share one ticker. A shared ticker costs less than
// a ticker for each host, and heartbeats leave at the same moment: heartbeats to one node
// then share frames.
type sharedTicker struct {
	interval time.Duration
	ticks    []chan struct{} // one for each host; guarded by tickersMu
}

var (
	tickersMu sync.Mutex
	tickers   = map[time.Duration]*sharedTicker{}
)

// newTicks returns a channel that gets a token at each tick, unless it has one,
// and a function that ends that.
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
