// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
)

// A port sends in order of urgency; what is interrupted loses no time.
func TestPortPriorities(t *testing.T) {
	type through struct {
		size int
		at   time.Duration
	}
	var agenda world.Agenda
	var got []through
	p := port{agenda: &agenda, rate: 1000, sent: func(k *packet) { got = append(got, through{k.size, agenda.Now()}) }}
	put := func(at time.Duration, size int, c class) {
		agenda.At(at, func() { p.enqueue(&packet{size: size, class: c}) })
	}
	put(0, 1000, gossip)
	put(100*time.Millisecond, 500, bulk)
	put(200*time.Millisecond, 501, bulk)
	put(300*time.Millisecond, 10, control)
	agenda.At(400*time.Millisecond, func() { require.Equal(t, 2001, p.bytes) })
	for agenda.Step(time.Minute) {
	}
	require.Equal(t, []through{
		{10, 310 * time.Millisecond}, {500, 610 * time.Millisecond}, {501, 1111 * time.Millisecond}, {1000, 2011 * time.Millisecond},
	}, got)
	require.Zero(t, p.bytes)
}

// What is left when the rate changes takes the new rate.
func TestPortRateChanges(t *testing.T) {
	var agenda world.Agenda
	var got []time.Duration
	p := port{agenda: &agenda, rate: 1000, sent: func(*packet) { got = append(got, agenda.Now()) }}
	p.enqueue(&packet{size: 1000})
	p.enqueue(&packet{size: 1000})
	agenda.At(time.Second/2, func() { p.setRate(250) })
	agenda.At(3*time.Second, func() { p.setRate(0) })
	for agenda.Step(time.Minute) {
	}
	require.Equal(t, []time.Duration{5 * time.Second / 2, 3 * time.Second}, got)
}

// A link that is slower than the card sets the time; others wait for the card
// alone.
func TestSlowLink(t *testing.T) {
	c := cluster(t, 3, Node{Egress: 1e6}, Link{Delay: time.Millisecond})
	require.NoError(t, c.SetLink(1, 2, Link{Delay: time.Millisecond, Rate: 1e5}))
	m := &pb.Message{Type: pb.MsgApp.Enum(), Entries: []*pb.Entry{{Data: make([]byte, 100e3)}}}
	_, size, _ := sizeOf(m)
	for _, to := range []int{1, 2} {
		w := c.nodes[0].wires[to]
		w.waiting += size
		c.nodes[0].card.enqueue(&packet{m: m, wire: w, size: size, class: bulk})
	}
	require.Equal(t, size, c.wire(1, 2).slow.bytes)
	require.NoError(t, c.Run(time.Second*3/2))
	arrived := func(id uint64) float64 { return c.wire(1, id).way.Last(int(bulk)).Seconds() }
	require.InDelta(t, 1.001, arrived(2), 0.001)
	require.InDelta(t, 0.201, arrived(3), 0.001)
	require.Zero(t, c.wire(1, 2).waiting+c.wire(1, 2).slow.bytes)
}
