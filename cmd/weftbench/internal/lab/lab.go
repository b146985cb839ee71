// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package lab stands between the processes of a cluster: bytes between two nodes take a
// time that is given, and a direction can be slowed down or cut.
//
// In front of each node is a relay, at which the others find the node. The hello at the
// beginning of a connection says which node dials, so a relay knows both ends.
package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// Links are the connections between the nodes of a cluster, which are numbered from 1.
type Links struct {
	delay  func(from, to int) time.Duration
	relays []*relay

	mu     sync.Mutex
	cond   *sync.Cond
	cut    map[[2]int]bool
	slow   map[[2]int]time.Duration // what a direction takes besides delay
	conns  map[net.Conn]struct{}
	closed bool
	group  sync.WaitGroup
}

// relay stands in front of a node.
type relay struct {
	node     int
	listener net.Listener
	to       string
}

// New puts a relay in front of each node, which listens at the address given. A byte takes
// delay(from, to) on its way; nil: no time.
func New(nodes []string, delay func(from, to int) time.Duration) (*Links, error) {
	if delay == nil {
		delay = func(int, int) time.Duration { return 0 }
	}
	l := &Links{delay: delay, cut: map[[2]int]bool{}, slow: map[[2]int]time.Duration{}, conns: map[net.Conn]struct{}{}}
	l.cond = sync.NewCond(&l.mu)
	for i, to := range nodes {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		r := &relay{node: i + 1, listener: listener, to: to}
		l.relays = append(l.relays, r)
		l.group.Go(func() { l.accept(r) })
	}
	return l, nil
}

// Address returns where others find a node.
func (l *Links) Address(node int) string { return l.relays[node-1].listener.Addr().String() }

// Dial connects a node to another whose protocol has no hello: the caller says which node
// dials, and gets an end of the connection. The errors are those of net.
func (l *Links) Dial(ctx context.Context, from, to int) (net.Conn, error) {
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.relays[to-1].to)
	if err != nil {
		return nil, err
	}
	near, in := net.Pipe()
	l.group.Go(func() {
		defer l.forget(in)
		defer l.forget(out)
		if l.keep(in) && l.keep(out) {
			l.join(in, in, out, from, to)
		}
	})
	return near, nil
}

// Cut holds up all that a node sends to another, or lets it pass again.
func (l *Links) Cut(from, to int, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[[2]int{from, to}] = yes
	l.cond.Broadcast()
}

// Slow has all that a node sends to another from now on take so much longer; 0: as long as
// before. What is on its way is not overtaken.
func (l *Links) Slow(from, to int, by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow[[2]int{from, to}] = by
}

// takes returns how long what is sent now takes.
func (l *Links) takes(from, to int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay(from, to) + l.slow[[2]int{from, to}]
}

// Close takes all links down, and returns when they are.
func (l *Links) Close() (err error) {
	for _, r := range l.relays {
		err = errors.Join(err, r.listener.Close())
	}
	l.mu.Lock()
	l.closed = true
	for c := range l.conns {
		_ = c.Close() // its goroutines see that
	}
	l.cond.Broadcast()
	l.mu.Unlock()
	l.group.Wait()
	return err
}

func (l *Links) accept(r *relay) {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return // it was closed
		}
		l.group.Go(func() { l.serve(r, in) })
	}
}

// serve carries bytes between a connection and a new one to the node, until either ends.
func (l *Links) serve(r *relay, in net.Conn) {
	defer l.forget(in)
	if !l.keep(in) {
		return
	}
	var begin bytes.Buffer
	hello, err := wire.ReadHello(io.TeeReader(in, &begin))
	if err != nil {
		return // nobody of this cluster
	}
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		return // the other side sees its connection end, as if the node were down
	}
	defer l.forget(out)
	if !l.keep(out) {
		return
	}
	l.join(in, io.MultiReader(&begin, in), out, int(hello.Node), r.node)
}

// join carries bytes between the connection of a node that dials, of which some bytes may have
// been read, and one to the node that is dialed, until either ends.
func (l *Links) join(in net.Conn, sent io.Reader, out net.Conn, dialer, dialed int) {
	done := make(chan struct{}, 2)
	carry := func(to net.Conn, from io.Reader, sender, receiver int) {
		l.carry(to, from, sender, receiver)
		_ = errors.Join(in.Close(), out.Close()) // which ends the other direction
		done <- struct{}{}
	}
	go carry(out, sent, dialer, dialed)
	go carry(in, out, dialed, dialer)
	<-done
	<-done
}

// chunk is what arrives at once.
type chunk struct {
	data []byte
	due  time.Time
}

const (
	chunkBytes = 32 << 10
	// onTheWay bounds the chunks of a connection between two nodes.
	onTheWay = 256
)

// carry copies from one connection to another, each byte when it is due.
func (l *Links) carry(to net.Conn, from io.Reader, sender, receiver int) {
	way := make(chan chunk, onTheWay)
	l.group.Go(func() {
		defer close(way)
		buf := make([]byte, chunkBytes)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				way <- chunk{bytes.Clone(buf[:n]), time.Now().Add(l.takes(sender, receiver))}
			}
			if err != nil {
				return
			}
		}
	})
	broken := false
	for c := range way { // to the end, so that the reader ends
		if broken {
			continue
		}
		time.Sleep(time.Until(c.due))
		if !l.passes(sender, receiver) {
			broken = true
		} else if _, err := to.Write(c.data); err != nil {
			broken = true
		}
		if broken {
			_ = to.Close() // its other direction ends, and with it the reader
		}
	}
}

// passes waits until a direction is not cut, and reports whether the links are still up.
func (l *Links) passes(from, to int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.cut[[2]int{from, to}] && !l.closed {
		l.cond.Wait()
	}
	return !l.closed
}

// keep notes a connection, so that Close ends it. It is false after that.
func (l *Links) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	return !l.closed
}

func (l *Links) forget(c net.Conn) {
	_ = c.Close() // it may be closed
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
