// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/strangers"
)

// Refusal says why a client was refused.
type Refusal int

// The reasons.
const (
	refusedPlain       Refusal = iota // one end speaks TLS and the other does not
	refusedHandshake                  // the TLS handshake failed: the client may not believe the node
	refusedNone                       // the client shows no certificate
	refusedCertificate                // the client's certificate is not believed, or of another cluster
	refusedRole                       // the certificate is for something else than what it is used for
	refusedCrowd                      // there were too many connections of strangers
	NumRefusals                       // how many there are
)

// String returns the reason in words.
func (r Refusal) String() string {
	return [...]string{"plain or TLS", "handshake", "no certificate", "certificate", "role", "crowd"}[r]
}

// Server is a node's way to talk to clients, with TLS or without. A connection with a
// refused certificate is let in all the same, so that its calls get the reason; each
// call ends with the reason, before a byte of the call is read.
type Server struct {
	Node    uint64
	Keyring *certs.Keyring // its files may change; nil: no TLS
	// Admin is the name of the gRPC service that wants a certificate for
	// administrators.
	Admin string
	// Strangers has the connections that have shown no good certificate, or, without
	// TLS, nothing at all.
	Strangers *strangers.Table
	// Refused is called for each refused connection and call, and must not wait.
	Refused func(why Refusal, from net.Addr, err error)
	// MaxClients bounds the connections by gRPC that are let in; 0 means 10,000.
	MaxClients int

	clients atomic.Int64 // that are let in
}

const defaultClients = 10_000

// maxHeader bounds the header of a call, which is read before the call is refused.
const maxHeader = 64 << 10

// Options returns the options for a gRPC server behind this Server.
func (s *Server) Options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.Creds(serverCredentials{s}), grpc.InTapHandle(s.admit), grpc.MaxHeaderListSize(maxHeader)}
}

// authInfo is what is known of a client.
type authInfo struct {
	credentials.CommonAuthInfo
	who     who   // with TLS
	refused error // why all calls are refused, or nil
}

// AuthType implements credentials.AuthInfo.
func (authInfo) AuthType() string { return "weft" }

// Holder returns the role and name in the certificate of a call's client, empty if clients
// need none.
func Holder(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return ""
	}
	if info, ok := p.AuthInfo.(authInfo); ok && info.who.role != "" {
		return info.who.role + " " + info.who.name
	}
	return ""
}

// admit decides about a call by its name and the client's certificate.
func (s *Server) admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	p, _ := peer.FromContext(ctx)
	info, ok := p.AuthInfo.(authInfo)
	switch {
	case !ok:
		return ctx, status.Errorf(codes.Internal, "the connection has no %T", info)
	case info.refused != nil:
		return ctx, status.Error(codes.Unauthenticated, info.refused.Error())
	case s.Keyring != nil && info.who.role != admin && strings.HasPrefix(call.FullMethodName, "/"+s.Admin+"/"):
		err := fmt.Errorf("your certificate is for %v, this call needs an administrator's: kvdemo certs --admins", info.who)
		s.Refused(refusedRole, p.Addr, err)
		return ctx, status.Error(codes.PermissionDenied, err.Error())
	}
	return ctx, nil
}

// serverCredentials implements credentials.TransportCredentials for a Server.
type serverCredentials struct{ *Server }

// refusedLasts is how long a connection that is refused may stay.
const refusedLasts = 5 * time.Second

// ServerHandshake implements credentials.TransportCredentials. A connection that is
// refused stays a stranger until it ends.
func (s serverCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	s.Strangers.Add(raw)
	conn, info, err := s.greet(raw)
	if i, ok := info.(authInfo); err == nil && ok && i.refused != nil {
		return &stranger{Conn: conn, gone: func() { s.Strangers.Remove(raw) }}, info, nil
	}
	s.Strangers.Remove(raw)
	if err != nil {
		return conn, info, err
	}
	return s.letIn(conn, info)
}

// letIn counts a client, or ends its connection if there is no room: it finds another node.
func (s serverCredentials) letIn(conn net.Conn, info credentials.AuthInfo) (net.Conn, credentials.AuthInfo, error) {
	most := int64(cmp.Or(s.MaxClients, defaultClients))
	if n := s.clients.Add(1); n > most {
		s.clients.Add(-1)
		err := fmt.Errorf("%d clients are connected, want at most that", most)
		s.Refused(refusedCrowd, conn.RemoteAddr(), err)
		return nil, nil, err
	}
	return &guest{Conn: conn, server: s.Server}, info, nil
}

// guest is the connection of a client that was let in.
type guest struct {
	net.Conn
	server *Server
	once   sync.Once
}

// Close implements net.Conn.
func (c *guest) Close() error {
	c.once.Do(func() { c.server.clients.Add(-1) })
	return c.Conn.Close()
}

// stranger is a connection that is not trusted.
type stranger struct {
	net.Conn
	gone func()
}

// Close implements net.Conn.
func (c *stranger) Close() error {
	defer c.gone()
	return c.Conn.Close()
}

// tell reports a refused connection.
func (s *Server) tell(why Refusal, raw net.Conn, err error) {
	if s.Strangers.PushedOut(raw) {
		why, err = refusedCrowd, errCrowd
	}
	s.Refused(why, raw.RemoteAddr(), err)
}

