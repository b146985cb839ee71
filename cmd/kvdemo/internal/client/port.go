// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc/credentials"

	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
)

var (
	// errNotOurs says that another program listens at an endpoint: its bytes are not
	// gRPC, or its gRPC server has no service of kvdemo.
	errNotOurs = errors.New("this is not kvdemo's client port")

	// errHungUp is errNotOurs as a guess. A proxy hangs up as well while the node
	// behind it is down, so a call goes on trying.
	errHungUp = fmt.Errorf("%w: it hangs up on gRPC (as a node that wants certificates does, and a proxy without its node)", errNotOurs)
)

// witness is credentials that remember the outcome of the last connection. gRPC
// itself tells the outcome only to calls that fail, not to a client that waits for
// a connection.
type witness struct {
	credentials.TransportCredentials
	seen *atomic.Pointer[error] // shared by clones
}

func newWitness(c credentials.TransportCredentials) witness {
	return witness{c, new(atomic.Pointer[error])}
}

// reason returns what was wrong with the last connection, or nil.
func (w witness) reason() error {
	if err := w.seen.Load(); err != nil {
		return *err
	}
	return nil
}

// Clone implements credentials.TransportCredentials.
func (w witness) Clone() credentials.TransportCredentials {
	return witness{w.TransportCredentials.Clone(), w.seen}
}

// ClientHandshake implements credentials.TransportCredentials.
func (w witness) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		if why := secure.Explain(err); why != nil {
			w.seen.Store(&why)
		}
		return nil, nil, err
	}
	return &opening{Conn: conn, seen: w.seen}, info, nil
}

// frameHeader is the size of the header of an HTTP/2 frame. What a server sends
// first must be a frame of settings: type 4, of stream 0, no acknowledgement.
const frameHeader = 9

// opening is a connection whose first bytes are looked at. Only one goroutine reads
// from the connection.
type opening struct {
	net.Conn
	seen  *atomic.Pointer[error]
	first []byte // what came first, up to frameHeader
}

// Read implements net.Conn.
func (o *opening) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	if missing := frameHeader - len(o.first); missing > 0 {
		o.first = append(o.first, b[:min(n, missing)]...)
		switch f := o.first; {
		case len(f) == frameHeader && (f[3] != 4 || f[4] != 0 || f[5]|f[6]|f[7]|f[8] != 0):
			o.note(errNotOurs)
		case len(f) == frameHeader:
			o.seen.Store(nil)
		case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
			o.note(errHungUp)
		}
	}
	return n, err
}

func (o *opening) note(err error) { o.seen.Store(&err) }
