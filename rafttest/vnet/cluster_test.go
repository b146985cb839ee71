// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func cluster(t testing.TB, n int, hw Node, link Link, edit ...func(*Options)) *Cluster {
	t.Helper()
	o := Options{Nodes: make([]Node, n), Link: func(_, _ uint64) Link { return link }, Seed: 7}
	for i := range o.Nodes {
		o.Nodes[i] = hw
	}
	for _, e := range edit {
		e(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

func load(t testing.TB, c *Cluster, o LoadOptions) *Load {
	t.Helper()
	l, err := c.StartLoad(o)
	require.NoError(t, err)
	return l
}

// With nothing but delays a proposal takes a round trip and a sync.
func TestRoundTrip(t *testing.T) {
	c := cluster(t, 3, Node{Sync: time.Millisecond}, Link{Delay: 5 * time.Millisecond})
	require.NoError(t, c.Elect(1))
	l := load(t, c, LoadOptions{Clients: 1, Sizes: []int{100}, Most: 50})
	require.NoError(t, c.Run(c.Now()+5*time.Second))
	require.Len(t, l.Calls(), 50)
	for _, call := range l.Calls() {
		require.Equal(t, 11*time.Millisecond, call.Latency())
	}
}

// A card that is shared sets the pace: full copies to four followers.
func TestEgressIsShared(t *testing.T) {
	const size = 64 << 10
	c := cluster(t, 5, Node{Egress: 125e6}, Link{Delay: 50 * time.Microsecond})
	require.NoError(t, c.Elect(1))
	start := c.Now()
	l := load(t, c, LoadOptions{Clients: 64, Sizes: []int{size}, Most: 2000})
	done, err := c.RunUntil(c.Now()+time.Minute, func() bool { return len(l.Calls()) == 2000 })
	require.NoError(t, err)
	require.True(t, done)
	took := l.Calls()[1999].Done - start
	ideal := time.Duration(2000 * 4 * size / 125e6 * float64(time.Second))
	require.InEpsilon(t, ideal.Seconds(), took.Seconds(), 0.02)
	perByte := float64(c.SentBy(1).Total()) / (2000 * size)
	require.InEpsilon(t, 4.0, perByte, 0.01)
}

func BenchmarkMessages(b *testing.B) {
	for _, size := range []int{64, 4096, 65536} {
		b.Run(fmt.Sprintf("N=5/size=%d", size), func(b *testing.B) {
			c := cluster(b, 5, Node{Egress: 125e6, Sync: 100 * time.Microsecond}, Link{Delay: 50 * time.Microsecond, Jitter: 20 * time.Microsecond})
			require.NoError(b, c.Elect(1))
			l := load(b, c, LoadOptions{Clients: 64, Sizes: []int{size}})
			before := c.Counts()
			b.ResetTimer()
			for b.Loop() {
				want := len(l.Calls()) + 1
				_, err := c.RunUntil(1<<60, func() bool { return len(l.Calls()) >= want })
				require.NoError(b, err)
			}
			after := c.Counts()
			messages := float64(after.Messages - before.Messages)
			b.ReportMetric(messages/b.Elapsed().Seconds(), "messages/s")
			b.ReportMetric(messages/float64(b.N), "messages/op")
			b.ReportMetric(float64(after.Events-before.Events)/messages, "events/message")
		})
	}
}
