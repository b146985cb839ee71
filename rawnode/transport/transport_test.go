// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// patience bounds what a test waits for; it is never reached when all is well.
const patience = 20 * time.Second

// inbox is a receiver that keeps what it gets.
type inbox struct {
	got  chan wire.Message
	lost chan uint64
}

func newInbox() *inbox {
	return &inbox{got: make(chan wire.Message, 10000), lost: make(chan uint64, 100000)}
}

func (b *inbox) Receive(m wire.Message)  { b.got <- m }
func (b *inbox) Unreachable(peer uint64) { b.lost <- peer }

func (b *inbox) next(t *testing.T) wire.Message {
	t.Helper()
	select {
	case m := <-b.got:
		return m
	case <-time.After(patience):
		t.Fatal("no message comes")
		return wire.Message{}
	}
}

func (b *inbox) unreachable(t *testing.T) uint64 {
	t.Helper()
	select {
	case id := <-b.lost:
		return id
	case <-time.After(patience):
		t.Fatal("nobody is reported as unreachable")
		return 0
	}
}

func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

func start(t *testing.T, cfg Config) (*TCP, *inbox) {
	if cfg.Cluster == 0 {
		cfg.Cluster = 5
	}
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = patience // a slow machine is not what is tested
	}
	tr, err := New(cfg)
	require.NoError(t, err)
	box := newInbox()
	require.NoError(t, tr.Join(1, box))
	t.Cleanup(func() { _ = tr.Close() }) // a test may have closed it
	return tr, box
}

// pair returns two nodes that know each other.
func pair(t *testing.T) (a, b *TCP, boxA, boxB *inbox) {
	la, lb := listen(t), listen(t)
	peers := map[uint64]string{1: la.Addr().String(), 2: lb.Addr().String()}
	a, boxA = start(t, Config{Node: 1, Listener: la, Peers: peers})
	b, boxB = start(t, Config{Node: 2, Listener: lb, Peers: peers})
	return a, b, boxA, boxB
}

func heartbeat(from, to uint64) wire.Message {
	return wire.Message{Group: 1, From: from, To: to, Body: wire.Raft{Message: &pb.Message{
		Type: pb.MsgHeartbeat.Enum(), From: &from, To: &to, Term: new(uint64(1))}}}
}

func appends(from, to, index uint64, size int) wire.Message {
	return wire.Message{Group: 1, From: from, To: to, Body: wire.Raft{Message: &pb.Message{
		Type: pb.MsgApp.Enum(), From: &from, To: &to, Term: new(uint64(1)), Index: new(index),
		Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(index + 1), Data: bytes.Repeat([]byte{byte(index)}, size)}}}}}
}

func TestDelivery(t *testing.T) {
	a, b, boxA, boxB := pair(t)
	const n = 200
	for i := range uint64(n) {
		a.Send([]wire.Message{appends(1, 2, i, int(i)*100)})
	}
	for i := range uint64(n) {
		m := boxB.next(t).Body.(wire.Raft)
		require.Equal(t, i, m.GetIndex(), "messages of a class keep their order")
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, int(i)*100), append([]byte{}, m.Entries[0].Data...))
	}
	b.Send([]wire.Message{heartbeat(2, 1)})
	require.Equal(t, wire.ClassControl, boxA.next(t).Class())

	// A frame is counted as sent once the kernel has it, when the peer may have it, too.
	eventually(t, "all are counted", func() bool { return a.Stats().Peers[2][wire.ClassAppend].SentMessages == n })
	sent, received := a.Stats().Peers[2][wire.ClassAppend], b.Stats().Peers[1][wire.ClassAppend]
	require.Equal(t, sent.SentBytes, received.ReceivedBytes)
	require.Equal(t, sent.SentFrames, received.ReceivedFrames)
	require.Less(t, sent.SentBytes, uint64(100*n*n/2+100*n), "at most 100 bytes around a payload")
	require.Zero(t, a.Stats().Dropped)
	require.ErrorIs(t, a.Join(1, boxA), errGroupTaken)
	a.Leave(1)
	require.NoError(t, a.Join(1, boxA))
	b.Send([]wire.Message{{Group: 77, From: 2, To: 1, Body: wire.Transfer{}}, heartbeat(2, 1)})
	boxA.next(t)
	require.Equal(t, uint64(1), a.Stats().NoGroup)
}

