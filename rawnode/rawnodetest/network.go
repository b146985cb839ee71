// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
)

// Errors of a [Network].
var (
	// ErrJoined says that the group has a receiver at this node already.
	ErrJoined = errors.New("rawnodetest: the group has a receiver")
	// ErrUnreachable says that a node is not on the network, or is cut off.
	ErrUnreachable = errors.New("rawnodetest: the node cannot be reached")
	// ErrClosed says that the transport is closed.
	ErrClosed = errors.New("rawnodetest: the transport is closed")
)

// queueBytes bounds the messages that wait for a node, in each class; a single message may be
// larger.
const queueBytes = 4 << 20

// Network is a network in memory for the hosts of one process, in real time or in a bubble of
// testing/synctest. Messages are encoded and decoded. For runs decided by a seed see [Cluster].
type Network struct {
	mu    sync.Mutex
	nodes map[uint64]*Transport
	links map[[2]uint64]Link
}

// NewNetwork returns a network without nodes. Close each Transport.
func NewNetwork() *Network {
	return &Network{nodes: map[uint64]*Transport{}, links: map[[2]uint64]Link{}}
}

// SetLink changes the link from a node to another. Of the fields of l, a Network uses only Delay
// and Cut.
func (n *Network) SetLink(from, to uint64, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[[2]uint64{from, to}] = l
}

// way returns the link to a node and the node's transport, or nil if the link is cut or the node is
// not on the network.
func (n *Network) way(from, to uint64) (Link, *Transport) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.links[[2]uint64{from, to}]
	if l.Cut {
		return l, nil
	}
	return l, n.nodes[to]
}

// Transport returns a new transport for a node, which replaces an earlier transport of the node.
func (n *Network) Transport(node uint64) *Transport {
	t := &Transport{net: n, id: node, groups: map[uint64]rawnode.Receiver{}, lanes: map[laneID]*lane{}, done: make(chan struct{}), told: make(chan lost, 1024)}
	t.spawn(t.tell)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[node] = t
	return t
}

// Transport is a node's end of a [Network]: a [rawnode.Transport].
type Transport struct {
	net *Network
	id  uint64

	mu     sync.Mutex
	groups map[uint64]rawnode.Receiver
	lanes  map[laneID]*lane
	closed bool
	done   chan struct{}
	told   chan lost // dropped messages to report
	wg     sync.WaitGroup
}

var _ rawnode.Transport = (*Transport)(nil)

type lost struct{ group, peer uint64 }

type laneID struct {
	to    uint64
	class wire.Class
}

// lane is a queue of messages of one class to one node, with a goroutine that delivers them.
type lane struct {
	mu    sync.Mutex
	queue []packet
	bytes int
	more  chan struct{} // has a token when a message waits
	room  chan struct{} // closed, and made anew, when a message has left
}

type packet struct {
	group uint64
	body  []byte
}

func (t *Transport) spawn(f func()) {
	t.wg.Go(f)
}

// Join implements [rawnode.Transport].
func (t *Transport) Join(group uint64, r rawnode.Receiver) error {
	if r == nil {
		return errors.New("rawnodetest: a receiver of nil")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case t.groups[group] != nil:
		return fmt.Errorf("%w: group %d at node %d", ErrJoined, group, t.id)
	}
	t.groups[group] = r
	return nil
}

// Leave implements [rawnode.Transport].
func (t *Transport) Leave(group uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.groups, group)
}

// HasAddress reports whether the node is on the network.
func (t *Transport) HasAddress(node uint64) bool {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	return t.net.nodes[node] != nil
}

// receiver returns the receiver of a group, or nil.
func (t *Transport) receiver(group uint64) rawnode.Receiver {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	return t.groups[group]
}

// Send implements [rawnode.Transport].
func (t *Transport) Send(messages []rawnode.Message) {
	for _, m := range messages {
		if _, err := t.put(m, false); err != nil {
			t.drop(m.Group, m.To)
		}
	}
}

