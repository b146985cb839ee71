// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/strangers"
	"github.com/weftraft/weft/internal/wire"
)

// frameOf encodes messages.
func frameOf(t testing.TB, ms ...wire.Message) []byte {
	var f wire.Frame
	for _, m := range ms {
		f.AppendMessage(m)
	}
	var b bytes.Buffer
	_, err := f.WriteMessages(&b)
	require.NoError(t, err)
	return b.Bytes()
}

// requireClosed waits until the other end has closed a connection.
func requireClosed(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.Copy(io.Discard, c)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "it is still open")
}

func hello(class wire.Class) wire.Hello {
	return wire.Hello{Cluster: 5, Node: 2, Peer: 1, Class: class, Kinds: wire.AllKinds}
}

// Strangers that keep silent, or say half a hello, do not keep a peer out,
// however many they are.
func TestManyStrangers(t *testing.T) {
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}, DialTimeout: time.Hour})
	conns := strange(t, a, 3*strangers.Limit)
	c, answer := connect(t, a, hello(wire.ClassControl))
	require.Empty(t, answer.Refused)
	_, err := c.Write(frameOf(t, heartbeat(2, 1)))
	require.NoError(t, err)
	box.next(t)
	eventually(t, "the oldest are turned away", func() bool { return a.Stats().Refusals[refusedCrowd.String()] >= 2*strangers.Limit })
	require.LessOrEqual(t, a.Stats().Strangers, strangers.Limit)
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
	eventually(t, "all are counted", func() bool {
		s := a.Stats()
		return s.Refusals[refusedCrowd.String()]+s.Refusals[refusedSilence.String()] == uint64(len(conns)) && s.Strangers == 0 && s.Refused == uint64(len(conns))
	})
}

// strange connects and says nothing, or very little.
func strange(t *testing.T, to *TCP, n int) (conns []net.Conn) {
	for i := range n {
		c, err := net.Dial("tcp", to.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() }) // the test may have closed it
		if i%2 == 0 {
			_, _ = c.Write([]byte("Wf")) // it may be closed already
		}
		conns = append(conns, c)
	}
	return conns
}

// They are gone after a while.
func TestSilentStrangers(t *testing.T) {
	for name, files := range map[string]certs.Files{"plain": {}, "TLS": certs.NodeFiles(generate(t, certs.ValidFor(time.Hour), 1), 1)} {
		t.Run(name, func(t *testing.T) {
			a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", TLS: files, DialTimeout: 20 * time.Millisecond})
			conns := strange(t, a, 2)
			if name == "TLS" { // the beginning of a handshake
				_, _ = conns[1].Write([]byte{strangers.FirstOfTLS, 3, 1, 2, 0, 1}) // it may be closed already
			}
			for _, c := range conns {
				requireClosed(t, c)
			}
			eventually(t, "both are counted", func() bool { return a.Stats().Refused == 2 && a.Stats().Strangers == 0 })
		})
	}
}

// What is no hello is answered in words, and counted.
func TestBadHellos(t *testing.T) {
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}})
	version := helloFrame(t)
	version[2]++
	long := helloFrame(t)
	long[5] = 0xff
	flipped := helloFrame(t)
	flipped[len(flipped)-1]++
	for want, data := range map[string][]byte{
		"is this a Weft peer?": []byte("GET / HTTP/1.1\r\nHost: weft\r\n\r\n"),
		"version 2, this node": version,
		"the limit is 4096":    long,
		"checksum":             flipped,
		"type 1 where 2":       frameOf(t, heartbeat(2, 1)),
	} {
		c, err := net.Dial("tcp", a.Addr().String())
		require.NoError(t, err)
		_, err = c.Write(data)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		answer, err := wire.ReadAnswer(c)
		require.NoError(t, err)
		require.Contains(t, answer.Refused, want)
		require.NoError(t, c.Close())
	}
	require.Equal(t, uint64(5), a.Stats().Refusals[refusedHello.String()])
	_, answer := connect(t, a, wire.Hello{Cluster: 5, Node: 2, Peer: 1, Class: 200})
	require.Contains(t, answer.Refused, "class(200) is not known here")
	require.Equal(t, uint64(1), a.Stats().Refusals[refusedClass.String()])
	require.Equal(t, "unknown class", refusedClass.String())
	require.Equal(t, "refusal(99)", refusalReason(99).String())
}