// connect dials a node as a peer would, and returns the answer to the hello.
func connect(t *testing.T, to *TCP, h wire.Hello) (net.Conn, wire.Answer) {
	c, err := net.Dial("tcp", to.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // the test may have closed it
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	require.NoError(t, h.Write(c))
	answer, err := wire.ReadAnswer(c)
	require.NoError(t, err)
	return c, answer
}

func TestRefusals(t *testing.T) {
	a, _, _, _ := pair(t)
	good := wire.Hello{Cluster: 5, Node: 2, Peer: 1, Kinds: wire.AllKinds}
	for want, change := range map[string]func(*wire.Hello){
		"this is cluster 5, you are of cluster 6": func(h *wire.Hello) { h.Cluster = 6 },
		"this is node 1, you want node 3":         func(h *wire.Hello) { h.Peer = 3 },
		"node 9 is not known here: add it":        func(h *wire.Hello) { h.Node = 9 },
		"node 1 is not known here":                func(h *wire.Hello) { h.Node = 1 },
		"node 18446744073709551615 is not known":  func(h *wire.Hello) { h.Node--; h.Node = ^uint64(0) },
	} {
		h := good
		change(&h)
		c, answer := connect(t, a, h)
		require.Contains(t, answer.Refused, want)
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	require.Equal(t, uint64(5), a.Stats().Refused)
	_, answer := connect(t, a, good)
	require.Empty(t, answer.Refused)

	// The one who is refused hears why.
	other, box := start(t, Config{Cluster: 6, Node: 2, Listen: "127.0.0.1:0", Peers: map[uint64]string{1: a.Addr().String()}})
	other.Send([]wire.Message{heartbeat(2, 1)})
	require.Equal(t, uint64(1), box.unreachable(t))
	err := other.SendWait(context.Background(), heartbeat(2, 1))
	for err == nil { // its pause was over, so it was queued and dialed again
		box.unreachable(t)
		err = other.SendWait(context.Background(), heartbeat(2, 1))
	}
	require.ErrorIs(t, err, errUnreachable)
	require.ErrorContains(t, err, "this is cluster 5, you are of cluster 6")
}

// Whatever a connection carries that it must not ends it, and only it.
func TestHostileConnections(t *testing.T) {
	a, b, boxA, _ := pair(t)
	a.cfg.Allow = func(peer uint64, kind string) error {
		if kind == "transfer" {
			return errors.New("not for you")
		}
		return nil
	}
	frame := func(ms ...wire.Message) []byte {
		var f wire.Frame
		f.Reset()
		for _, m := range ms {
			f.AppendMessage(m)
		}
		var b bytes.Buffer
		_, err := f.WriteMessages(&b)
		require.NoError(t, err)
		return b.Bytes()
	}
	flipped := frame(heartbeat(2, 1))
	flipped[len(flipped)-1]++
	huge := frame(heartbeat(2, 1))
	huge[7] = 0xff
	for name, hostile := range map[string][]byte{
		"garbage":          []byte("GET / HTTP/1.1\r\n\r\n"),
		"another sender":   frame(heartbeat(3, 1)),
		"another receiver": frame(heartbeat(2, 3)),
		"another class":    frame(appends(2, 1, 1, 1)),
		"not allowed":      frame(wire.Message{Group: 1, From: 2, To: 1, Body: wire.Transfer{}}),
		"checksum":         flipped,
		"length":           huge,
		"hello again":      helloFrame(t),
	} {
		t.Run(name, func(t *testing.T) {
			before := a.Stats().BadFrames
			c, answer := connect(t, a, wire.Hello{Cluster: 5, Node: 2, Peer: 1, Class: wire.ClassControl})
			require.Empty(t, answer.Refused)
			_, err := c.Write(hostile)
			require.NoError(t, err)
			_, err = c.Read(make([]byte, 1))
			require.Error(t, err, "the connection is closed")
			require.NoError(t, err2nil(err))
			require.Equal(t, before+1, a.Stats().BadFrames)
			require.Empty(t, boxA.got, "nothing of it arrives")
		})
	}
	// The peer itself goes on; its control connection has been replaced.
	for len(boxA.got) == 0 {
		b.Send([]wire.Message{heartbeat(2, 1)})
		select {
		case m := <-boxA.got:
			boxA.got <- m
		case <-time.After(time.Millisecond):
		}
	}
}

// err2nil accepts the errors of a connection that the other end closed.
func err2nil(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("still open: %w", err)
	}
	return nil
}

func helloFrame(t *testing.T) []byte {
	var b bytes.Buffer
	require.NoError(t, wire.Hello{Cluster: 5, Node: 2, Peer: 1}.Write(&b))
	return b.Bytes()
}

// stubborn accepts connections, says hello, and reads only control messages.
func stubborn(t *testing.T, l net.Listener, kinds wire.Kinds) (control chan wire.Message) {
	control = make(chan wire.Message, 1000)
	serve := func(c net.Conn) {
		t.Cleanup(func() { _ = c.Close() }) // the peer may have closed it
		h, err := wire.ReadHello(c)
		if err != nil || (wire.Answer{Kinds: kinds}).Write(c) != nil || h.Class != wire.ClassControl {
			return
		}
		for {
			payload, err := wire.ReadFrame(c, wire.FrameMessages, 1<<20, nil)
			if err != nil {
				return
			}
			_, _ = wire.DecodeMessages(payload, func(m wire.Message) { control <- m }) // of our own making
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return control
}

// A peer that stops reading appends costs a bounded queue, is reported, and gets
// its heartbeats all the same.
func TestPeerThatDoesNotRead(t *testing.T) {
	l := listen(t)
	control := stubborn(t, l, wire.AllKinds)
	const bound = 1 << 20
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()},
		QueueBytes: [wire.NumClasses]int{1 << 20, bound, 1 << 20}, WriteTimeout: time.Hour})
	for i := range uint64(200) { // 100 MB, far more than sockets buffer
		a.Send([]wire.Message{appends(1, 2, i, 500<<10)})
	}
	require.Equal(t, uint64(2), box.unreachable(t))
	require.LessOrEqual(t, a.Stats().Peers[2][wire.ClassAppend].QueueBytes, bound)
	require.NotZero(t, a.Stats().Dropped)
	a.Send([]wire.Message{heartbeat(1, 2)})
	select {
	case m := <-control:
		require.Equal(t, wire.KindRaft, m.Kind())
	case <-time.After(patience):
		t.Fatal("the heartbeat waits behind appends")
	}
	// SendWait waits for room, as long as its context allows.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	var err error
	for i := uint64(200); err == nil; i++ {
		err = a.SendWait(ctx, appends(1, 2, i, 500<<10))
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	// Close does not wait for the peer to read.
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.SendWait(context.Background(), heartbeat(1, 2)), errClosed)
	require.NoError(t, a.Close(), "a second time")
}

