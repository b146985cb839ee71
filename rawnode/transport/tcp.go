// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/wire"
)

// TCP is a rawnode.Transport over TCP. Its methods may be called from several
// goroutines.
type TCP struct {
	cfg        Config
	listener   net.Listener
	context    context.Context // ends at Close
	cancel     context.CancelFunc
	goroutines sync.WaitGroup
	hellos     chan struct{} // a token for each connection that has not said hello
	count      counters

	mu     sync.Mutex
	peers  map[uint64]*peer
	groups map[uint64]rawnode.Receiver
	closed bool
}

var _ rawnode.Transport = (*TCP)(nil)

// peer is what there is for a known node.
type peer struct {
	id       uint64
	address  string
	sending  [wire.NumClasses]*link // nil until used
	incoming [wire.NumClasses]net.Conn
	traffic  [wire.NumClasses]traffic
}

// maxHellos bounds the connections of strangers that are open at a time.
const maxHellos = 64

// New listens and returns a transport. An error names the address if it is in
// use.
func New(cfg Config) (*TCP, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	t := &TCP{
		cfg: cfg, listener: cfg.Listener, hellos: make(chan struct{}, maxHellos),
		peers: map[uint64]*peer{}, groups: map[uint64]rawnode.Receiver{},
	}
	if t.listener == nil {
		var err error
		if t.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return nil, fmt.Errorf("transport: listen for peers at %s (is another node running there?): %w", cfg.Listen, err)
		}
	}
	for id, address := range cfg.Peers {
		if id != cfg.Node {
			t.peers[id] = &peer{id: id, address: address}
		}
	}
	t.context, t.cancel = context.WithCancel(context.Background())
	t.spawn(t.accept)
	return t, nil
}

// Addr returns the address that the transport listens at.
func (t *TCP) Addr() net.Addr { return t.listener.Addr() }

// spawn starts a goroutine that Close waits for. The caller holds t.mu, or is
// such a goroutine, or is New.
func (t *TCP) spawn(f func()) {
	t.goroutines.Add(1)
	go func() {
		defer t.goroutines.Done()
		f()
	}()
}

// SetPeer makes a node known, or gives it another address from its next
// connection on. An empty address means that it is not dialed.
func (t *TCP) SetPeer(id uint64, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == 0 || id == t.cfg.Node {
		return
	}
	if p := t.peers[id]; p != nil {
		p.address = address
		return
	}
	t.peers[id] = &peer{id: id, address: address}
}

// RemovePeer forgets a node and closes its connections.
func (t *TCP) RemovePeer(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[id]; p != nil {
		delete(t.peers, id)
		p.close()
	}
}

// close ends a peer's connections. The caller holds t.mu.
func (p *peer) close() {
	for _, l := range p.sending {
		if l != nil {
			l.close()
		}
	}
	for _, c := range p.incoming {
		if c != nil {
			_ = c.Close() // it is given up; what it says is of no interest
		}
	}
}

// Join implements rawnode.Transport.
func (t *TCP) Join(group uint64, r rawnode.Receiver) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	if t.groups[group] != nil {
		return fmt.Errorf("%w: group %d", ErrGroupTaken, group)
	}
	t.groups[group] = r
	return nil
}

// Leave implements rawnode.Transport.
func (t *TCP) Leave(group uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.groups, group)
}

// Send implements rawnode.Transport.
func (t *TCP) Send(messages []wire.Message) {
	for _, m := range messages {
		l, err := t.link(m)
		if err == nil {
			err = l.offer(m)
		}
		if err != nil {
			t.dropped(m)
		}
	}
}

// SendWait implements rawnode.Transport.
func (t *TCP) SendWait(ctx context.Context, m wire.Message) error {
	l, err := t.link(m)
	if err != nil {
		return err
	}
	return l.offerWait(ctx, m)
}

// link returns the connection that a message belongs on.
func (t *TCP) link(m wire.Message) (*link, error) {
	if n := m.Size() + wire.HeaderLen; n > t.cfg.MaxFrameBytes {
		return nil, fmt.Errorf("%w: %d bytes, the bound is %d", ErrTooLarge, n, t.cfg.MaxFrameBytes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	p := t.peers[m.To]
	if p == nil || p.address == "" {
		return nil, fmt.Errorf("%w: node %d has no address", ErrUnreachable, m.To)
	}
	l := p.sending[m.Class()]
	if l == nil {
		l = newLink(t, p, m.Class())
		p.sending[m.Class()] = l
		t.spawn(l.run)
	}
	return l, nil
}

// dropped counts a message that was not sent and tells its group.
func (t *TCP) dropped(m wire.Message) {
	t.count.dropped.Add(1)
	if r := t.receiver(m.Group); r != nil {
		r.Unreachable(m.To)
	}
}

func (t *TCP) receiver(group uint64) rawnode.Receiver {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.groups[group]
}

// broken tells all groups that a connection to a peer is lost.
func (t *TCP) broken(to uint64) {
	t.mu.Lock()
	receivers := make([]rawnode.Receiver, 0, len(t.groups))
	for _, r := range t.groups {
		receivers = append(receivers, r)
	}
	t.mu.Unlock()
	for _, r := range receivers {
		r.Unreachable(to)
	}
}

func (t *TCP) address(p *peer) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return p.address
}

// Close ends all connections and waits for the goroutines behind them. Groups
// should have left before.
func (t *TCP) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrClosed
	}
	t.closed = true
	for _, p := range t.peers {
		p.close()
	}
	t.mu.Unlock()
	t.cancel()
	err := t.listener.Close()
	t.goroutines.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}
