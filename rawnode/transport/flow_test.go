// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// A peer that stops reading: what is kept for it stays within its budget however
// long it lasts, what is dropped is reported and counted, others and its own
// heartbeats notice nothing; its connection is given up in time, and when it reads
// again, messages get through.
func TestPeerThatStopsReading(t *testing.T) {
	l := listen(t)
	stuck := &reluctant{}
	heartbeats := stuck.serve(t, l)
	other, healthy := start(t, Config{Node: 3, Listen: "127.0.0.1:0", Peers: map[uint64]string{1: ""}})
	const bound, size = 8 << 20, 64 << 10
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", WriteTimeout: 300 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
		Peers:      map[uint64]string{2: l.Addr().String(), 3: other.Addr().String()},
		QueueBytes: [wire.NumClasses]int{1 << 20, bound, 1 << 20, 1 << 20}})

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	message := appends(1, 2, 1, size) // payloads of their own would be garbage of the test's
	for range 8000 {                  // 500 MB
		m := message
		m.Body = wire.Proposal{Data: append([]byte(nil), message.Body.(wire.Raft).Entries[0].Data...)}
		a.Send([]wire.Message{m})
	}
	link := a.Stats().Peers[2][wire.ClassAppend]
	require.LessOrEqual(t, link.QueueBytes, bound)
	require.LessOrEqual(t, link.QueueMessages, bound/size)
	require.NotZero(t, link.Dropped[dropFull.String()]+link.Dropped[dropDial.String()]+link.Dropped[dropBroken.String()])
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(3*bound), "of 500 MB, what is kept is about the queue")
	require.Equal(t, uint64(2), box.unreachable(t))

	a.Send([]wire.Message{heartbeat(1, 2), heartbeat(1, 3)})
	healthy.next(t)
	select {
	case <-heartbeats:
	case <-time.After(patience):
		t.Fatal("its heartbeats wait behind appends")
	}
	eventually(t, "the connection is given up", func() bool { return a.Stats().Peers[2][wire.ClassAppend].Breaks > 0 })
	eventually(t, "what waited is dropped, with it", func() bool {
		s := a.Stats().Peers[2][wire.ClassAppend]
		return s.Dropped[dropBroken.String()] > 0 && s.QueueMessages == 0 && s.QueueBytes == 0
	})
	require.Zero(t, a.Stats().Peers[3][wire.ClassControl].Breaks)
	require.NotZero(t, a.Stats().Peers[2][wire.ClassAppend].WriteTime)

	stuck.reads.Store(true)
	eventually(t, "messages get through again", func() bool {
		a.Send([]wire.Message{appends(1, 2, 1, 100)})
		return stuck.appends.Load() > 0
	})
	require.GreaterOrEqual(t, a.Stats().Peers[2][wire.ClassAppend].Connects, uint64(2))
	s := a.Stats()
	sum := uint64(0)
	for _, p := range s.Peers {
		for _, c := range p {
			for _, n := range c.Dropped {
				sum += n
			}
		}
	}
	require.Equal(t, s.Dropped, sum, "each drop has a peer, a class and a reason")
}

// reluctant is a node that reads appends only when it wants to.
type reluctant struct {
	reads   atomic.Bool
	appends atomic.Int64
}

func (r *reluctant) serve(t *testing.T, l net.Listener) (control chan wire.Message) {
	control = make(chan wire.Message, 1000)
	one := func(c net.Conn) {
		h, err := wire.ReadHello(c)
		if err != nil || (wire.Answer{Kinds: wire.AllKinds}).Write(c) != nil {
			return
		}
		for h.Class != wire.ClassControl && !r.reads.Load() {
			time.Sleep(time.Millisecond)
		}
		for {
			payload, err := wire.ReadFrame(c, wire.FrameMessages, 1<<20, nil)
			if err != nil {
				return
			}
			_, _ = wire.DecodeMessages(payload, func(m wire.Message) { // of our own making
				if h.Class == wire.ClassControl {
					control <- m
				} else if m.Kind() == wire.KindRaft { // those before were proposals
					r.appends.Add(1)
				}
			})
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() }) // the peer may have closed it
			go one(c)
		}
	}()
	t.Cleanup(func() {
		r.reads.Store(true)
		_ = l.Close() // nothing is done with it any more
	})
	return control
}

