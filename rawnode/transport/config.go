// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/wire"
)

var (
	// ErrInvalid wraps mistakes in a configuration.
	ErrInvalid = errors.New("transport: invalid configuration")
	// ErrRefused wraps the reason for refusing a connection, by a peer or by this node.
	ErrRefused = errors.New("transport: connection refused")
	// ErrUnreachable says that a peer has no address or could not be reached.
	ErrUnreachable = errors.New("transport: peer unreachable")
	// ErrClosed says that the transport is closed.
	ErrClosed = errors.New("transport: closed")
	// ErrGroupTaken says that a group has a receiver already.
	ErrGroupTaken = errors.New("transport: the group has a receiver")
	// ErrTooLarge says that a message does not fit a frame.
	ErrTooLarge = errors.New("transport: message too large")
	// ErrMessage wraps the mistake in a peer's message.
	ErrMessage = errors.New("transport: bad message")
)

// Config configures a transport. Cluster and Node must be set. Sizes are in
// bytes.
type Config struct {
	// Cluster and Node are this node's identity; each 1 or more. Nodes of different
	// clusters refuse each other.
	Cluster, Node uint64
	// Listen is the address to listen at, such as "127.0.0.1:7000"; port 0 means any
	// free port.
	Listen string
	// Peers are the known nodes and their addresses. A peer with an empty address may
	// connect, and is not dialed. See also SetPeer.
	Peers map[uint64]string

	// Listener, if set, takes the place of Listen.
	Listener net.Listener
	// Dial, if set, takes the place of a TCP dial.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// TLS names the files by which nodes prove their identity; see package certs. With
	// TLS, only nodes with a certificate of their own id, signed by one of the
	// authorities, get a connection; without TLS, a node's word is believed. When the
	// files change, the next connection uses the new ones.
	TLS certs.Files

	// Limits, if set, returns a peer's limits here, and is asked at each hello.
	Limits func(peer uint64) Limits
	// Allow, if set, returns nil if a peer may send a kind of message, and otherwise
	// the reason. It is asked for every message within the peer's Limits.
	Allow func(peer uint64, kind wire.Kind) error
	// Capabilities are announced to peers.
	Capabilities wire.Capabilities
	// Shape is the shape of the links to all peers, until SetShape; for experiments.
	Shape Shape
	// Egress, if not 0, bounds the bytes a second from this node to all peers together,
	// as a network card does; for experiments.
	Egress int

	// QueueBytes bounds the waiting messages, and the ones being written, for each
	// class of a peer; a single message may be larger. 0 means 64 MiB for appends, 16
	// MiB for the background and 4 MiB for each other class.
	QueueBytes [wire.NumClasses]int
	// MaxFrameBytes bounds one frame, sent or received; 0 means wire.DefaultMaxFrame. A
	// larger message cannot be sent. Control frames always have at most 1 MiB.
	MaxFrameBytes int
	// ReceiveBytes bounds a peer's frames in memory here, not yet handed to their
	// groups, unless its Limits say otherwise; 0 means twice MaxFrameBytes. Control
	// frames are not counted.
	ReceiveBytes int

	// DialTimeout bounds a dial, the TLS handshake and the hellos; 0 means 2 s.
	DialTimeout time.Duration
	// WriteTimeout is the time in which a peer must read something, or send more of a
	// begun frame, before its connection is given up; 0 means 10 s. Snapshots get six
	// times as long, because a peer's state machine takes a snapshot only as fast as
	// its disk. On Linux a connection also ends when no written byte was acknowledged
	// for WriteTimeout, because the network is cut.
	WriteTimeout time.Duration
	// MaxBackoff bounds the pause between dials, which begins at 20 ms and
	// doubles; 0 means 1 s.
	MaxBackoff time.Duration

	// Logger is told of connections made, broken and refused; nil means silence. Lines
	// of one kind in quick succession become one line, and then a count.
	Logger *slog.Logger
}

const firstBackoff = 20 * time.Millisecond

func (c Config) withDefaults() Config {
	for class, bytes := range [wire.NumClasses]int{4 << 20, 64 << 20, 4 << 20, 16 << 20} {
		if c.QueueBytes[class] == 0 {
			c.QueueBytes[class] = bytes
		}
	}
	if c.MaxFrameBytes == 0 {
		c.MaxFrameBytes = wire.DefaultMaxFrame
	}
	if c.ReceiveBytes == 0 {
		c.ReceiveBytes = 2 * c.MaxFrameBytes
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.DialTimeout, 2 * time.Second}, {&c.WriteTimeout, 10 * time.Second}, {&c.MaxBackoff, time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Dial == nil {
		var dialer net.Dialer
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// bulkPatience is how many times WriteTimeout a peer may leave a snapshot unread.
const bulkPatience = 6

func (c Config) writeTimeout(class wire.Class) time.Duration {
	if class == wire.ClassBulk {
		return bulkPatience * c.WriteTimeout
	}
	return c.WriteTimeout
}

// Validate returns an error that names every mistake, or nil.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%w: %s is %v, want %s", ErrInvalid, field, value, want))
	}
	if c.Cluster == 0 {
		bad("Cluster", c.Cluster, "1 or more")
	}
	if c.Node == 0 {
		bad("Node", c.Node, "1 or more")
	}
	if c.Listen == "" && c.Listener == nil {
		bad("Listen", `""`, "an address, such as 127.0.0.1:7000")
	}
	if _, ok := c.Peers[0]; ok {
		bad("Peers", c.Peers, "node ids of 1 or more")
	}
	for class, bytes := range c.QueueBytes {
		if bytes < 1 {
			bad(fmt.Sprintf("QueueBytes[%v]", wire.Class(class)), bytes, "1 or more")
		}
	}
	if c.MaxFrameBytes < 4<<10 || c.MaxFrameBytes > wire.MaxFrame {
		bad("MaxFrameBytes", c.MaxFrameBytes, fmt.Sprintf("%d to %d", 4<<10, wire.MaxFrame))
	}
	if c.ReceiveBytes < c.MaxFrameBytes {
		bad("ReceiveBytes", c.ReceiveBytes, fmt.Sprintf("%d or more, as MaxFrameBytes is", c.MaxFrameBytes))
	}
	if err := c.Shape.validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Egress != 0 && (c.Egress < minRate || c.Egress > maxRate) {
		bad("Egress", c.Egress, fmt.Sprintf("0, or %d to %d", minRate, maxRate))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"DialTimeout", c.DialTimeout}, {"WriteTimeout", c.WriteTimeout}, {"MaxBackoff", c.MaxBackoff}} {
		if d.value < 0 {
			bad(d.field, d.value, "0 or more")
		}
	}
	return errors.Join(errs...)
}
