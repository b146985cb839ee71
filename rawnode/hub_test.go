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
	cut   map[uint64]bool         // the nodes without any connection
	lose  func(wire.Message) bool // unless nil, which messages are lost; called under mu
	takes wire.Kinds              // of messages, as announced by all
	zones map[uint64]string       // of nodes
}

// plug is a node's transport. A message waits for the previous message of its class.
type plug struct {
	hub    *hub
	id     uint64
	to     rawnode.Receiver
	queues [wire.NumClasses]chan wire.Message
}

func newHub() *hub { return &hub{nodes: map[uint64]*plug{}, cut: map[uint64]bool{}} }

func (h *hub) setCut(id uint64, cut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cut[id] = cut
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
	p.to = r
	for class := range p.queues {
		queue := make(chan wire.Message, 1<<16)
		p.queues[class] = queue
		go func() {
			for m := range queue {
				r.Receive(m)
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
		_ = p.SendWait(context.Background(), m) // an error means that the message is lost
	}
}

func (p *plug) SendWait(_ context.Context, m wire.Message) error {
	to := p.hub.receiver(m)
	if to == nil {
		return nil
	}
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	if p.hub.nodes[m.To] == to { // otherwise the receiver has left
		to.queues[m.Class()] <- m
	}
	return nil
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
