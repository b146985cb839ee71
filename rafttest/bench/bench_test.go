// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCore runs each row for both libraries.
func BenchmarkCore(b *testing.B) {
	for _, r := range rows() {
		for _, lib := range libraries {
			b.Run(r.name+"/lib="+lib.name, func(b *testing.B) {
				s := r.start(lib)
				defer s.finish()
				b.ReportAllocs()
				b.SetBytes(r.bytes)
				for n := 0; b.Loop(); n++ {
					if s.between != nil && n%batch == 0 {
						b.StopTimer()
						s.between()
						b.StartTimer()
					}
					s.op()
				}
			})
		}
	}
}

// cost is what an operation takes, on average.
type cost struct{ bytes, allocs, storageCalls float64 }

func (s *subject) finish() {
	if s.stop != nil {
		s.stop()
	}
}

// measure counts over a number of batches.
func measure(lib library, r row, batches int) cost {
	s := r.start(lib)
	defer s.finish()
	var sum cost
	var before, after runtime.MemStats
	for i := range batches {
		if s.between != nil {
			s.between()
		}
		calls := s.storageCalls()
		runtime.ReadMemStats(&before)
		for range batch {
			s.op()
		}
		runtime.ReadMemStats(&after)
		if i == 0 {
			continue // fills what is kept between operations
		}
		sum.bytes += float64(after.TotalAlloc - before.TotalAlloc)
		sum.allocs += float64(after.Mallocs - before.Mallocs)
		sum.storageCalls += float64(s.storageCalls() - calls)
	}
	n := float64(batch * (batches - 1))
	return cost{sum.bytes / n, sum.allocs / n, sum.storageCalls / n}
}

// No operation takes more bytes, allocations or Storage calls than upstream's.
func TestNoDearerThanUpstream(t *testing.T) {
	t.Logf("%-34s %31s   %31s", "", "upstream", "weft")
	t.Logf("%-34s %11s %9s %9s   %11s %9s %9s", "operation", "B", "allocs", "Storage", "B", "allocs", "Storage")
	for _, r := range rows() {
		theirs, ours := measure(libraries[0], r, 9), measure(libraries[1], r, 9)
		t.Logf("%-34s %11.1f %9.2f %9.2f   %11.1f %9.2f %9.2f", r.name,
			theirs.bytes, theirs.allocs, theirs.storageCalls, ours.bytes, ours.allocs, ours.storageCalls)
		// The runtime itself may allocate meanwhile, a few bytes on average.
		require.LessOrEqual(t, ours.bytes, theirs.bytes+4, "%s: bytes", r.name)
		require.LessOrEqual(t, ours.allocs, theirs.allocs+0.02, "%s: allocations", r.name)
		require.LessOrEqual(t, ours.storageCalls, theirs.storageCalls, "%s: Storage calls", r.name)
	}
}

//go:generate sh -c "sed -f upstream.sed weft_test.go > upstream_test.go"

// TestUpstreamIsGenerated checks that both libraries run the same host code.
func TestUpstreamIsGenerated(t *testing.T) {
	want, err := exec.Command("sed", "-f", "upstream.sed", "weft_test.go").Output()
	require.NoError(t, err)
	theirs, err := os.ReadFile("upstream_test.go")
	require.NoError(t, err)
	require.Equal(t, string(want), string(theirs), "run go generate ./rafttest/bench")
}
