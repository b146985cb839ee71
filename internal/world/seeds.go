// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// CollectLess has the collector of this process run less often: after 64 MB or more, until the
// process has a gigabyte. Whole clusters live in a few megabytes, and leave much garbage: to
// collect at every doubling of so little would cost a third of the time.
func CollectLess() {
	debug.SetGCPercent(1600)
	debug.SetMemoryLimit(1 << 30)
}

// Seeds runs n seeds from the first on, on all processors, and hands each result
// to take, one at a time, until that returns false.
func Seeds[R any](first, n uint64, run func(seed uint64) R, take func(R) (goOn bool)) {
	CollectLess()
	var (
		next atomic.Uint64
		stop atomic.Bool
		mu   sync.Mutex
		wg   sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !stop.Load() {
				k := next.Add(1) - 1
				if k >= n {
					return
				}
				r := run(first + k)
				mu.Lock()
				if !stop.Load() && !take(r) {
					stop.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
