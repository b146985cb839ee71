// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/shaping"
	"github.com/weftraft/weft/internal/wire"
)

// numbered is a small message that says which one it is.
func numbered(n uint64) wire.Message {
	data := binary.BigEndian.AppendUint64(nil, n)
	return wire.Message{Group: 1, From: 1, To: 2, Body: wire.Proposal{Data: append(data, bytes.Repeat([]byte{byte(n)}, 1000)...)}}
}

// welcomed accepts the connection of a link, and answers its hello.
func welcomed(t *testing.T, l net.Listener) net.Conn {
	c, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	_, err = wire.ReadHello(c)
	require.NoError(t, err)
	require.NoError(t, wire.Answer{Kinds: wire.AllKinds}.Write(c))
	return c
}

// directly sends a first message, and returns the link when its callers may write.
func directly(t *testing.T, l net.Listener, a *TCP) (*link, net.Conn) {
	a.Send([]wire.Message{numbered(0)})
	c := welcomed(t, l)
	lk := a.peer(2).sending[wire.ClassAppend].Load()
	require.Eventually(t, func() bool {
		lk.mu.Lock()
		defer lk.mu.Unlock()
		return lk.direct.to != nil && !lk.direct.sender && lk.messages == 0
	}, patience, time.Millisecond)
	return lk, c
}

// Callers write small messages themselves, as far as the kernel has room, and never
// wait: what a peer that does not read leaves over is the sender's, and all arrives
// in order.
func TestCallersWrite(t *testing.T) {
	l := listen(t)
	defer func() { require.NoError(t, l.Close()) }()
	// To fill the kernel's room may take long on a busy machine, and nothing is read meanwhile.
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()}, WriteTimeout: time.Hour})
	lk, c := directly(t, l, a)
	const most = 100_000
	sent, handedOver := uint64(1), uint64(0)
	for ; sent < most && (handedOver == 0 || sent < handedOver+10); sent++ {
		a.Send([]wire.Message{numbered(sent)}) // if it waited, it would for ever
		lk.mu.Lock()
		if handedOver == 0 && lk.messages > 0 {
			handedOver = sent
		} else if handedOver == 0 {
			require.False(t, lk.direct.sender, "the caller writes")
		}
		lk.mu.Unlock()
	}
	require.Less(t, sent, uint64(most), "the kernel takes no end of it")
	require.NotZero(t, a.Stats().Peers[2][wire.ClassAppend].QueueMessages)

	next := uint64(0)
	for buf := []byte(nil); next < sent; {
		var err error
		buf, err = wire.ReadFrame(c, wire.FrameMessages, 1<<20, buf)
		require.NoError(t, err)
		_, err = wire.DecodeMessages(buf, func(m wire.Message) {
			require.Equal(t, numbered(next), m)
			next++
		})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return a.Stats().Peers[2][wire.ClassAppend].QueueMessages == 0 }, patience, time.Millisecond)
	traffic := a.Stats().Peers[2][wire.ClassAppend]
	require.Equal(t, sent, traffic.SentMessages)
	require.Zero(t, traffic.QueueBytes)
	select {
	case peer := <-box.lost:
		t.Fatalf("node %d was called unreachable", peer)
	default:
	}
}

// What a caller could not write to a connection that breaks is reported, and the
// next connection begins with a whole frame.
func TestCallersMeetABrokenConnection(t *testing.T) {
	l := listen(t)
	defer func() { require.NoError(t, l.Close()) }()
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()}, WriteTimeout: time.Hour, MaxBackoff: time.Millisecond})
	lk, c := directly(t, l, a)
	for n := uint64(1); ; n++ {
		a.Send([]wire.Message{numbered(n)})
		lk.mu.Lock()
		full := lk.messages > 0
		lk.mu.Unlock()
		if full {
			break
		}
	}
	require.NoError(t, c.(*net.TCPConn).SetLinger(0))
	require.NoError(t, c.Close())
	require.Equal(t, uint64(2), box.unreachable(t))
	go func() {
		for t.Context().Err() == nil {
			a.Send([]wire.Message{numbered(7)})
			time.Sleep(time.Millisecond)
		}
	}()
	buf, err := wire.ReadFrame(welcomed(t, l), wire.FrameMessages, 1<<20, nil)
	require.NoError(t, err)
	_, err = wire.DecodeMessages(buf, func(m wire.Message) {})
	require.NoError(t, err)
}

// Messages of one call to one peer share a frame, whoever writes it; those that
// are large, or of a link with a shape, are the sender's.
func TestWhoWrites(t *testing.T) {
	l := listen(t)
	defer func() { require.NoError(t, l.Close()) }()
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()}})
	lk, c := directly(t, l, a)
	frame := func() (numbers []byte) {
		buf, err := wire.ReadFrame(c, wire.FrameMessages, 1<<20, nil)
		require.NoError(t, err)
		_, err = wire.DecodeMessages(buf, func(m wire.Message) { numbers = append(numbers, m.Body.(wire.Proposal).Data[7]) })
		require.NoError(t, err)
		return numbers
	}
	require.Equal(t, []byte{0}, frame())
	a.Send([]wire.Message{numbered(1), numbered(2), numbered(3)})
	require.Zero(t, lk.messages, "the caller has written them")
	require.Equal(t, []byte{1, 2, 3}, frame())
	large := numbered(4)
	large.Body = wire.Proposal{Data: append(binary.BigEndian.AppendUint64(nil, 4), make([]byte, directBytes)...)}
	a.Send([]wire.Message{large})
	require.Equal(t, []byte{4}, frame())
	require.NoError(t, a.SetShape(2, shaping.Shape{Delay: 20 * time.Millisecond}))
	for n := range uint64(3) {
		a.Send([]wire.Message{numbered(5 + n)})
	}
	require.NoError(t, a.SetShape(2, shaping.Shape{}))
	a.Send([]wire.Message{numbered(8)})
	var got []byte
	for len(got) < 4 {
		got = append(got, frame()...)
	}
	require.Equal(t, []byte{5, 6, 7, 8}, got, "none overtakes what the shape holds back")
}
