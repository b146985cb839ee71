// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// hub is a network without delays in virtual time: the hosts of a bubble of
// testing/synctest.
type hub struct {
	mu    sync.Mutex
	nodes map[uint64]*plug
	cut   map[uint64]bool              // the nodes without any connection
	lose  func(wire.Message) bool      // unless nil, which messages are lost; called under mu
	takes wire.Kinds                   // of messages, as announced by all
	paces func(wire.Message) time.Time // unless nil, when a message arrives
	zones map[uint64]string            // of nodes
}

// plug is a node's transport. A message waits for the previous message of its class.
type plug struct {
	hub    *hub
	id     uint64
	queues [wire.NumClasses]chan arrival
}

type arrival struct {
	wire.Message
	at time.Time
}

func newHub() *hub { return &hub{nodes: map[uint64]*plug{}, cut: map[uint64]bool{}} }

func (h *hub) setCut(id uint64, cut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cut[id] = cut
}

// heal ends the cut of a node once the others have settled: a command that has been answered may not be applied at the other
// members yet, nor are their logs compacted, because virtual time stands still while goroutines work.
func (h *hub) heal(id uint64) {
	time.Sleep(time.Second)
	h.setCut(id, false)
}

// receiver returns the receiving end for a message, or nil if the message is lost.
func (h *hub) receiver(m wire.Message) *plug {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut[m.From] || h.cut[m.To] || h.lose != nil && h.lose(m) {
		return nil
	}
	return h.nodes[m.To]
}

// Announced returns the kinds of messages that all nodes take.
func (p *plug) Announced(uint64) (wire.Kinds, wire.Capabilities, bool) {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return p.hub.takes, 0, true
}

// Zone returns a node's zone.
func (p *plug) Zone(node uint64) string {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return p.hub.zones[node]
}

func (p *plug) Join(_ uint64, r rawnode.Receiver) error {
	for class := range p.queues {
		queue := make(chan arrival, 1<<16)
		p.queues[class] = queue
		go func() {
			for m := range queue {
				time.Sleep(time.Until(m.at))
				r.Receive(m.Message)
			}
		}()
	}
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	p.hub.nodes[p.id] = p
	return nil
}

func (p *plug) Leave(uint64) {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	delete(p.hub.nodes, p.id)
	for _, queue := range p.queues {
		close(queue)
	}
}

func (p *plug) Send(messages []wire.Message) {
	for _, m := range messages {
		p.put(m)
	}
}

// queued is how far ahead of its arrival a message that must wait leaves: the link's queue.
const queued = time.Second

func (p *plug) SendWait(ctx context.Context, m wire.Message) error {
	select {
	case <-time.After(time.Until(p.put(m)) - queued):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// put sends a message, and returns when it arrives. A message that is lost has arrived.
func (p *plug) put(m wire.Message) (at time.Time) {
	at = time.Now()
	to := p.hub.receiver(m)
	if to == nil {
		return at
	}
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	if p.hub.nodes[m.To] != to { // the receiver has left
		return at
	}
	if p.hub.paces != nil {
		at = p.hub.paces(m)
	}
	to.queues[m.Class()] <- arrival{m, at}
	return at
}

// bubbleTick is the tick of hosts in bubbles. No host outside a bubble may have the same tick,
// because hosts with the same tick share a timer.
const bubbleTick = 11 * time.Millisecond

// inBubble runs hosts 1 to n in virtual time, and stops them at the end.
func inBubble(t *testing.T, n uint64, adjust func(*rawnode.Config), f func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host)) {
	synctest.Test(t, func(t *testing.T) {
		onHub(t, n, adjust, f)
		time.Sleep(2 * bubbleTick) // the shared timer ends
	})
}

// onHub runs hosts 1 to n on a hub.
func onHub(t *testing.T, n uint64, adjust func(*rawnode.Config), f func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host)) {
	net, hosts := newHub(), map[uint64]*rawnode.Host{}
	var peers []uint64
	for id := uint64(1); id <= n; id++ {
		peers = append(peers, id)
	}
	for _, id := range peers {
		engine, err := storage.Open("log", storage.Options{FS: vfs.NewMem(), Identity: storage.Identity{Cluster: 9, Node: id}})
		require.NoError(t, err)
		log, err := engine.Group(1)
		require.NoError(t, err)
		cfg := rawnode.Config{
			Replica:      rawnode.ReplicaConfig{ID: id, Group: 1, Log: log, Peers: peers, Boot: 1},
			StateMachine: newCounts(1), Transport: &plug{hub: net, id: id}, TickInterval: bubbleTick,
		}
		if adjust != nil {
			adjust(&cfg)
		}
		h, err := rawnode.New(cfg)
		require.NoError(t, err)
		hosts[id] = h
		defer func() {
			_ = h.Stop(within(0)) // the test may have stopped the host already
			require.NoError(t, engine.Close())
		}()
	}
	f(t, net, hosts)
}