// SendWait implements [rawnode.Transport].
func (t *Transport) SendWait(ctx context.Context, m rawnode.Message) error {
	for {
		room, err := t.put(m, true)
		if err != nil || room == nil {
			return err
		}
		if _, to := t.net.way(t.id, m.To); to == nil {
			return fmt.Errorf("%w: node %d", ErrUnreachable, m.To)
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.done:
			return ErrClosed
		}
	}
}

var errNoRoom = errors.New("rawnodetest: no room")

// put queues a message. Without room, put returns a channel that is closed when a message has left,
// if wait is set, and otherwise an error.
func (t *Transport) put(m rawnode.Message, wait bool) (room <-chan struct{}, err error) {
	if _, to := t.net.way(t.id, m.To); to == nil {
		return nil, fmt.Errorf("%w: node %d", ErrUnreachable, m.To)
	}
	body, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	l, err := t.lane(laneID{m.To, m.Class()})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes > 0 && l.bytes+len(body) > queueBytes {
		if wait {
			return l.room, nil
		}
		return nil, errNoRoom
	}
	l.bytes += len(body)
	l.queue = append(l.queue, packet{m.Group, body})
	select {
	case l.more <- struct{}{}:
	default:
	}
	return nil, nil
}

func (t *Transport) lane(id laneID) (*lane, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	l := t.lanes[id]
	if l == nil {
		l = &lane{more: make(chan struct{}, 1), room: make(chan struct{})}
		t.lanes[id] = l
		t.spawn(func() { t.carry(id, l) })
	}
	return l, nil
}

// next waits for the next message; false if the transport is closed.
func (l *lane) next(done <-chan struct{}) (packet, bool) {
	for {
		l.mu.Lock()
		if len(l.queue) > 0 {
			p := l.queue[0]
			l.queue[0] = packet{}
			l.queue = l.queue[1:]
			l.mu.Unlock()
			return p, true
		}
		l.mu.Unlock()
		select {
		case <-l.more:
		case <-done:
			return packet{}, false
		}
	}
}

// left makes room after a message was delivered.
func (l *lane) left(p packet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes -= len(p.body)
	close(l.room)
	l.room = make(chan struct{})
}

// carry delivers the messages of a lane, one after another.
func (t *Transport) carry(id laneID, l *lane) {
	for {
		p, ok := l.next(t.done)
		if !ok {
			return
		}
		link, to := t.net.way(t.id, id.to)
		if link.Delay > 0 && to != nil {
			select {
			case <-time.After(link.Delay):
			case <-t.done:
				return
			}
			_, to = t.net.way(t.id, id.to)
		}
		switch {
		case to == nil || to.gone():
			t.drop(p.group, id.to)
		default:
			to.deliver(t.id, id.class, p)
		}
		l.left(p)
	}
}

func (t *Transport) gone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// deliver hands a message to the receiver of its group, if the group is joined at this node.
func (t *Transport) deliver(from uint64, class wire.Class, p packet) {
	r := t.receiver(p.group)
	if r == nil {
		return
	}
	var m rawnode.Message
	if err := m.UnmarshalBinary(p.body); err != nil || m.From != from {
		return // as a transport between processes does, because peers are not trusted
	}
	m.Background = class == wire.ClassBackground
	r.Receive(m)
}

// drop plans the report of a message that was not sent.
func (t *Transport) drop(group, peer uint64) {
	select {
	case t.told <- lost{group, peer}:
	default: // a thousand reports wait already
	}
}

// tell reports dropped messages.
func (t *Transport) tell() {
	for {
		select {
		case l := <-t.told:
			if r := t.receiver(l.group); r != nil {
				r.Unreachable(l.peer)
			}
		case <-t.done:
			return
		}
	}
}

// Close ends the transport and waits for its goroutines, so receivers must return from Receive. A
// second call has no effect.
func (t *Transport) Close() error {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	t.mu.Unlock()
	if closed {
		return nil
	}
	close(t.done)
	t.net.mu.Lock()
	if t.net.nodes[t.id] == t {
		delete(t.net.nodes, t.id)
	}
	t.net.mu.Unlock()
	t.wg.Wait()
	return nil
}
