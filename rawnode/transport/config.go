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

	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/shaping"
	"github.com/weftraft/weft/internal/wire"
)

var (
	// ErrInvalid wraps mistakes in a configuration.
	ErrInvalid = errors.New("transport: invalid configuration")
)

// Errors that a host takes, or that are only logged.
var (
	errUnreachable = errors.New("transport: peer unreachable")  // it has no address, or could not be reached
	errTooLarge    = errors.New("transport: message too large") // it does not fit a frame
	errRefused     = errors.New("transport: connection refused")
	errClosed      = errors.New("transport: closed")
	errGroupTaken  = errors.New("transport: the group has a receiver")
	errMessage     = errors.New("transport: bad message")
)

// Files names the PEM files of a node: Cert, its certificate, and intermediates behind it,
// if any; Key, the private key; CA, the authorities whose certificates are believed. The
// certificate names one node by a URI among its alternative names, such as
// weft://cluster/5/node/2; no name of a machine and no address is looked at, so that a node
// may move. The certificate must be good for both ends of a connection (extended key usages
// client and server). `kvdemo certs` makes such files; any other tool that can will do.
type Files = certs.Files

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

	// Listener, if set, takes the place of Listen. Close closes it.
	Listener net.Listener
	// Dial, if set, takes the place of a TCP dial.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// TLS names the files by which nodes prove their identity. With TLS, only nodes with a certificate of their own id, signed by one of the
	// authorities, get a connection; without TLS, a node's word is believed. When the
	// files change, the next connection uses the new ones.
	TLS Files

	// Limits, if set, returns a peer's limits here, and is asked at each hello.
	Limits func(peer uint64) Limits
	// Allow, if set, returns nil if a peer may send a kind of message, and otherwise
	// the reason. It is asked for every message within the peer's Limits; see
	// [Limits].Kinds for the names of kinds.
	Allow func(peer uint64, kind string) error
	// Capabilities are announced to peers: bit i stands for ability i. The programs that
	// announce and use a bit agree on its meaning; bits 0 to 31 are for this module, the
	// others for programs on top.
	Capabilities uint64
	// Zone is where the node stands, such as a data centre: bytes between zones cost more than bytes within. At most
	// 64 bytes; empty: not said. It is announced to peers. See "Zones" in package rawnode's documentation.
	Zone string
	// Gateway, if not empty, says that this process is a gateway, and is the address at which nodes
	// reach it: a gateway takes and sends the kinds of messages of gateways alone.
	Gateway string
	// MaxGateways bounds the gateways that are connected at a time. A gateway need not be among Peers: it
	// is known while it is connected, by the address that it gives, and is dialed there. Without TLS a gateway's word
	// is believed, like a node's. 0 means 256; less than 0 none.
	MaxGateways int
	// Shape is the shape of the links to all peers, until SetShape; for experiments.
	Shape shaping.Shape
	// Egress, if not 0, bounds the bytes a second from this node to all peers together,
	// as a network card does; for experiments.
	Egress int

	// QueueBytes bounds the waiting messages, and the ones being written, for each
	// class of a peer (control, appends, snapshots, background); a single message may be larger. 0 means 64 MiB for appends, 16
	// MiB for the background and 4 MiB for each other class.
	QueueBytes [wire.NumClasses]int
	// MaxFrameBytes bounds one frame, sent or received: 4 KiB to 1 byte less than 256 MiB; 0 means 64 MiB. A
	// larger message cannot be sent, so a host wants 1 MiB more than its MaxCommandBytes. Control frames always
	// have at most 1 MiB.
	MaxFrameBytes int
	// ReceiveBytes bounds a peer's frames in memory here, not yet handed to their
	// groups, unless its Limits say otherwise; 0 means twice MaxFrameBytes. Control
	// frames are not counted. At least MaxFrameBytes.
	ReceiveBytes int

	// DialTimeout bounds a dial, the TLS handshake and the hellos; 0 means 2 s. This time and the next two are at most
	// 24 h.
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
	if c.MaxGateways == 0 {
		c.MaxGateways = 256
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

const (
	// bulkPatience is how many times WriteTimeout a peer may leave a snapshot unread.
	bulkPatience = 6
	// maxWait bounds times; the system takes some of them as 32 bits of milliseconds, which are 49 days.
	maxWait = 24 * time.Hour
)

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
	if c.Gateway != "" {
		if err := address.Check(c.Gateway); err != nil {
			bad("Gateway", fmt.Sprintf("%q", c.Gateway), "an address that nodes can dial: "+err.Error())
		}
	}
	if len(c.Zone) > address.MaxZoneBytes {
		bad("Zone", fmt.Sprintf("%d bytes long", len(c.Zone)), fmt.Sprintf("at most %d", address.MaxZoneBytes))
	}
	if err := c.Shape.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	if c.Egress != 0 && (c.Egress < shaping.MinRate || c.Egress > shaping.MaxRate) {
		bad("Egress", c.Egress, fmt.Sprintf("0, or %d to %d", shaping.MinRate, shaping.MaxRate))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"DialTimeout", c.DialTimeout}, {"WriteTimeout", c.WriteTimeout}, {"MaxBackoff", c.MaxBackoff}} {
		if d.value < 0 || d.value > maxWait {
			bad(d.field, d.value, fmt.Sprintf("0 to %v", maxWait))
		}
	}
	return errors.Join(errs...)
}
