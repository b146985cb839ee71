// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// Limits are a peer's rights here. A peer need not be a member of any group: a node
// that only forwards proposals, or only reads, is a known node with limits of its own.
type Limits struct {
	// Kinds names the kinds of messages allowed to the peer; none means all. An honest
	// peer is told, and does not send others. The kinds are "raft", "proposal", "verdict",
	// "transfer", "chunk", "chunk-status", "snapshot-offer" and "snapshot-fetch" of snapshots,
	// "first-members", "settings", "health" and "log-end", "gateway-attach", "gateway-query", "gateway-report" and
	// "gateway-reply" of gateways, "named", "lack" and "fill" of names (see rawnode.Config.Names), "want" and "run" of
	// relays, and "note", of package weft. A peer with an unknown name here is refused.
	Kinds []string
	// ReceiveBytes bounds the bytes of the peer's frames in memory here at a time; 0
	// means Config.ReceiveBytes, and less than 4 KiB means 4 KiB. Further frames stay in the network, and a single
	// larger frame ends its connection. Control frames are not counted, because control
	// frames are small and must not wait.
	ReceiveBytes int
}

// controlFrame bounds frames of wire.ClassControl, whatever MaxFrameBytes is.
const controlFrame = 1 << 20

// maxFrame is the bound of frames of a class.
func (c Config) maxFrame(class wire.Class) int {
	if class == wire.ClassControl {
		return min(c.MaxFrameBytes, controlFrame)
	}
	return c.MaxFrameBytes
}

// takes returns the length of the largest frame taken on a peer's connection.
func (c Config) takes(who caller) int {
	bound := c.maxFrame(who.class)
	if who.class != wire.ClassControl {
		bound = min(bound, who.limits.ReceiveBytes+wire.HeaderLen)
	}
	return bound
}

// caller is the other end of an incoming connection.
type caller struct {
	node   uint64
	class  wire.Class
	limits Limits
	kinds  wire.Kinds // of limits
	conn   *incoming
	// gateway: the caller is a gateway, and no node.
	gateway bool
}

// permits decides on a connection's messages: a message must come from the peer at the
// other end, go to this node, be of the connection's class, and be of a kind allowed to
// the peer.
func (c Config) permits(who caller, m wire.Message) error {
	switch {
	case m.From != who.node || m.To != c.Node:
		return fmt.Errorf("%w: it goes from node %d to node %d, on a connection from %d to %d", errMessage, m.From, m.To, who.node, c.Node)
	case m.Class() != who.class:
		return fmt.Errorf("%w: a %v of class %v, on a connection for %v", errMessage, m.Kind(), m.Class(), who.class)
	case !who.kinds.Has(m.Kind()):
		return fmt.Errorf("%w: node %d may not send a %v", errMessage, who.node, m.Kind())
	case who.gateway && changesMembers(m):
		return fmt.Errorf("%w: gateway %d may not change members", errMessage, who.node)
	case c.Allow == nil:
		return nil
	}
	if err := c.Allow(who.node, m.Kind().String()); err != nil {
		return fmt.Errorf("%w: a %v from node %d: %w", errMessage, m.Kind(), who.node, err)
	}
	return nil
}

func changesMembers(m wire.Message) bool {
	p, ok := m.Body.(wire.Proposal)
	return ok && p.ConfChange
}

// budget is the memory for the frames of a peer.
type budget struct {
	mu    sync.Mutex
	limit int
	used  int
	room  chan struct{} // closed when some is given back; nil while nobody waits
}

func (b *budget) setLimit(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = n
	b.wake()
}

func (b *budget) inUse() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// wake wakes waiting goroutines. The caller holds b.mu.
func (b *budget) wake() {
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// take waits until n bytes are free and takes them.
func (b *budget) take(ctx context.Context, n int) (waited time.Duration, err error) {
	var start time.Time
	for {
		b.mu.Lock()
		if n > b.limit {
			defer b.mu.Unlock()
			return waited, fmt.Errorf("%w: a frame of %d bytes, the peer's receive budget is %d", wire.ErrTooLarge, n, b.limit)
		}
		if b.used+n <= b.limit {
			b.used += n
			b.mu.Unlock()
			if !start.IsZero() {
				waited = time.Since(start)
			}
			return waited, nil
		}
		if b.room == nil {
			b.room = make(chan struct{})
		}
		room := b.room
		b.mu.Unlock()
		if start.IsZero() {
			start = time.Now()
		}
		select {
		case <-room:
		case <-ctx.Done():
			return waited, errClosed
		}
	}
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.wake()
}
