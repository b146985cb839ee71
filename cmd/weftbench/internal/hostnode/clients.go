// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostnode

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

// Kind is a way of clients to a node.
type Kind int

// The kinds: calls in frames, many clients to a connection, and calls of gRPC, the same.
const (
	Lean Kind = iota
	RPC
	numKinds
)

var kindNames = [numKinds]string{"lean", "rpc"}

// String returns the kind's name.
func (k Kind) String() string { return kindNames[k] }

// maxCommand bounds the command of a call.
const maxCommand = 4 << 20

// listen serves clients of a kind at a port of its own, until the node ends.
func (n *node) listen(kind string) (address string, err error) {
	k := slices.Index(kindNames[:], kind)
	if k < 0 {
		return "", fmt.Errorf("kind: %q, want one of %q", kind, kindNames)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	if Kind(k) == Lean {
		context.AfterFunc(n.ends, func() { _ = l.Close() }) // nobody waits
		go n.accept(l)
	} else {
		g := grpc.NewServer(grpc.MaxRecvMsgSize(maxCommand + 1<<10))
		kvpb.RegisterKVServer(g, service{node: n})
		context.AfterFunc(n.ends, g.Stop)
		go func() { _ = g.Serve(l) }() // ends with Stop
	}
	return l.Addr().String(), nil
}

// call serves a call of a client.
func (n *node) call(ctx context.Context, k Kind, command []byte) error {
	n.served[k].Add(1)
	if o, ok := asRead(command); ok {
		_, err := n.read(ctx, o)
		return err
	}
	n.bytes.Add(uint64(len(command)))
	return n.propose(ctx, command)
}

// Policies are how reads of clients come about.
var Policies = []string{"ReadIndex", "quorum read"}

// ReadBy returns what a client sends for a read by a policy.
func ReadBy(policy string) []byte {
	return []byte{'r', byte(slices.Index(Policies, policy))}
}

// asRead returns the options of a read that a client has sent: other commands are zeros.
func asRead(command []byte) (o rawnode.ReadOptions, ok bool) {
	if len(command) != 2 || command[0] != 'r' {
		return o, false
	}
	if command[1] == 1 {
		o.Policy = rawnode.QuorumRead{}
	}
	return o, true
}

// service serves calls of gRPC.
type service struct {
	kvpb.UnimplementedKVServer
	*node
}

// Put implements kvpb.KVServer.
func (s service) Put(ctx context.Context, req *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	return &kvpb.PutResponse{}, s.call(ctx, RPC, req.GetValue())
}

// Status implements kvpb.KVServer.
func (s service) Status(context.Context, *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	return &kvpb.StatusResponse{}, nil
}

// A call in a frame is the length of the command, the number of the call, and the command; the
// answer is the number.
const (
	headBytes   = 12
	answerBytes = 8
)

func (n *node) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		context.AfterFunc(n.ends, func() { _ = c.Close() }) // nobody waits
		go func() {
			_ = n.lean(c) // the client is gone, or wrong
			_ = c.Close()
		}()
	}
}

// lean serves the calls of a connection, any number at a time.
func (n *node) lean(c net.Conn) error {
	in, out := bufio.NewReaderSize(c, 64<<10), &joint{to: c}
	for {
		var head [headBytes]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		size := binary.LittleEndian.Uint32(head[:])
		if size > maxCommand {
			return fmt.Errorf("a command of %d bytes, want %d at most", size, maxCommand)
		}
		command := make([]byte, size)
		if _, err := io.ReadFull(in, command); err != nil {
			return err
		}
		go func() {
			if err := n.call(n.ends, Lean, command); err != nil {
				_ = c.Close() // a call without an answer ends the measurement
				return
			}
			out.write(head[4:])
		}()
	}
}

// joint joins what several goroutines write at a time.
type joint struct {
	to      net.Conn
	mu      sync.Mutex
	waiting []byte
	writing bool
}

func (j *joint) write(b []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = append(j.waiting, b...)
	if j.writing {
		return
	}
	j.writing = true
	for len(j.waiting) > 0 {
		now := j.waiting
		j.waiting = nil
		j.mu.Unlock()
		_, err := j.to.Write(now)
		j.mu.Lock()
		if err != nil {
			_ = j.to.Close() // its reader says so
			break
		}
	}
	j.writing = false
}

// Conn is a connection of several clients to a node.
type Conn struct {
	rpc  *grpc.ClientConn // or
	lean net.Conn

	out    joint
	mu     sync.Mutex
	last   uint64
	calls  map[uint64]chan struct{}
	broken error
}

// Dial connects to an address of a node that serves a kind.
func Dial(k Kind, address string) (c *Conn, err error) {
	c = &Conn{calls: map[uint64]chan struct{}{}}
	if k == RPC {
		c.rpc, err = nodes.Dial(address)
		return c, err
	}
	if c.lean, err = net.Dial("tcp", address); err == nil {
		c.out.to = c.lean
		go c.read()
	}
	return c, err
}

// Call has the node apply a command.
func (c *Conn) Call(ctx context.Context, command []byte) error {
	if c.rpc != nil {
		_, err := kvpb.NewKVClient(c.rpc).Put(ctx, &kvpb.PutRequest{Key: "k", Value: command})
		return err
	}
	done := make(chan struct{})
	c.mu.Lock()
	c.last++
	number := c.last
	c.calls[number] = done
	err := c.broken
	c.mu.Unlock()
	if err != nil {
		return err
	}
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(command)))
	frame = binary.LittleEndian.AppendUint64(frame, number)
	c.out.write(append(frame, command...))
	select {
	case <-done:
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, open := c.calls[number]; open {
			return c.broken
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read takes answers.
func (c *Conn) read() {
	in := bufio.NewReaderSize(c.lean, 64<<10)
	var err error
	for err == nil {
		var b [answerBytes]byte
		if _, err = io.ReadFull(in, b[:]); err != nil {
			break
		}
		number := binary.LittleEndian.Uint64(b[:])
		c.mu.Lock()
		if done := c.calls[number]; done != nil {
			delete(c.calls, number)
			close(done)
		} else {
			err = fmt.Errorf("an answer to call %d, which is not under way", number)
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = errors.Join(errors.New("the connection ended"), err)
	for _, done := range c.calls {
		close(done)
	}
}

// Close closes the connection.
func (c *Conn) Close() error {
	if c.rpc != nil {
		return c.rpc.Close()
	}
	return c.lean.Close()
}
