// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// Hello is a [NetworkConfig].Dialer for nodes of Weft, whose connections begin with a hello.
func Hello(r io.Reader) (host int, err error) {
	hello, err := wire.ReadHello(r)
	return int(hello.Node), err
}

// Links are the connections between the hosts of a relay network. In front of each host is a relay,
// at which the others find the host.
type Links struct {
	config NetworkConfig
	relays []*relay

	mu     sync.Mutex
	cond   *sync.Cond
	cut    map[[2]int]bool
	slow   map[[2]int]time.Duration // what a direction takes besides delay
	conns  map[net.Conn]struct{}
	closed bool
	group  sync.WaitGroup
}

// relay stands in front of a host.
type relay struct {
	host            int
	listener        net.Listener
	to              string
	sends, receives pacer // of the host's card
}

func newRelays(c NetworkConfig) (*Network, error) {
	n, err := newDirect(c)
	if err != nil {
		return nil, err
	}
	l := &Links{config: c, cut: map[[2]int]bool{}, slow: map[[2]int]time.Duration{}, conns: map[net.Conn]struct{}{}}
	l.cond = sync.NewCond(&l.mu)
	n.Kind, n.Links, n.close = Relay, l, l.close
	for i := range n.Hosts {
		h := &n.Hosts[i]
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		r := &relay{host: i + 1, listener: listener, to: h.Listen}
		r.sends.rate, r.receives.rate = c.Rate, c.Rate
		l.relays = append(l.relays, r)
		h.Address = listener.Addr().String()
		h.sent = func() (uint64, error) { return r.sends.bytes.Load(), nil }
		l.group.Go(func() { l.accept(r) })
	}
	return n, nil
}

// Dial connects a host to another whose protocol has nothing for Dialer: the caller says which host
// dials, and gets an end of the connection. The errors are those of net.
func (l *Links) Dial(ctx context.Context, from, to int) (net.Conn, error) {
	r := l.relays[to-1]
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.to)
	if err != nil {
		return nil, err
	}
	near, in := net.Pipe()
	l.group.Go(func() {
		defer l.forget(in)
		defer l.forget(out)
		if l.keep(in) && l.keep(out) {
			l.join(in, in, out, from, r)
		}
	})
	return near, nil
}

// Cut holds up all that a host sends to another, or lets it pass again.
func (l *Links) Cut(from, to int, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[[2]int{from, to}] = yes
	l.cond.Broadcast()
}

// Slow has all that a host sends to another from now on take so much longer; 0: as long as before.
// What is on its way is not overtaken.
func (l *Links) Slow(from, to int, by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow[[2]int{from, to}] = by
}

// takes returns how long what is sent now takes.
func (l *Links) takes(from, to int) (d time.Duration) {
	if l.config.Delay != nil {
		d = l.config.Delay(from, to)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return d + l.slow[[2]int{from, to}]
}

// close takes all links down, and returns when they are.
func (l *Links) close() (err error) {
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

// serve carries bytes between a connection and a new one to the host, until either ends.
func (l *Links) serve(r *relay, in net.Conn) {
	defer l.forget(in)
	if !l.keep(in) {
		return
	}
	dialer, sent := 0, io.Reader(in)
	if l.config.Dialer != nil {
		var begin bytes.Buffer
		var err error
		if dialer, err = l.config.Dialer(io.TeeReader(in, &begin)); err != nil {
			return // nobody of this cluster
		}
		sent = io.MultiReader(&begin, in)
	}
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		return // the other side sees its connection end, as if the host were down
	}
	defer l.forget(out)
	if l.keep(out) {
		l.join(in, sent, out, dialer, r)
	}
}

// join carries bytes between the connection of a host that dials, of which some bytes may have been
// read, and one to the host that is dialed, until either ends.
func (l *Links) join(in net.Conn, sent io.Reader, out net.Conn, dialer int, r *relay) {
	done := make(chan struct{}, 2)
	carry := func(d direction) {
		l.carry(d)
		_ = errors.Join(in.Close(), out.Close()) // which ends the other direction
		done <- struct{}{}
	}
	go carry(direction{out, sent, dialer, r.host, &r.receives})
	go carry(direction{in, out, r.host, dialer, &r.sends})
	<-done
	<-done
}

// direction is one of the two of a connection.
type direction struct {
	to               net.Conn
	from             io.Reader
	sender, receiver int
	card             *pacer
}

// chunk is what arrives at once.
type chunk struct {
	data []byte
	due  time.Time
}

const (
	// chunkBytes is how many bytes of a connection leave before those of another may, if cards have a
	// bound, and wideChunk if they have none.
	chunkBytes = 8 << 10
	wideChunk  = 32 << 10
	// onTheWay bounds the chunks of a connection between two hosts.
	onTheWay = 256
	// heldBytes is how much the kernel may hold of what waits for a card.
	heldBytes = 64 << 10
)

// carry copies from one connection to another: each chunk leaves when the card has sent it, and
// arrives after the delay.
func (l *Links) carry(d direction) {
	way := make(chan chunk, onTheWay)
	l.group.Go(func() {
		defer close(way)
		size := wideChunk
		if d.card.rate > 0 {
			size = chunkBytes
		}
		buf := make([]byte, size)
		for {
			n, err := d.from.Read(buf)
			if n > 0 {
				left := d.card.leave(n, time.Now())
				time.Sleep(time.Until(left))
				d.card.bytes.Add(uint64(n))
				way <- chunk{bytes.Clone(buf[:n]), left.Add(l.takes(d.sender, d.receiver))}
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
		if !l.passes(d.sender, d.receiver) {
			broken = true
		} else if _, err := d.to.Write(c.data); err != nil {
			broken = true
		}
		if broken {
			_ = d.to.Close() // its other direction ends, and with it the reader
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

// keep notes a connection, so that close ends it. It is false after that.
func (l *Links) keep(c net.Conn) bool {
	if t, ok := c.(*net.TCPConn); ok && l.config.Rate > 0 {
		_ = t.SetReadBuffer(heldBytes) // the kernel's own bound is a larger one
	}
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

// pacer is one direction of a card: all connections of a host share it.
type pacer struct {
	rate  int64         // bits a second, 0: no bound
	bytes atomic.Uint64 // that have been carried

	mu   sync.Mutex
	free time.Time // when the last byte of all that is under way has left
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
