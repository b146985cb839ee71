// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// answering is a state for gateways: the command and the question "large" have results of 4 MiB.
type answering struct{ *counts }

func (answering) bytes(of string) []byte {
	if of == "large" {
		return make([]byte, 4<<20)
	}
	return []byte(of)
}

func (a answering) Apply(b rawnode.Batch) ([]any, error) {
	results, err := a.counts.Apply(b)
	for i, c := range b.Commands {
		results[i] = a.bytes(string(c))
	}
	return results, err
}

func (a answering) Query(_ context.Context, request []byte) ([]byte, error) {
	return a.bytes(string(request)), nil
}

// narrow is a transport for small messages.
type narrow struct{ *plug }

const narrowBytes = 3 << 20

func (narrow) MaxMessageBytes() int { return narrowBytes }

// withGateway runs hosts 1 to 3, and gateway 9, once it has a home.
func withGateway(t *testing.T, f func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host, g *rawnode.Gateway)) {
	inBubble(t, 3, func(cfg *rawnode.Config) {
		cfg.StateMachine, cfg.Transport = answering{newCounts(1)}, narrow{cfg.Transport.(*plug)}
		cfg.Replica.MaxCommandBytes = 1 << 20
	}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
		net.setLose(func(m wire.Message) bool { return m.Size() > narrowBytes })
		g, err := rawnode.NewGateway(rawnode.GatewayConfig{ID: 9, Group: 1, Transport: narrow{&plug{hub: net, id: 9}}, TickInterval: bubbleTick,
			MaxCommandBytes: 1 << 20, Homes: func() []uint64 { return []uint64{1, 2, 3} }})
		require.NoError(t, err)
		defer g.Stop()
		_, err = g.Propose(within(20*time.Second), []byte("before"))
		require.NoError(t, err)
		f(t, net, hosts, g)
	})
}

func (h *hub) setLose(lose func(wire.Message) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lose = lose
}

// Gateways ask without end, and what they have asked waits for a leader: a host is stopped all the same.
func TestStopWaitsForNoQueryOfAGateway(t *testing.T) {
	withGateway(t, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host, g *rawnode.Gateway) {
		net.setLose(func(m wire.Message) bool { return m.From != 9 && m.To != 9 })
		time.Sleep(time.Second) // no member leads any more
		ended := make(chan error, 1)
		go func() {
			_, _, err := g.Query(within(30*time.Second), []byte("q"), rawnode.ReadOptions{})
			ended <- err
		}()
		time.Sleep(time.Second)
		asked := 0
		for _, h := range hosts {
			if h.Status().Waiting == 0 {
				continue
			}
			asked++
			begin := time.Now()
			require.NoError(t, h.Stop(within(20*time.Second)))
			require.Less(t, time.Since(begin), time.Second)
		}
		require.NotZero(t, asked)
		require.ErrorIs(t, <-ended, rawnode.ErrRefused)
	})
}

// A gateway goes to another home when its own is stopped, and loses no result by that: it would else notice the silence, and know
// nothing of what was applied meanwhile.
func TestGatewayLeavesAHomeThatStops(t *testing.T) {
	withGateway(t, func(t *testing.T, _ *hub, hosts map[uint64]*rawnode.Host, g *rawnode.Gateway) {
		home := g.Status().Home
		require.NoError(t, hosts[home].Stop(within(20*time.Second)))
		for range 100 {
			_, err := g.Propose(within(20*time.Second), []byte("x"))
			require.NoError(t, err)
		}
		require.NotEqual(t, home, g.Status().Home)
	})
}

// What does not fit a message is told in words: the transport would drop it each time that it is sent, and the gateway would
// hear of no later command.
func TestResultsForGatewaysFitTheTransport(t *testing.T) {
	withGateway(t, func(t *testing.T, _ *hub, _ map[uint64]*rawnode.Host, g *rawnode.Gateway) {
		_, err := g.Propose(within(20*time.Second), []byte("large"))
		require.ErrorIs(t, err, rawnode.ErrNoBytes)
		require.ErrorContains(t, err, "4194304 bytes, the bound is 2097152")
		result, err := g.Propose(within(20*time.Second), []byte("after"))
		require.NoError(t, err)
		require.Equal(t, []byte("after"), result.Value)
		_, _, err = g.Query(within(20*time.Second), []byte("large"), rawnode.ReadOptions{})
		require.ErrorIs(t, err, rawnode.ErrQuery)
		require.ErrorContains(t, err, "4194304 bytes, the bound is 2097152")
	})
}