// A state machine may take longer for the next piece of a snapshot than a peer may
// for anything else.
func TestSnapshotMayWait(t *testing.T) {
	t.Parallel() // it mostly sleeps
	l := listen(t)
	(&reluctant{}).serve(t, l)
	const timeout = 100 * time.Millisecond
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()}, WriteTimeout: timeout})
	begin := time.Now()
	a.Send([]wire.Message{{Group: 1, From: 1, To: 2, Body: wire.Chunk{Number: 1, Data: make([]byte, 32<<20)}}})
	eventually(t, "the connection is given up", func() bool { return a.Stats().Peers[2][wire.ClassBulk].Breaks > 0 })
	require.GreaterOrEqual(t, time.Since(begin), bulkPatience*timeout)
}

// A slow peer is not a dead one: a frame may take longer than the timeout, as
// long as some of it is read.
func TestSlowReader(t *testing.T) {
	t.Parallel() // it mostly sleeps
	const timeout = time.Second
	for {
		pause, err := slowly(t, timeout)
		if err == nil {
			return
		}
		require.Greater(t, pause, timeout/2, "given up although it reads: %v", err)
		t.Logf("this machine paused the reader for %v: once more", pause)
	}
}

// slowly reads a large frame at such a speed that it takes twice the timeout. It
// returns the longest pause in between.
func slowly(t *testing.T, timeout time.Duration) (pause time.Duration, err error) {
	l := listen(t)
	defer func() { require.NoError(t, l.Close()) }()
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()}, WriteTimeout: timeout})
	const size = 24 << 20
	a.Send([]wire.Message{appends(1, 2, 1, size)})
	c, err := l.Accept()
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = wire.ReadHello(c)
	require.NoError(t, err)
	require.NoError(t, wire.Answer{Kinds: wire.AllKinds}.Write(c))
	start, last := time.Now(), time.Now()
	buf := make([]byte, 1<<20)
	for read := 0; read < size; {
		n, err := io.ReadFull(c, buf[:min(len(buf), size-read)])
		pause, last = max(pause, time.Since(last)), time.Now()
		if err != nil {
			return pause, err
		}
		read += n
		if time.Since(start) < 2*timeout {
			time.Sleep(timeout / 10)
		}
	}
	require.Greater(t, time.Since(start), timeout)
	return pause, nil
}

// Payloads go to all peers without a copy: what is allocated for a message is
// small beside it.
func TestSendingDoesNotCopy(t *testing.T) {
	peers := map[uint64]string{}
	var read atomic.Int64
	for id := uint64(2); id <= 4; id++ {
		l := listen(t)
		peers[id] = l.Addr().String()
		t.Cleanup(func() { _ = l.Close() }) // nothing is done with it any more
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := wire.ReadHello(c); err == nil && (wire.Answer{Kinds: wire.AllKinds}).Write(c) == nil {
				buf := make([]byte, 64<<10)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					read.Add(int64(n))
				}
			}
		}()
	}
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: peers})
	const size, rounds = 1 << 20, 20
	payload := appends(1, 2, 1, size)
	send := func() {
		target := read.Load() + 3*size
		for id := range peers {
			m := payload
			m.To = id
			a.Send([]wire.Message{m})
		}
		eventually(t, "the three have read it", func() bool { return read.Load() >= target })
	}
	send()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		send()
	}
	runtime.ReadMemStats(&after)
	perMessage := (after.TotalAlloc - before.TotalAlloc) / (3 * rounds)
	t.Logf("%d bytes allocated for a message of %d", perMessage, size)
	require.Less(t, perMessage, uint64(size/16))
}

// A message for the background has a connection of its own, and says so at the
// other end; and each end knows what the other can do.
func TestBackgroundAndCapabilities(t *testing.T) {
	la, lb := listen(t), listen(t)
	peers := map[uint64]string{1: la.Addr().String(), 2: lb.Addr().String()}
	a, _ := start(t, Config{Node: 1, Listener: la, Peers: peers, Capabilities: 1 << 40, Zone: "here"})
	b, boxB := start(t, Config{Node: 2, Listener: lb, Peers: peers, Capabilities: 1<<41 | 1, Zone: "there"})
	_, _, known := a.Announced(2)
	require.False(t, known)
	m := appends(1, 2, 7, 100)
	m.Background = true
	a.Send([]wire.Message{m})
	got := boxB.next(t)
	require.True(t, got.Background)
	require.Equal(t, wire.ClassBackground, got.Class())
	require.Equal(t, uint64(1), b.Stats().Peers[1][wire.ClassBackground].ReceivedMessages)
	require.Zero(t, b.Stats().Peers[1][wire.ClassAppend].ReceivedMessages)
	kinds, capabilities, known := a.Announced(2)
	require.True(t, known)
	require.Equal(t, wire.AllKinds, kinds)
	require.Equal(t, wire.Capabilities(1<<41|1), capabilities)
	_, capabilities, _ = b.Announced(1)
	require.Equal(t, wire.Capabilities(1<<40), capabilities)
	for id, zone := range map[uint64]string{1: "here", 2: "there", 9: ""} {
		require.Equal(t, zone, a.Zone(id))
		require.Equal(t, zone, b.Zone(id))
	}
	_, _, known = a.Announced(9)
	require.False(t, known)
}