// Half a frame does not hold a connection's memory for ever; silence between
// frames is nothing bad.
func TestHalfFrames(t *testing.T) {
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}, WriteTimeout: 50 * time.Millisecond})
	c, answer := connect(t, a, hello(wire.ClassAppend))
	require.Empty(t, answer.Refused)
	for range 2 {
		time.Sleep(100 * time.Millisecond) // longer than a peer may be silent in a frame
		_, err := c.Write(frameOf(t, appends(2, 1, 1, 100)))
		require.NoError(t, err)
		box.next(t)
	}
	whole := frameOf(t, appends(2, 1, 1, 1<<20))
	_, err := c.Write(whole[:len(whole)/2])
	require.NoError(t, err)
	requireClosed(t, c)
	require.Empty(t, box.got)
	eventually(t, "its memory is given back", func() bool { return a.Stats().ReceiveBytes[2] == 0 })
	require.False(t, a.Stats().Peers[2][wire.ClassAppend].Receiving)
}

// blocked is a receiver that takes nothing until it is let.
type blocked struct {
	inbox
	let   chan struct{}
	taken atomic.Int64
}

func (b *blocked) Receive(m wire.Message) {
	if m.Class() != wire.ClassControl {
		<-b.let
	}
	b.taken.Add(1)
}

// A peer's frames take no more memory than its budget, whatever it sends; its
// heartbeats do not wait for it.
func TestReceiveBudget(t *testing.T) {
	limits := Limits{Kinds: []string{"raft"}, ReceiveBytes: 3 << 20}
	a, err := New(Config{Cluster: 5, Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""},
		Limits: func(peer uint64) Limits { return limits }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	box := &blocked{let: make(chan struct{})}
	require.NoError(t, a.Join(1, box))

	background := appends(2, 1, 1, 2<<20)
	background.Background = true
	for class, m := range map[wire.Class]wire.Message{wire.ClassAppend: appends(2, 1, 1, 2<<20), wire.ClassBackground: background} {
		c, answer := connect(t, a, hello(class))
		require.Empty(t, answer.Refused)
		require.Equal(t, wire.Kinds(1<<wire.KindRaft), answer.Kinds, "an honest peer is told what it may send")
		go func() { _, _ = c.Write(frameOf(t, m)) }() // it waits until the end of the test
	}
	eventually(t, "one of the two is being received", func() bool { return a.Stats().ReceiveBytes[2] > 2<<20 })
	control, _ := connect(t, a, hello(wire.ClassControl))
	_, err = control.Write(frameOf(t, heartbeat(2, 1)))
	require.NoError(t, err)
	eventually(t, "the heartbeat arrives", func() bool { return box.taken.Load() == 1 })
	eventually(t, "the other one waits", func() bool {
		b := &a.peer(2).receive
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.room != nil
	})
	require.LessOrEqual(t, a.Stats().ReceiveBytes[2], limits.ReceiveBytes)
	close(box.let)
	eventually(t, "both arrive in the end", func() bool { return box.taken.Load() == 3 })
	eventually(t, "all memory is given back", func() bool { return a.Stats().ReceiveBytes[2] == 0 })
	p := a.Stats().Peers[2]
	require.NotZero(t, p[wire.ClassAppend].BudgetTime+p[wire.ClassBackground].BudgetTime)
	require.NotZero(t, p[wire.ClassAppend].DeliverTime)

	for name, hostile := range map[string][]byte{
		"a frame over the budget":    frameOf(t, appends(2, 1, 1, 4<<20)),
		"a kind that it may not use": frameOf(t, wire.Message{Group: 1, From: 2, To: 1, Body: wire.Proposal{}}),
	} {
		t.Run(name, func(t *testing.T) {
			before := a.Stats().Peers[2][wire.ClassAppend].BadFrames
			c, answer := connect(t, a, hello(wire.ClassAppend))
			require.Empty(t, answer.Refused)
			_, _ = c.Write(hostile) // the other end may close in the middle of it
			requireClosed(t, c)
			eventually(t, "it is counted", func() bool { return a.Stats().Peers[2][wire.ClassAppend].BadFrames == before+1 })
			require.Equal(t, int64(3), box.taken.Load())
		})
	}
}

// A peer is told that it may send frames of 4 KiB at least, because it writes small messages without asking for their size: its
// connection does not end for one.
func TestSmallFramesFitAnyLimit(t *testing.T) {
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}, Limits: func(uint64) Limits { return Limits{ReceiveBytes: 100} }})
	c, answer := connect(t, a, hello(wire.ClassAppend))
	require.Equal(t, uint64(4<<10+wire.HeaderLen), answer.Frame)
	_, err := c.Write(frameOf(t, appends(2, 1, 1, 4<<10-100)))
	require.NoError(t, err)
	box.next(t)
}

