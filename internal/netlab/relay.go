// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package netlab

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/ports"
)

// relay stands in front of a host: others connect to it, and it to the host.
type relay struct {
	listener net.Listener
	to       string
	sends    *pacer // what the host sends
	receives *pacer // what it receives

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	group  sync.WaitGroup
}

func newRelays(c Config) (*Network, error) {
	free, err := ports.Free(2 * c.Hosts)
	if err != nil {
		return nil, err
	}
	var relays []*relay
	n := &Network{Kind: Relay, close: func() (err error) {
		for _, r := range relays {
			err = errors.Join(err, r.close())
		}
		return err
	}}
	for i := range c.Hosts {
		h := Host{Listen: free[2*i], Client: free[2*i+1]}
		r, err := startRelay(h.Listen, c.Rate)
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		relays = append(relays, r)
		h.Address = r.listener.Addr().String()
		h.sent = func() (uint64, error) { return r.sends.bytes.Load(), nil }
		n.Hosts = append(n.Hosts, h)
	}
	return n, nil
}

func startRelay(to string, rate int64) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, to: to, sends: &pacer{rate: rate}, receives: &pacer{rate: rate}, conns: map[net.Conn]struct{}{}}
	r.group.Go(r.accept)
	return r, nil
}

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return // it was closed
		}
		r.group.Go(func() { r.serve(in) })
	}
}

// serve carries bytes between a connection and a new one to the host, until
// either ends.
func (r *relay) serve(in net.Conn) {
	defer r.forget(in)
	if !r.keep(in) {
		return
	}
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		return // the other side sees its connection end, as if the host were down
	}
	defer r.forget(out)
	if !r.keep(out) {
		return
	}
	both := make(chan struct{}, 2)
	carry := func(to, from net.Conn, p *pacer) {
		p.carry(to, from)
		_ = errors.Join(to.Close(), from.Close()) // which ends the other direction
		both <- struct{}{}
	}
	go carry(out, in, r.receives)
	go carry(in, out, r.sends)
	<-both
	<-both
}

// bound is how much the kernel may hold of what waits for its time, in bytes.
const bound = 64 << 10

// keep notes a connection, so that close ends it. It is false after that.
func (r *relay) keep(c net.Conn) bool {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetReadBuffer(bound) // the kernel's own bound is a larger one
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c] = struct{}{}
	return !r.closed
}

func (r *relay) forget(c net.Conn) {
	_ = c.Close() // it may be closed
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

func (r *relay) close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		_ = c.Close() // its goroutines see that
	}
	r.mu.Unlock()
	r.group.Wait()
	return err
}

// pacer is one direction of a card: all connections of a host share it.
type pacer struct {
	rate  int64         // bits a second, 0: no bound
	bytes atomic.Uint64 // that have been carried

	mu   sync.Mutex
	free time.Time // when the last byte of all that is under way has left
}

// chunk is how many bytes of a connection leave before those of another may.
const chunk = 8 << 10

// carry copies from one connection to another, at the pacer's pace, until either
// fails.
func (p *pacer) carry(to, from net.Conn) {
	buf := make([]byte, chunk)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			time.Sleep(time.Until(p.leave(n, time.Now())))
			p.bytes.Add(uint64(n))
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// leave returns when the last of n bytes has left, which are handed over now.
func (p *pacer) leave(n int, now time.Time) time.Time {
	if p.rate == 0 {
		return now
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(n) * 8 / float64(p.rate) * float64(time.Second)))
	return p.free
}