// Messages of kinds from a later version are left out and counted; those around
// them arrive.
func TestUnknownKinds(t *testing.T) {
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}})
	c, _ := connect(t, a, hello(wire.ClassControl))
	unknown := frameOf(t, wire.Message{Group: 1, From: 2, To: 1, Body: wire.Transfer{}})[wire.HeaderLen:]
	unknown[0] = 60
	known := frameOf(t, heartbeat(2, 1))[wire.HeaderLen:]
	_, err := c.Write(rawFrame(append(append([]byte{}, unknown...), known...)))
	require.NoError(t, err)
	require.Equal(t, wire.KindRaft, box.next(t).Kind())
	eventually(t, "it is counted", func() bool { return a.Stats().Peers[2][wire.ClassControl].UnknownMessages == 1 })
	require.Equal(t, uint64(1), a.Stats().Unsupported)
}

// Logs name classes.
func TestLogs(t *testing.T) {
	var log syncBuilder
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: "127.0.0.1:1"}, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	a.Send([]wire.Message{heartbeat(1, 2)})
	box.unreachable(t)
	require.NoError(t, a.Close())
	var line struct{ Msg, Class string }
	require.NoError(t, json.Unmarshal([]byte(strings.SplitN(log.String(), "\n", 2)[0]), &line))
	require.Equal(t, "control", line.Class)
	require.Equal(t, "peer unreachable", line.Msg)
}

// syncBuilder is a strings.Builder for several goroutines.
type syncBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuilder) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuilder) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A connection that replaces another waits until that has delivered what it read,
// however long; and those that are replaced while they wait are gone.
func TestReplacedConnectionsKeepOrder(t *testing.T) {
	a, err := New(Config{Cluster: 5, Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	slow := &orderly{inbox: newInbox(), let: make(chan struct{})}
	require.NoError(t, a.Join(1, slow))
	before := runtime.NumGoroutine()
	const conns = 100
	for i := range uint64(conns) {
		c, answer := connect(t, a, hello(wire.ClassAppend))
		require.Empty(t, answer.Refused)
		_, err := c.Write(frameOf(t, appends(2, 1, 2*i, 10), appends(2, 1, 2*i+1, 10)))
		require.NoError(t, err)
		if i == 0 {
			eventually(t, "the first is being delivered", func() bool { return slow.waiting.Load() })
		}
	}
	eventually(t, "those in between are gone", func() bool { return runtime.NumGoroutine() < before+conns/2 })
	close(slow.let)
	last := uint64(0)
	for n := 0; last < 2*conns-1; n++ {
		index := slow.next(t).Body.(wire.Raft).GetIndex()
		require.True(t, n == 0 || index > last, "%d comes behind %d", index, last)
		last = index
	}
}

// orderly is a receiver that takes nothing until it is let.
type orderly struct {
	*inbox
	waiting atomic.Bool
	let     chan struct{}
}

func (o *orderly) Receive(m wire.Message) {
	o.waiting.Store(true)
	<-o.let
	o.inbox.Receive(m)
}

// What is queued while a dial fails is dropped with the rest, and is no reason to
// dial again at once.
func TestFailedDial(t *testing.T) {
	dialing, release := make(chan struct{}), make(chan error)
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: "nowhere"}, MaxBackoff: time.Hour,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			select {
			case dialing <- struct{}{}:
				return nil, <-release
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})
	a.Send([]wire.Message{heartbeat(1, 2)})
	<-dialing
	a.Send([]wire.Message{heartbeat(1, 2)})
	release <- errors.New("no such place")
	box.unreachable(t)
	select {
	case <-dialing:
		t.Fatal("it dials again, for nothing")
	case <-time.After(20 * time.Millisecond):
	}
	s := a.Stats().Peers[2][wire.ClassControl]
	require.Equal(t, uint64(2), s.Dropped[dropDial.String()])
	require.Equal(t, "dial: no such place", s.Error)
	require.Zero(t, s.QueueMessages)
}