// silent returns the error of a connection without a byte from the client. Programs often
// try a port in this way; therefore only connections that were pushed out are reported.
func (s *Server) silent(raw net.Conn, err error) error {
	if s.Strangers.PushedOut(raw) {
		s.tell(refusedCrowd, raw, errCrowd)
	}
	return err
}

var errCrowd = errors.New("too many connections have shown no good certificate; this one was drawn among those of its address")

// greet finds out who the client is.
func (s serverCredentials) greet(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, err := strangers.Peek(raw)
	if err != nil {
		return nil, nil, s.silent(raw, err)
	}
	isTLS := conn.First == strangers.FirstOfTLS
	switch {
	case s.Keyring == nil && isTLS:
		err := errors.New("a client speaks TLS, this node does not: give both certificates, or neither")
		s.tell(refusedPlain, raw, err)
		hint(raw, "HTTP/1.1 400 Bad Request\r\n\r\nThis node does not speak TLS.\n")
		return nil, nil, err
	case s.Keyring == nil:
		return conn, authInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}, nil
	case !isTLS:
		s.tell(refusedPlain, raw, errors.New("a client speaks no TLS, this node wants it"))
		return s.refuse(conn, fmt.Errorf("node %d wants a certificate: give --tls-cert, --tls-key and --tls-ca", s.Node))
	}
	return s.handshake(conn, "h2")
}

// handshake makes a TLS connection, and looks at the client's certificate.
func (s serverCredentials) handshake(conn *strangers.Peeked, protocols ...string) (net.Conn, credentials.AuthInfo, error) {
	raw := conn.Conn
	own, _ := s.Keyring.Current() // of an error the transport tells; what was good before is used
	secure := tls.Server(conn, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own.Certificate}, NextProtos: protocols,
		ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true, // so that each connection shows its certificate
	})
	if err := secure.Handshake(); err != nil {
		err = fmt.Errorf("TLS handshake (the client may not trust this node's authority, or be of another cluster): %w", err)
		s.tell(refusedHandshake, raw, err)
		return nil, nil, err
	}
	w, why, err := believe(secure.ConnectionState().PeerCertificates, own)
	if err != nil {
		s.tell(why, raw, err)
		return s.refuse(secure, err)
	}
	return secure, authInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, who: w}, nil
}

// Admit turns the connection of a client with another protocol than gRPC into a TLS
// connection. Nothing may have been read from the connection, which the caller counts among
// Strangers. An error is the reason for refusing the client; the caller tells the client,
// on the returned connection if there is one, and closes the connection.
func (s *Server) Admit(raw net.Conn) (net.Conn, error) {
	conn, err := strangers.Peek(raw)
	if err != nil {
		return nil, s.silent(raw, err)
	}
	if conn.First != strangers.FirstOfTLS {
		err := fmt.Errorf("node %d wants TLS and a certificate", s.Node)
		s.tell(refusedPlain, raw, err)
		return nil, err
	}
	secured, info, err := serverCredentials{s}.handshake(conn)
	if err != nil {
		return nil, err
	}
	if i, ok := info.(authInfo); ok {
		err = i.refused
	}
	return secured, err
}

// believe returns the client to whom a chain of certificates belongs, or the reason why
// the chain is refused.
func believe(chain []*x509.Certificate, own *certs.Credentials) (w who, why Refusal, err error) {
	if len(chain) == 0 {
		return w, refusedNone, errors.New("you show no certificate: give --tls-cert, --tls-key and --tls-ca")
	}
	w, err = verify(chain, own.Roots(), x509.ExtKeyUsageClientAuth)
	switch {
	case err != nil:
		return w, refusedCertificate, fmt.Errorf("your certificate: %w", err)
	case w.cluster != own.Identity.Cluster:
		return w, refusedCertificate, fmt.Errorf("your certificate is for %v, this is cluster %d", w, own.Identity.Cluster)
	case w.role == node:
		return w, refusedRole, fmt.Errorf("your certificate is for %v, a client needs one of its own: kvdemo certs --clients, or --admins for the commands of operators", w)
	}
	return w, 0, nil
}

// hint tells a client in plain text a reason that TLS cannot carry, and waits until the
// client hangs up, because the kernel throws written bytes away when a connection is closed
// with unread bytes.
func hint(raw net.Conn, text string) {
	_ = raw.SetDeadline(time.Now().Add(refusedLasts)) // if it is gone it is gone
	_, _ = io.WriteString(raw, text)
	if half, ok := raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, raw, 16<<10)
}

// refuse lets a connection in, refuses all its calls, and soon closes the connection.
func (serverCredentials) refuse(conn net.Conn, why error) (net.Conn, credentials.AuthInfo, error) {
	time.AfterFunc(refusedLasts, func() { _ = conn.Close() }) // if the client has not done it
	return conn, authInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, refused: why}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (serverCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are a server's credentials")
}

// Info implements credentials.TransportCredentials.
func (serverCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "weft"}
}

// Clone implements credentials.TransportCredentials.
func (s serverCredentials) Clone() credentials.TransportCredentials { return s }

// OverrideServerName implements credentials.TransportCredentials.
func (serverCredentials) OverrideServerName(string) error { return nil }