// Random bytes, and frames that are damaged at random, after a good hello: the
// node goes on, and what is delivered is from the peer of the connection.
func TestRandomBytes(t *testing.T) {
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}})
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		c, answer := connect(t, a, hello(wire.Class(i%int(wire.NumClasses))))
		require.Empty(t, answer.Refused)
		data := frameOf(t, appends(2, 1, 1, rng.IntN(200)), heartbeat(2, 1))
		for range rng.IntN(4) {
			data[rng.IntN(len(data))] ^= byte(1 << rng.IntN(8))
		}
		_, _ = c.Write(data[:rng.IntN(len(data)+1)]) // the other end may close in the middle of it
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		requireClosed(t, c)
		require.NoError(t, c.Close())
	}
	for len(box.got) > 0 {
		require.Equal(t, uint64(2), box.next(t).From)
	}
	eventually(t, "nothing is left open", func() bool {
		for _, p := range a.Stats().Peers[2] {
			if p.Receiving {
				return false
			}
		}
		return true
	})
	require.NotZero(t, a.Stats().BadFrames)
}

// silentListener accepts nobody, so that a fuzz target needs no network.
type silentListener struct{ done chan struct{} }

func (l silentListener) Accept() (net.Conn, error) {
	<-l.done
	return nil, net.ErrClosed
}

func (l silentListener) Close() error {
	close(l.done)
	return nil
}

func (silentListener) Addr() net.Addr { return &net.TCPAddr{} }

// FuzzConnection says anything to a node, as a stranger or, after a good hello, as
// a peer. Whatever it is, the connection ends, and what is delivered comes from the
// peer, is for this node, and is of the connection's class.
func FuzzConnection(f *testing.F) {
	f.Add(uint8(9), helloFrameOf(f))
	for class := range uint8(wire.NumClasses) {
		f.Add(class, frameOf(f, heartbeat(2, 1), appends(2, 1, 1, 10)))
		f.Add(class, append(frameOf(f, heartbeat(2, 1)), frameOf(f, appends(2, 1, 1, 100))...))
	}
	f.Add(uint8(1), frameOf(f, appends(3, 1, 1, 10)))
	f.Fuzz(func(t *testing.T, class uint8, data []byte) {
		tr, err := New(Config{Cluster: 5, Node: 1, Listener: silentListener{make(chan struct{})}, Peers: map[uint64]string{2: ""}, ReceiveBytes: 1 << 20, MaxFrameBytes: 1 << 20})
		require.NoError(t, err)
		box := &checking{t: t, class: wire.Class(class)}
		for group := range uint64(3) {
			require.NoError(t, tr.Join(group, box))
		}
		here, there := net.Pipe()
		tr.strangers.Add(there)
		tr.spawn(func() { tr.serve(there) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(io.Discard, here) // until the node closes
		}()
		if wire.Class(class) < wire.NumClasses {
			require.NoError(t, hello(wire.Class(class)).Write(here))
		}
		_, _ = here.Write(data) // the node may close in the middle of it
		require.NoError(t, here.Close())
		<-done
		require.NoError(t, tr.Close())
		require.Zero(t, tr.strangers.Len())
		require.Zero(t, tr.peer(2).receive.inUse())
	})
}

func helloFrameOf(t testing.TB) []byte {
	var b bytes.Buffer
	require.NoError(t, hello(wire.ClassAppend).Write(&b))
	return b.Bytes()
}

// checking is a receiver that checks what it gets.
type checking struct {
	t     *testing.T
	class wire.Class
}

func (c *checking) Receive(m wire.Message) {
	if m.From != 2 || m.To != 1 || c.class < wire.NumClasses && m.Class() != c.class {
		c.t.Errorf("a %v from %d to %d, of class %v on a connection for %v", m.Kind(), m.From, m.To, m.Class(), c.class)
	}
}

func (c *checking) Unreachable(uint64) {}

// rawFrame puts a header before any payload.
func rawFrame(payload []byte) []byte {
	b := append([]byte{'W', 'f', wire.Version, byte(wire.FrameMessages)}, binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)))
	return append(b, payload...)
}