// With a write timeout the connection is given up, and what waited is reported.
func TestWriteTimeout(t *testing.T) {
	l := listen(t)
	stubborn(t, l, wire.AllKinds)
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()}, WriteTimeout: 20 * time.Millisecond})
	for i := range uint64(100) {
		a.Send([]wire.Message{appends(1, 2, i, 500<<10)})
	}
	require.Equal(t, uint64(2), box.unreachable(t))
}

func TestReconnect(t *testing.T) {
	a, b, boxA, boxB := pair(t)
	a.Send([]wire.Message{heartbeat(1, 2)})
	boxB.next(t)
	address := b.Addr().String()
	require.NoError(t, b.Close())
	require.Equal(t, uint64(2), boxA.unreachable(t), "a loss is noticed without a message")
	_, again := start(t, Config{Node: 2, Listen: address, Peers: map[uint64]string{1: a.Addr().String()}})
	for len(again.got) == 0 {
		a.Send([]wire.Message{heartbeat(1, 2)})
		select {
		case m := <-again.got:
			again.got <- m
		case <-time.After(time.Millisecond):
		}
	}
	require.GreaterOrEqual(t, a.Stats().Peers[2][wire.ClassControl].Connects, uint64(2))

	// A node that is removed is not talked to, nor listened to.
	a.RemovePeer(2)
	require.ErrorIs(t, a.SendWait(context.Background(), heartbeat(1, 2)), errUnreachable)
	_, answer := connect(t, a, wire.Hello{Cluster: 5, Node: 2, Peer: 1})
	require.Contains(t, answer.Refused, "node 2 is not known")
	a.SetPeer(2, address)
	require.NoError(t, a.SendWait(context.Background(), heartbeat(1, 2)))
	again.next(t)
}

