// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

const (
	peerQueue       = 1024 // messages
	maxMessageBytes = 256 << 20
	redial          = 100 * time.Millisecond
)

// peers sends messages to the other nodes and reads their messages, over one
// connection in each direction.
type peers struct {
	ctx         context.Context
	queues      map[uint64]chan *pb.Message
	listener    net.Listener
	receive     func(*pb.Message)
	unreachable func(peer uint64)
	running     sync.WaitGroup
}

func startPeers(ctx context.Context, self uint64, listen string, addresses map[uint64]string, receive func(*pb.Message), unreachable func(uint64)) (*peers, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, err
	}
	p := &peers{ctx: ctx, queues: map[uint64]chan *pb.Message{}, listener: l, receive: receive, unreachable: unreachable}
	for id, address := range addresses {
		if id != self {
			q := make(chan *pb.Message, peerQueue)
			p.queues[id] = q
			p.running.Go(func() { p.dialLoop(id, address, q) })
		}
	}
	p.running.Go(p.acceptLoop)
	context.AfterFunc(ctx, func() { _ = l.Close() }) // ends the accept loop
	return p, nil
}

// send queues messages, and drops messages beyond the queue's bound.
func (p *peers) send(messages []*pb.Message) {
	for _, m := range messages {
		select {
		case p.queues[m.GetTo()] <- m:
		default:
			p.unreachable(m.GetTo())
		}
	}
}

func (p *peers) dialLoop(id uint64, address string, q chan *pb.Message) {
	for p.ctx.Err() == nil {
		d := net.Dialer{Timeout: time.Second}
		conn, err := d.DialContext(p.ctx, "tcp", address)
		if err == nil {
			stop := context.AfterFunc(p.ctx, func() { _ = conn.Close() }) // ends the write
			err = writeMessages(p.ctx, conn, q)
			stop()
			_ = conn.Close() // it broke, or we end
		}
		if err != nil {
			p.unreachable(id)
		}
		select {
		case <-time.After(redial):
		case <-p.ctx.Done():
		}
	}
}

// writeMessages writes the queued messages, all that are queued at one time together.
func writeMessages(ctx context.Context, conn net.Conn, q chan *pb.Message) error {
	w := bufio.NewWriterSize(conn, 64<<10)
	var buf []byte
	for {
		select {
		case m := <-q:
			var err error
			if buf, err = (proto.MarshalOptions{}).MarshalAppend(append(buf[:0], 0, 0, 0, 0), m); err != nil {
				return err
			}
			binary.LittleEndian.PutUint32(buf, uint32(len(buf)-4))
			if _, err := w.Write(buf); err != nil {
				return err
			}
			if len(q) == 0 {
				if err := w.Flush(); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *peers) acceptLoop() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() {
			stop := context.AfterFunc(p.ctx, func() { _ = conn.Close() }) // ends the read
			defer stop()
			_ = p.readMessages(conn) // the peer dials again
			_ = conn.Close()
		})
	}
}

func (p *peers) readMessages(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		m, err := readMessage(r)
		if err != nil {
			return err
		}
		p.receive(m)
	}
}

func readMessage(r io.Reader) (*pb.Message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxMessageBytes {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	m := &pb.Message{}
	return m, proto.Unmarshal(body, m)
}

// Dialer reads from the beginning of a connection which node dials, as a relay of package lab asks: the
// sender of the first message.
func Dialer(r io.Reader) (node int, err error) {
	m, err := readMessage(r)
	return int(m.GetFrom()), err
}

// wait waits until everything has ended, once the context has.
func (p *peers) wait() error {
	p.running.Wait()
	if err := p.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
