// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/wire"
)

// refusedError is an error with the reason for refusing a connection.
type refusedError struct {
	reason refusalReason
	error
}

func (e refusedError) Unwrap() error { return e.error }

func refuse(reason refusalReason, format string, args ...any) error {
	return refusedError{reason, fmt.Errorf(format, args...)}
}

// refusalOf returns the reason for refusing a connection; by default silence.
func refusalOf(err error) refusalReason {
	var r refusedError
	if errors.As(err, &r) {
		return r.reason
	}
	return refusedSilence
}

// welcome reads and answers a hello. With an error, the returned connection, if any, is
// for telling the error.
func (t *TCP) welcome(raw net.Conn) (net.Conn, *peer, caller, error) {
	fail := func(conn net.Conn, err error) (net.Conn, *peer, caller, error) { return conn, nil, caller{}, err }
	if err := raw.SetDeadline(time.Now().Add(t.cfg.DialTimeout)); err != nil {
		return fail(raw, err)
	}
	conn, badge, err := t.unveil(raw)
	if err != nil {
		return fail(conn, err)
	}
	hello, err := wire.ReadHello(conn)
	if errors.Is(err, wire.ErrFrame) || errors.Is(err, wire.ErrTooLarge) {
		return fail(conn, refuse(refusedHello, "read hello: %w", err))
	}
	if err != nil {
		return fail(conn, fmt.Errorf("read hello: %w", err))
	}
	p, who, err := t.admit(hello, badge, raw)
	if err != nil {
		return fail(conn, err)
	}
	err = wire.Answer{Kinds: who.kinds, Capabilities: wire.Capabilities(t.cfg.Capabilities), Frame: uint64(t.cfg.takes(who)), Zone: t.cfg.Zone}.Write(conn)
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		t.forget(p, who)
		return fail(conn, fmt.Errorf("answer hello: %w", err))
	}
	return conn, p, who, nil
}

// turnAway counts a refused connection, and tells a listening other end the reason.
// Then turnAway reads a little more, because closing a connection with unread bytes
// makes the kernel throw away the bytes written.
func (t *TCP) turnAway(raw, conn net.Conn, why error) {
	if t.context.Err() != nil {
		return
	}
	if t.strangers.PushedOut(raw) {
		why = refuse(refusedCrowd, "too many connections that have not said hello")
	}
	reason := refusalOf(why)
	t.count.refusals[reason].Add(1)
	t.log(slog.LevelWarn, about{refusal: reason}, "connection refused", "from", raw.RemoteAddr(), "error", why)
	var refused refusedError
	if conn == nil || !errors.As(why, &refused) || (wire.Answer{Refused: why.Error()}).Write(conn) != nil {
		return
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, conn, wire.MaxHelloLen) // until the peer hangs up, or the deadline
}

// admit decides about a hello. A peer's new connection replaces its old one, which the
// peer has lost even if this end does not know yet.
func (t *TCP) admit(h wire.Hello, who badge, raw net.Conn) (*peer, caller, error) {
	fail := func(err error) (*peer, caller, error) { return nil, caller{}, err }
	if err := who.covers(h); err != nil {
		return fail(err) // before telling anything about this node
	}
	switch {
	case h.Cluster != t.cfg.Cluster:
		return fail(refuse(refusedCluster, "this is cluster %d, you are of cluster %d", t.cfg.Cluster, h.Cluster))
	case h.Peer != t.cfg.Node:
		return fail(refuse(refusedNode, "this is node %d, you want node %d: check the addresses of peers", t.cfg.Node, h.Peer))
	case h.Class >= wire.NumClasses:
		return fail(refuse(refusedClass, "%v is not known here", h.Class))
	}
	c := caller{node: h.Node, class: h.Class, kinds: wire.AllKinds, gateway: h.Address != ""}
	if t.cfg.Limits != nil {
		c.limits = t.cfg.Limits(h.Node)
	}
	if len(c.limits.Kinds) > 0 {
		var err error
		if c.kinds, err = wire.KindsOf(c.limits.Kinds); err != nil {
			return fail(refuse(refusedPeer, "%w: Limits.Kinds of node %d: %w", ErrInvalid, h.Node, err))
		}
	}
	switch {
	case t.cfg.Gateway != "":
		c.kinds &= wire.HomeKinds
	case c.gateway:
		c.kinds &= wire.GatewayKinds
	}
	if c.limits.ReceiveBytes == 0 {
		c.limits.ReceiveBytes = t.cfg.ReceiveBytes
	}
	c.limits.ReceiveBytes = max(c.limits.ReceiveBytes, directBytes) // which peers write without asking for their size
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fail(errClosed)
	}
	if c.gateway {
		if err := t.meetGateway(h); err != nil {
			return fail(err)
		}
	}
	p := t.peer(h.Node)
	switch {
	case p == nil || p.gateway && !c.gateway:
		return fail(refuse(refusedPeer, "node %d is not known here: add it to the peers of node %d", h.Node, t.cfg.Node))
	}
	fresh, err := p.rivals.hello(h.Process, raw.RemoteAddr().String(), t.now())
	for class, old := range p.incoming {
		if old != nil && (wire.Class(class) == h.Class || fresh && old.process != h.Process || err != nil) {
			close(old.replaced)
			_ = old.Close() // no more of its bytes are wanted
			p.incoming[class] = nil
		}
	}
	if err != nil {
		t.dropIfGone(p)
		return fail(err)
	}
	c.conn = &incoming{Conn: raw, process: h.Process, replaced: make(chan struct{})}
	p.incoming[h.Class] = c.conn
	p.receive.setLimit(c.limits.ReceiveBytes)
	p.announce.Store(&announced{h.Kinds, h.Capabilities, h.Zone})
	return p, c, nil
}

// meetGateway makes a gateway known that says hello. The caller holds t.mu.
func (t *TCP) meetGateway(h wire.Hello) error {
	if err := address.Check(h.Address); err != nil {
		return refuse(refusedPeer, "gateway %d has the address %q: %w", h.Node, h.Address, err)
	}
	switch p := t.peer(h.Node); {
	case t.cfg.Gateway != "":
		return refuse(refusedPeer, "this is a gateway, and you are one: name nodes as your peers")
	case p != nil && !p.gateway:
		return refuse(refusedPeer, "node %d is known here as a node: give the gateway another id", h.Node)
	case p != nil:
		p.address = h.Address
		return nil
	}
	if t.gateways() >= t.cfg.MaxGateways {
		return refuse(refusedCrowd, "%d gateways are connected, the bound is %d", t.gateways(), max(0, t.cfg.MaxGateways))
	}
	p := t.newPeer(h.Node, h.Address)
	p.gateway = true
	t.put(p)
	return nil
}

// gateways returns how many are connected.
func (t *TCP) gateways() (n int) {
	for _, p := range *t.peers.Load() {
		if p.gateway {
			n++
		}
	}
	return n
}

// forget removes an ended connection from a peer. A gateway without connections is not known any more.
func (t *TCP) forget(p *peer, who caller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.incoming[who.class] == who.conn {
		p.incoming[who.class] = nil
	}
	t.dropIfGone(p)
}

// dropIfGone forgets a gateway without connections. The caller holds t.mu.
func (t *TCP) dropIfGone(p *peer) {
	if p.gateway && p.incoming == [wire.NumClasses]*incoming{} && t.peer(p.id) == p {
		t.drop(p)
	}
}