// A kind that the other end does not know is not sent.
func TestUnsupportedKind(t *testing.T) {
	l := listen(t)
	control := stubborn(t, l, 1<<wire.KindRaft)
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: l.Addr().String()}})
	a.Send([]wire.Message{{Group: 1, From: 1, To: 2, Body: wire.Transfer{}}, heartbeat(1, 2)})
	select {
	case m := <-control:
		require.Equal(t, wire.KindRaft, m.Kind())
	case <-time.After(patience):
		t.Fatal("no message comes")
	}
	require.Equal(t, uint64(1), a.Stats().Unsupported)
	require.Equal(t, uint64(1), a.Stats().Dropped, "for any reason")
}

func TestBadConfig(t *testing.T) {
	err := Config{Peers: map[uint64]string{0: "x"}, MaxFrameBytes: 1, QueueBytes: [wire.NumClasses]int{-1}, DialTimeout: -1, WriteTimeout: math.MaxInt64}.Validate()
	require.ErrorIs(t, err, ErrInvalid)
	for _, want := range []string{"Cluster is 0", "Node is 0", "Listen is", "Peers is", "MaxFrameBytes is 1", "QueueBytes[control] is -1", "DialTimeout is -1", "WriteTimeout is 2562047h47m16.854775807s, want 0 to 24h0m0s"} {
		require.ErrorContains(t, err, want)
	}
	l := listen(t)
	defer func() { require.NoError(t, l.Close()) }()
	_, err = New(Config{Cluster: 1, Node: 1, Listen: l.Addr().String()})
	require.ErrorContains(t, err, "listen for peers at "+l.Addr().String())
	require.ErrorContains(t, err, "address already in use")

	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}, MaxFrameBytes: 4 << 10})
	require.ErrorIs(t, a.SendWait(context.Background(), heartbeat(1, 2)), errUnreachable)
	require.ErrorIs(t, a.SendWait(context.Background(), appends(1, 2, 1, 5<<10)), errTooLarge)
	a.Send([]wire.Message{appends(1, 2, 1, 5<<10)})
	require.Equal(t, uint64(2), box.unreachable(t))
}

// A node that takes smaller frames than its peer sends gets all other messages over the connection that
// it has; the peer is told which message does not fit, and between which nodes.
func TestMessageLargerThanThePeersFramesIsDropped(t *testing.T) {
	for name, small := range map[string]Config{"MaxFrameBytes": {MaxFrameBytes: 8 << 10}, "Limits": {Limits: func(uint64) Limits { return Limits{ReceiveBytes: 8 << 10} }}} {
		t.Run(name, func(t *testing.T) {
			la, lb := listen(t), listen(t)
			peers := map[uint64]string{1: la.Addr().String(), 2: lb.Addr().String()}
			log := &syncBuilder{}
			a, boxA := start(t, Config{Node: 1, Listener: la, Peers: peers, Logger: slog.New(slog.NewTextHandler(log, nil))})
			small.Node, small.Listener, small.Peers = 2, lb, peers
			_, boxB := start(t, small)
			for i := range uint64(51) { // the last one fits, so that all that do not are behind when it comes
				a.Send([]wire.Message{appends(1, 2, i, 3<<10+int(i)%2*10<<10)})
			}
			for i := uint64(0); i <= 50; i += 2 {
				require.Equal(t, i, boxB.next(t).Body.(wire.Raft).GetIndex())
			}
			require.EqualValues(t, 2, boxA.unreachable(t))
			s := a.Stats().Peers[2][wire.ClassAppend]
			require.EqualValues(t, 1, s.Connects, "the connection is kept")
			require.EqualValues(t, 25, a.Stats().Dropped)
			require.Contains(t, log.String(), "larger than the frames that the peer takes")
			require.Contains(t, log.String(), "peer=2")
		})
	}
}
